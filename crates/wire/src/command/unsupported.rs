//! Commands of MongoDB that we don't have, each with the reason: a known name is refused by name, not as unknown.

const JAVASCRIPT: &str = "there is no server-side JavaScript; use an aggregation pipeline";
const SHARDING: &str = "Sheaf does not shard by itself; run the model on a MongoDB cluster";
const REPLICATION: &str = "the replica set has one member that can't be changed";
const SEARCH: &str = "there is no search or vector search, which MongoDB has on Atlas alone";
const ENCRYPTION: &str = "there is no queryable encryption";
const INTERNAL: &str = "it is internal to MongoDB's own deployments";

/// Sorted by name.
static NAMES: &[(&str, &str)] = &[
    ("abortReshardCollection", SHARDING),
    ("addShard", SHARDING),
    ("addShardToZone", SHARDING),
    ("analyzeShardKey", SHARDING),
    ("appendOplogNote", REPLICATION),
    ("applyOps", REPLICATION),
    ("authenticate", "X.509 and Kerberos are not available; use SCRAM-SHA-256"),
    ("autoCompact", "the table file compacts itself"),
    ("balancerCollectionStatus", SHARDING),
    ("balancerStart", SHARDING),
    ("balancerStatus", SHARDING),
    ("balancerStop", SHARDING),
    ("checkShardingIndex", SHARDING),
    ("cleanupOrphaned", SHARDING),
    ("cleanupReshardCollection", SHARDING),
    ("cleanupStructuredEncryptionData", ENCRYPTION),
    ("clearJumboFlag", SHARDING),
    ("commitReshardCollection", SHARDING),
    ("compact", "the table file compacts itself"),
    ("compactStructuredEncryptionData", ENCRYPTION),
    ("configureCollectionBalancing", SHARDING),
    ("configureQueryAnalyzer", SHARDING),
    ("connPoolSync", INTERNAL),
    ("createSearchIndexes", SEARCH),
    ("dropSearchIndex", SEARCH),
    ("enableSharding", SHARDING),
    ("eval", JAVASCRIPT),
    ("fetchMore", INTERNAL),
    ("filemd5", "compute the digest in the client"),
    ("flushRouterConfig", SHARDING),
    ("geoNear", "there are no geospatial queries"),
    ("geoSearch", "there are no geospatial queries"),
    ("getLastError", "removed in MongoDB 5.1; give each write a write concern"),
    ("getShardMap", SHARDING),
    ("getShardVersion", SHARDING),
    ("getnonce", "MONGODB-CR is gone; use SCRAM-SHA-256"),
    ("group", "removed in MongoDB 4.2; use an aggregation pipeline with $group"),
    ("isdbgrid", "this is no sharding router"),
    ("listSearchIndexes", SEARCH),
    ("listShards", SHARDING),
    ("logApplicationMessage", INTERNAL),
    ("mapReduce", JAVASCRIPT),
    ("mapreduce", JAVASCRIPT),
    ("mergeChunks", SHARDING),
    ("moveChunk", SHARDING),
    ("moveCollection", SHARDING),
    ("movePrimary", SHARDING),
    ("moveRange", SHARDING),
    ("netstat", INTERNAL),
    ("parallelCollectionScan", "removed in MongoDB 4.2; open several cursors over ranges of _id"),
    ("reIndex", "drop the indexes and create them again"),
    ("refineCollectionShardKey", SHARDING),
    ("removeShard", SHARDING),
    ("removeShardFromZone", SHARDING),
    ("repairDatabase", "removed in MongoDB 4.2; use validate"),
    ("replSetAbortPrimaryCatchUp", REPLICATION),
    ("replSetFreeze", REPLICATION),
    ("replSetInitiate", "the replica set is there from the start, with one member"),
    ("replSetMaintenance", REPLICATION),
    ("replSetReconfig", REPLICATION),
    ("replSetResizeOplog", REPLICATION),
    ("replSetStepDown", REPLICATION),
    ("replSetSyncFrom", REPLICATION),
    ("resetError", "removed in MongoDB 5.1"),
    ("reshardCollection", SHARDING),
    ("rotateCertificates", "restart the server to load a new certificate"),
    ("setAllowMigrations", SHARDING),
    ("setIndexCommitQuorum", REPLICATION),
    ("setShardVersion", SHARDING),
    ("shardCollection", SHARDING),
    ("shardingState", SHARDING),
    ("shutdown", "stop the process with SIGTERM"),
    ("split", SHARDING),
    ("splitVector", SHARDING),
    ("transitionFromDedicatedConfigServer", SHARDING),
    ("transitionToDedicatedConfigServer", SHARDING),
    ("unshardCollection", SHARDING),
    ("unsetSharding", SHARDING),
    ("updateSearchIndex", SEARCH),
    ("updateZoneKeyRange", SHARDING),
];

/// Why a known command is not there; none for an unknown name.
pub(crate) fn reason(name: &str) -> Option<&'static str> {
    NAMES.iter().find(|known| known.0 == name).map(|known| known.1)
}

/// The names of all of them, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|known| known.0)
}
