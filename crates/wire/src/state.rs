//! What all connections share: the configuration, the registries, the counters and the clock.

use crate::auth::{Name, Users};
use crate::config::Config;
use crate::fail_points::FailPoints;
use crate::operation::Operation;
use crate::profiler::Profiler;
use crate::session::Sessions;
use crate::stream::Stream;
use crate::usage::Usage;
use bson::oid::ObjectId;
use bson::{RawDocumentBuf, Timestamp};
use engine::{Code, Engine};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;

/// Requests take their memory from the budget in units of this many bytes.
pub(crate) const BUDGET_UNIT_BYTES: usize = 4096;

/// The state behind all connections.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) engine: Engine,
    pub(crate) profiler: Profiler,
    pub(crate) usage: Usage,
    /// Where test commands are enabled.
    pub(crate) fail_points: Option<FailPoints>,
    /// Whether clients must authenticate.
    pub(crate) requires_auth: bool,
    pub(crate) started: Instant,
    /// Identifies this run in `topologyVersion`.
    pub(crate) process_id: ObjectId,
    pub(crate) metrics: Metrics,
    pub(crate) sessions: Sessions,
    pub(crate) users: Users,
    pub(crate) parameters: RwLock<BTreeMap<String, bson::Bson>>,
    /// How queries of some shapes are run.
    pub(crate) query_settings: RwLock<crate::command::query_settings::AllSettings>,
    /// The reason why writes of users are refused, if they are.
    pub(crate) write_block: RwLock<Option<&'static str>>,
    /// The milliseconds that reads may take where they don't say; zero for any.
    pub(crate) default_max_time_ms: AtomicU64,
    /// Memory for large requests, in units of [`BUDGET_UNIT_BYTES`].
    pub(crate) request_memory: Arc<Semaphore>,
    /// Set once; wakes those who await a change of the topology.
    pub(crate) stopping: AtomicBool,
    pub(crate) stop: Notify,
    connections: Mutex<HashMap<u64, Arc<ConnectionInfo>>>,
    next_connection: AtomicU64,
    next_operation: AtomicI32,
    next_message: AtomicI32,
}

impl Shared {
    /// The state of a server that starts.
    ///
    /// # Errors
    /// Users that can't be read.
    pub(crate) fn new(config: Config, engine: Engine) -> engine::Result<Shared> {
        Ok(Shared {
            profiler: Profiler::default(),
            usage: Usage::default(),
            fail_points: config.test_commands.then(FailPoints::default),
            requires_auth: config.requires_auth(),
            started: Instant::now(),
            process_id: ObjectId::new(),
            metrics: Metrics::default(),
            sessions: Sessions::default(),
            users: Users::load(engine.clone())?,
            query_settings: RwLock::new(crate::command::query_settings::load(&engine)?),
            write_block: RwLock::new(crate::command::write_block::load(&engine)?),
            default_max_time_ms: AtomicU64::new(crate::command::cluster_parameters::default_max_time_ms(&engine)?),
            engine,
            parameters: RwLock::new(crate::command::parameters::defaults(config.test_commands)),
            request_memory: Arc::new(Semaphore::new(config.request_memory_bytes / BUDGET_UNIT_BYTES)),
            stopping: AtomicBool::new(false),
            stop: Notify::new(),
            connections: Mutex::new(HashMap::new()),
            next_connection: AtomicU64::new(1),
            next_operation: AtomicI32::new(1),
            next_message: AtomicI32::new(1),
            config,
        })
    }

    /// Enters a connection into the registry.
    pub(crate) fn register(self: &Arc<Shared>, remote: String, local: String, is_local: bool) -> Arc<ConnectionInfo> {
        let info = Arc::new(ConnectionInfo {
            id: self.next_connection.fetch_add(1, Ordering::Relaxed),
            remote,
            local,
            is_local,
            uuid: bson::Uuid::new().bytes(),
            activity: AtomicU8::new(IDLE),
            stream: Mutex::new(None),
            abort: Mutex::new(None),
            metadata: Mutex::new(None),
            user: Mutex::new(None),
            operation: Mutex::new(None),
        });
        self.connections.lock().insert(info.id, info.clone());
        info
    }

    /// Takes a connection out of the registry.
    pub(crate) fn unregister(&self, info: &ConnectionInfo) {
        self.connections.lock().remove(&info.id);
        info.stream.lock().take();
    }

    /// All connections, in the order of their numbers.
    pub(crate) fn connections(&self) -> Vec<Arc<ConnectionInfo>> {
        let mut all: Vec<_> = self.connections.lock().values().cloned().collect();
        all.sort_by_key(|info| info.id);
        all
    }

    /// Interrupts operations whose clients have gone, where these operations are of no use then.
    pub(crate) fn interrupt_deserted(&self, after: Duration) {
        let connections = self.connections.lock();
        for info in connections.values() {
            let Some(operation) = info.operation.try_lock().and_then(|operation| operation.clone()) else { continue };
            if !operation.ends_with_client || operation.is_interrupted() || operation.started.elapsed() < after {
                continue;
            }
            let is_deserted = info.stream.try_lock().is_some_and(|s| s.as_ref().is_some_and(Stream::is_deserted));
            if is_deserted {
                tracing::debug!(connection = info.id, operation = operation.id, "interrupted: its client has gone");
                operation.interrupt(Code::CLIENT_DISCONNECT);
            }
        }
    }

    /// How many connections are open.
    pub(crate) fn connection_count(&self) -> usize {
        self.connections.lock().len()
    }

    pub(crate) fn next_operation_id(&self) -> i32 {
        self.next_operation.fetch_add(1, Ordering::Relaxed) & i32::MAX
    }

    pub(crate) fn next_message_id(&self) -> i32 {
        self.next_message.fetch_add(1, Ordering::Relaxed) & i32::MAX
    }

    /// The cluster time.
    pub(crate) fn cluster_time(&self) -> Timestamp {
        self.engine.cluster_time()
    }
}

/// The connection waits for a request: it may be cut.
const IDLE: u8 = 0;
/// The connection runs a request or writes its reply: it ends by itself.
const BUSY: u8 = 1;
/// The connection was cut while idle.
const CUT: u8 = 2;

/// What others may know of a connection.
pub(crate) struct ConnectionInfo {
    pub(crate) id: u64,
    pub(crate) remote: String,
    pub(crate) local: String,
    /// Whether the peer is on this machine, for the localhost exception.
    pub(crate) is_local: bool,
    /// Identifies the connection in `connectionStatus`.
    pub(crate) uuid: [u8; 16],
    pub(crate) metadata: Mutex<Option<RawDocumentBuf>>,
    /// Who is logged in.
    pub(crate) user: Mutex<Option<Name>>,
    pub(crate) operation: Mutex<Option<Arc<Operation>>>,
    /// The socket, while a command runs.
    pub(crate) stream: Mutex<Option<Stream>>,
    pub(crate) abort: Mutex<Option<AbortHandle>>,
    activity: AtomicU8,
}

impl ConnectionInfo {
    /// Says that a request has come; false if the connection was cut in the same moment.
    pub(crate) fn begin(&self) -> bool {
        self.activity.compare_exchange(IDLE, BUSY, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Says that the connection waits again.
    pub(crate) fn rest(&self) {
        self.activity.store(IDLE, Ordering::Release);
    }

    /// Ends the connection if it waits.
    pub(crate) fn cut_if_idle(&self) {
        if self.activity.compare_exchange(IDLE, CUT, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.cut();
        }
    }

    /// Ends the connection whatever it does.
    pub(crate) fn cut(&self) {
        if let Some(abort) = self.abort.lock().take() {
            abort.abort();
        }
    }
}

macro_rules! counters {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {
        /// Counters since the start, for `serverStatus`.
        #[derive(Debug, Default)]
        pub(crate) struct Metrics {
            $($(#[$meta])* pub(crate) $name: AtomicU64),*
        }
    };
}

counters! {
    connections_created,
    connections_rejected,
    bytes_in,
    bytes_out,
    requests,
    insert,
    query,
    update,
    delete,
    getmore,
    command,
    asserts_user,
    scram_sha_1_received,
    scram_sha_1_successful,
    scram_sha_256_received,
    scram_sha_256_successful,
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
