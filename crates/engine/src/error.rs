//! The engine's one error: MongoDB's code, a message that says what was wrong and what to do, and optional details.

use bson::RawDocumentBuf;
use std::fmt;

/// What the engine's fallible functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A refusal or failure, carrying MongoDB's error code.
#[derive(Clone, Debug)]
pub struct Error {
    /// MongoDB's error code; drivers branch on it.
    pub code: Code,
    /// What was wrong and what to do about it.
    pub message: String,
    /// Rarely present parts, boxed so that a `Result` stays small.
    pub details: Option<Box<Details>>,
}

/// The parts of an error that only some errors have.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// Error labels such as `TransientTransactionError`.
    pub labels: Vec<&'static str>,
    /// `errInfo` of a validator's refusal.
    pub info: Option<RawDocumentBuf>,
    /// Further top-level fields of the error document, e.g. `keyPattern` and `keyValue` of a duplicate key.
    pub extra: Option<RawDocumentBuf>,
}

impl Error {
    /// An error with a code and a message.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into(), details: None }
    }

    /// A `BadValue` (2).
    pub fn bad_value(message: impl Into<String>) -> Error {
        Error::new(Code::BAD_VALUE, message)
    }

    /// A `FailedToParse` (9).
    pub fn failed_to_parse(message: impl Into<String>) -> Error {
        Error::new(Code::FAILED_TO_PARSE, message)
    }

    /// A `TypeMismatch` (14).
    pub fn type_mismatch(message: impl Into<String>) -> Error {
        Error::new(Code::TYPE_MISMATCH, message)
    }

    /// An `InternalError` (1): a broken invariant of ours, never the caller's fault.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(Code::INTERNAL_ERROR, message)
    }

    /// An error that MongoDB numbers without naming; its name on the wire is `Location<number>`.
    pub fn location(number: i32, message: impl Into<String>) -> Error {
        Error::new(Code(number), message)
    }

    /// Adds an error label.
    pub fn with_label(mut self, label: &'static str) -> Error {
        self.details.get_or_insert_default().labels.push(label);
        self
    }

    /// Adds `errInfo`.
    pub fn with_info(mut self, info: RawDocumentBuf) -> Error {
        self.details.get_or_insert_default().info = Some(info);
        self
    }

    /// Adds further top-level fields.
    pub fn with_extra(mut self, extra: RawDocumentBuf) -> Error {
        self.details.get_or_insert_default().extra = Some(extra);
        self
    }

    /// Puts a context before the message, as in `"<context> :: caused by :: <message>"`.
    pub fn context(mut self, context: impl fmt::Display) -> Error {
        self.message = format!("{context} :: caused by :: {}", self.message);
        self
    }

    /// The labels, empty for most errors.
    pub fn labels(&self) -> &[&'static str] {
        self.details.as_ref().map_or(&[], |details| &details.labels)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.code.name(), self.code.0, self.message)
    }
}

impl std::error::Error for Error {}

impl From<bson::error::Error> for Error {
    fn from(error: bson::error::Error) -> Error {
        Error::new(Code::INVALID_BSON, format!("invalid BSON: {error}"))
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        let code = match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Code::OUT_OF_DISK_SPACE,
            _ => Code::FILE_STREAM_FAILED,
        };
        Error::new(code, format!("file error: {error}"))
    }
}

/// A MongoDB error code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Code(pub i32);

impl Code {
    /// The code's name on the wire (`codeName`).
    pub fn name(self) -> String {
        match NAMES.binary_search_by_key(&self.0, |entry| entry.0) {
            Ok(found) => NAMES[found].1.to_owned(),
            Err(_) => format!("Location{}", self.0),
        }
    }
}

macro_rules! codes {
    ($($constant:ident $number:literal $name:literal)*) => {
        impl Code {
            $(#[doc = concat!("`", $name, "`")] pub const $constant: Code = Code($number);)*
        }
        /// Sorted by number.
        static NAMES: &[(i32, &str)] = &[$(($number, $name)),*];
    };
}

codes! {
    OK 0 "OK"
    INTERNAL_ERROR 1 "InternalError"
    BAD_VALUE 2 "BadValue"
    NO_SUCH_KEY 4 "NoSuchKey"
    GRAPH_CONTAINS_CYCLE 5 "GraphContainsCycle"
    HOST_UNREACHABLE 6 "HostUnreachable"
    HOST_NOT_FOUND 7 "HostNotFound"
    UNKNOWN_ERROR 8 "UnknownError"
    FAILED_TO_PARSE 9 "FailedToParse"
    CANNOT_MUTATE_OBJECT 10 "CannotMutateObject"
    USER_NOT_FOUND 11 "UserNotFound"
    UNSUPPORTED_FORMAT 12 "UnsupportedFormat"
    UNAUTHORIZED 13 "Unauthorized"
    TYPE_MISMATCH 14 "TypeMismatch"
    OVERFLOW 15 "Overflow"
    INVALID_LENGTH 16 "InvalidLength"
    PROTOCOL_ERROR 17 "ProtocolError"
    AUTHENTICATION_FAILED 18 "AuthenticationFailed"
    CANNOT_REUSE_OBJECT 19 "CannotReuseObject"
    ILLEGAL_OPERATION 20 "IllegalOperation"
    EMPTY_ARRAY_OPERATION 21 "EmptyArrayOperation"
    INVALID_BSON 22 "InvalidBSON"
    ALREADY_INITIALIZED 23 "AlreadyInitialized"
    LOCK_TIMEOUT 24 "LockTimeout"
    REMOTE_VALIDATION_ERROR 25 "RemoteValidationError"
    NAMESPACE_NOT_FOUND 26 "NamespaceNotFound"
    INDEX_NOT_FOUND 27 "IndexNotFound"
    PATH_NOT_VIABLE 28 "PathNotViable"
    NON_EXISTENT_PATH 29 "NonExistentPath"
    INVALID_PATH 30 "InvalidPath"
    ROLE_NOT_FOUND 31 "RoleNotFound"
    ROLES_NOT_RELATED 32 "RolesNotRelated"
    PRIVILEGE_NOT_FOUND 33 "PrivilegeNotFound"
    CANNOT_BACKFILL_ARRAY 34 "CannotBackfillArray"
    USER_MODIFICATION_FAILED 35 "UserModificationFailed"
    FILE_RENAME_FAILED 37 "FileRenameFailed"
    FILE_NOT_OPEN 38 "FileNotOpen"
    FILE_STREAM_FAILED 39 "FileStreamFailed"
    CONFLICTING_UPDATE_OPERATORS 40 "ConflictingUpdateOperators"
    FILE_ALREADY_OPEN 41 "FileAlreadyOpen"
    LOG_WRITE_FAILED 42 "LogWriteFailed"
    CURSOR_NOT_FOUND 43 "CursorNotFound"
    NO_MATCHING_DOCUMENT 47 "NoMatchingDocument"
    NAMESPACE_EXISTS 48 "NamespaceExists"
    MAX_TIME_MS_EXPIRED 50 "MaxTimeMSExpired"
    MANUAL_INTERVENTION_REQUIRED 51 "ManualInterventionRequired"
    DOLLAR_PREFIXED_FIELD_NAME 52 "DollarPrefixedFieldName"
    INVALID_ID_FIELD 53 "InvalidIdField"
    NOT_SINGLE_VALUE_FIELD 54 "NotSingleValueField"
    INVALID_DB_REF 55 "InvalidDBRef"
    EMPTY_FIELD_NAME 56 "EmptyFieldName"
    DOTTED_FIELD_NAME 57 "DottedFieldName"
    ROLE_MODIFICATION_FAILED 58 "RoleModificationFailed"
    COMMAND_NOT_FOUND 59 "CommandNotFound"
    SHARD_KEY_NOT_FOUND 61 "ShardKeyNotFound"
    OPLOG_OPERATION_UNSUPPORTED 62 "OplogOperationUnsupported"
    WRITE_CONCERN_FAILED 64 "WriteConcernFailed"
    MULTIPLE_ERRORS_OCCURRED 65 "MultipleErrorsOccurred"
    IMMUTABLE_FIELD 66 "ImmutableField"
    CANNOT_CREATE_INDEX 67 "CannotCreateIndex"
    INDEX_ALREADY_EXISTS 68 "IndexAlreadyExists"
    AUTH_SCHEMA_INCOMPATIBLE 69 "AuthSchemaIncompatible"
    SHARD_NOT_FOUND 70 "ShardNotFound"
    REPLICA_SET_NOT_FOUND 71 "ReplicaSetNotFound"
    INVALID_OPTIONS 72 "InvalidOptions"
    INVALID_NAMESPACE 73 "InvalidNamespace"
    NODE_NOT_FOUND 74 "NodeNotFound"
    WRITE_CONCERN_LEGACY_OK 75 "WriteConcernLegacyOK"
    NO_REPLICATION_ENABLED 76 "NoReplicationEnabled"
    UNKNOWN_REPL_WRITE_CONCERN 79 "UnknownReplWriteConcern"
    DUPLICATE_KEY_VALUE 84 "DuplicateKeyValue"
    INDEX_OPTIONS_CONFLICT 85 "IndexOptionsConflict"
    INDEX_KEY_SPECS_CONFLICT 86 "IndexKeySpecsConflict"
    NETWORK_TIMEOUT 89 "NetworkTimeout"
    SHUTDOWN_IN_PROGRESS 91 "ShutdownInProgress"
    INVALID_ROLE_MODIFICATION 93 "InvalidRoleModification"
    OPERATION_FAILED 96 "OperationFailed"
    NO_PROGRESS_MADE 97 "NoProgressMade"
    DB_PATH_IN_USE 98 "DBPathInUse"
    UNSATISFIABLE_WRITE_CONCERN 100 "UnsatisfiableWriteConcern"
    WRITE_CONFLICT 112 "WriteConflict"
    COMMAND_NOT_SUPPORTED 115 "CommandNotSupported"
    CONFLICTING_OPERATION_IN_PROGRESS 117 "ConflictingOperationInProgress"
    NAMESPACE_NOT_SHARDED 118 "NamespaceNotSharded"
    INVALID_SYNC_SOURCE 119 "InvalidSyncSource"
    DOCUMENT_VALIDATION_FAILURE 121 "DocumentValidationFailure"
    COMMAND_FAILED 125 "CommandFailed"
    LOCK_FAILED 131 "LockFailed"
    FAILED_TO_SATISFY_READ_PREFERENCE 133 "FailedToSatisfyReadPreference"
    READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET 134 "ReadConcernMajorityNotAvailableYet"
    CAPPED_POSITION_LOST 136 "CappedPositionLost"
    INVALID_GEO 138 "InvalidGeo"
    READ_CONCERN_MAJORITY_NOT_ENABLED 148 "ReadConcernMajorityNotEnabled"
    INCOMPATIBLE_COLLATION_VERSION 161 "IncompatibleCollationVersion"
    VIEW_DEPTH_LIMIT_EXCEEDED 165 "ViewDepthLimitExceeded"
    COMMAND_NOT_SUPPORTED_ON_VIEW 166 "CommandNotSupportedOnView"
    OPTION_NOT_SUPPORTED_ON_VIEW 167 "OptionNotSupportedOnView"
    INVALID_PIPELINE_OPERATOR 168 "InvalidPipelineOperator"
    COMMAND_ON_SHARDED_VIEW_NOT_SUPPORTED_ON_MONGOD 169 "CommandOnShardedViewNotSupportedOnMongod"
    TOO_MANY_MATCHING_DOCUMENTS 170 "TooManyMatchingDocuments"
    CANNOT_INDEX_PARALLEL_ARRAYS 171 "CannotIndexParallelArrays"
    QUERY_PLAN_KILLED 175 "QueryPlanKilled"
    CANNOT_GROW_DOCUMENT_IN_CAPPED_NAMESPACE 178 "CannotGrowDocumentInCappedNamespace"
    AMBIGUOUS_INDEX_KEY_PATTERN 181 "AmbiguousIndexKeyPattern"
    INVALID_VIEW_DEFINITION 182 "InvalidViewDefinition"
    CLIENT_METADATA_MISSING_FIELD 185 "ClientMetadataMissingField"
    CLIENT_METADATA_APP_NAME_TOO_LARGE 186 "ClientMetadataAppNameTooLarge"
    CLIENT_METADATA_DOCUMENT_TOO_LARGE 187 "ClientMetadataDocumentTooLarge"
    CLIENT_METADATA_CANNOT_BE_MUTATED 188 "ClientMetadataCannotBeMutated"
    PRIMARY_STEPPED_DOWN 189 "PrimarySteppedDown"
    INVALID_INDEX_SPECIFICATION_OPTION 197 "InvalidIndexSpecificationOption"
    NO_SUCH_SESSION 206 "NoSuchSession"
    INVALID_UUID 207 "InvalidUUID"
    KEY_NOT_FOUND 211 "KeyNotFound"
    INCOMPLETE_TRANSACTION_HISTORY 217 "IncompleteTransactionHistory"
    CLOSE_CHANGE_STREAM 222 "CloseChangeStream"
    QUERY_FEATURE_NOT_ALLOWED 224 "QueryFeatureNotAllowed"
    TRANSACTION_TOO_OLD 225 "TransactionTooOld"
    ATOMICITY_FAILURE 226 "AtomicityFailure"
    CANNOT_IMPLICITLY_CREATE_COLLECTION 227 "CannotImplicitlyCreateCollection"
    SESSION_TRANSFER_INCOMPLETE 228 "SessionTransferIncomplete"
    CURSOR_KILLED 237 "CursorKilled"
    NOT_IMPLEMENTED 238 "NotImplemented"
    SNAPSHOT_TOO_OLD 239 "SnapshotTooOld"
    CONVERSION_FAILURE 241 "ConversionFailure"
    SNAPSHOT_UNAVAILABLE 246 "SnapshotUnavailable"
    NO_SUCH_TRANSACTION 251 "NoSuchTransaction"
    TRANSACTION_COMMITTED 256 "TransactionCommitted"
    TRANSACTION_TOO_LARGE 257 "TransactionTooLarge"
    INVALID_RESUME_TOKEN 260 "InvalidResumeToken"
    EXCEEDED_TIME_LIMIT 262 "ExceededTimeLimit"
    OPERATION_NOT_SUPPORTED_IN_TRANSACTION 263 "OperationNotSupportedInTransaction"
    PREPARED_TRANSACTION_IN_PROGRESS 267 "PreparedTransactionInProgress"
    INDEX_BUILD_ABORTED 276 "IndexBuildAborted"
    INDEX_BUILD_ALREADY_IN_PROGRESS 277 "IndexBuildAlreadyInProgress"
    CLIENT_DISCONNECT 279 "ClientDisconnect"
    CHANGE_STREAM_FATAL_ERROR 280 "ChangeStreamFatalError"
    TRANSACTION_COORDINATOR_STEPPING_DOWN 281 "TransactionCoordinatorSteppingDown"
    CHANGE_STREAM_HISTORY_LOST 286 "ChangeStreamHistoryLost"
    TRANSACTION_EXCEEDED_LIFETIME_LIMIT_SECONDS 290 "TransactionExceededLifetimeLimitSeconds"
    NO_QUERY_EXECUTION_PLANS 291 "NoQueryExecutionPlans"
    QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED 292 "QueryExceededMemoryLimitNoDiskUseAllowed"
    OBJECT_IS_BUSY 314 "ObjectIsBusy"
    CHANGE_STREAM_INVALIDATED 321 "ChangeStreamInvalidated"
    API_MISMATCH_ERROR 322 "APIMismatchError"
    API_STRICT_ERROR 323 "APIStrictError"
    API_DEPRECATION_ERROR 324 "APIDeprecationError"
    API_VERSION_ERROR 326 "APIVersionError"
    UNSUPPORTED_OP_QUERY_COMMAND 352 "UnsupportedOpQueryCommand"
    CANNOT_CONVERT_INDEX_TO_UNIQUE 359 "CannotConvertIndexToUnique"
    COLLECTION_UUID_MISMATCH 361 "CollectionUUIDMismatch"
    USER_WRITES_BLOCKED 371 "UserWritesBlocked"
    REAUTHENTICATION_REQUIRED 391 "ReauthenticationRequired"
    QUERY_REJECTED_BY_SETTINGS 411 "QueryRejectedBySettings"
    SOCKET_EXCEPTION 9001 "SocketException"
    NOT_WRITABLE_PRIMARY 10107 "NotWritablePrimary"
    BSON_OBJECT_TOO_LARGE 10334 "BSONObjectTooLarge"
    DUPLICATE_KEY 11000 "DuplicateKey"
    INTERRUPTED_AT_SHUTDOWN 11600 "InterruptedAtShutdown"
    INTERRUPTED 11601 "Interrupted"
    INTERRUPTED_DUE_TO_REPL_STATE_CHANGE 11602 "InterruptedDueToReplStateChange"
    CURSOR_IN_USE 12051 "CursorInUse"
    DATABASE_DIFFER_CASE 13297 "DatabaseDifferCase"
    STALE_CONFIG 13388 "StaleConfig"
    NOT_PRIMARY_NO_SECONDARY_OK 13435 "NotPrimaryNoSecondaryOk"
    NOT_PRIMARY_OR_SECONDARY 13436 "NotPrimaryOrSecondary"
    OUT_OF_DISK_SPACE 14031 "OutOfDiskSpace"
    KEY_TOO_LONG 17280 "KeyTooLong"
}
