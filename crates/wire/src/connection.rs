//! One peer: frames in, replies out, in order, until either side ends it.
//!
//! An idle connection holds no buffer: it waits until the socket is readable, reads into a fresh buffer, and lets it go once
//! the last request in it is answered. A frame that has started must arrive within a deadline; a large one first takes its
//! memory from the budget all connections share, and its sender waits in the socket meanwhile.

use crate::auth::Login;
use crate::command;
use crate::frame::{self, Compressed, Compressor, Fault, HEADER_BYTES, Header, OP_COMPRESSED};
use crate::message::Message;
use crate::session::SessionId;
use crate::state::{BUDGET_UNIT_BYTES, ConnectionInfo, Shared, count};
use crate::stream::Stream;
use crate::usage::Used;
use bytes::{Buf, Bytes, BytesMut};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// The buffer of a connection that becomes readable.
const READ_BUFFER_BYTES: usize = 8 * 1024;
/// Requests up to this size take nothing from the budget: connections are bounded, so these are too.
const SMALL_REQUEST_BYTES: usize = 64 * 1024;
/// A peer must send at least this many bytes a second of a frame it has started.
const SLOWEST_BYTES_PER_SECOND: usize = 64 * 1024;

/// Why a connection ended.
#[derive(Debug)]
pub(crate) enum Closing {
    /// The peer ended it between two requests.
    Peer,
    /// A fail point closes it.
    Fail,
    /// The server stops.
    Stopping,
    /// The peer's bytes can't be understood.
    Fault(Fault),
    /// The peer ended it within a frame.
    Cut,
    /// The peer was too slow; says at what.
    Slow(&'static str),
    /// The socket failed.
    Io(io::Error),
}

impl fmt::Display for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Closing::Peer => write!(f, "the peer closed it"),
            Closing::Fail => write!(f, "a fail point closes it"),
            Closing::Stopping => write!(f, "the server stops"),
            Closing::Fault(fault) => write!(f, "{fault}"),
            Closing::Cut => write!(f, "the peer closed it within a message"),
            Closing::Slow(what) => write!(f, "the peer was too slow to {what}"),
            Closing::Io(error) => write!(f, "socket error: {error}"),
        }
    }
}

impl From<Fault> for Closing {
    fn from(fault: Fault) -> Closing {
        Closing::Fault(fault)
    }
}

impl From<io::Error> for Closing {
    fn from(error: io::Error) -> Closing {
        Closing::Io(error)
    }
}

/// What a connection keeps from one command to the next.
pub(crate) struct Client {
    /// What others may know of it.
    pub(crate) info: Arc<ConnectionInfo>,
    /// Who is logged in.
    pub(crate) login: Login,
    /// What was negotiated in the first `hello`.
    pub(crate) compressors: Vec<Compressor>,
    /// Whether a first `hello` was answered.
    pub(crate) greeted: bool,
    /// The session noted last and when, so that a busy session is not noted with every command.
    pub(crate) noted_session: Option<(SessionId, Instant)>,
    /// The counters of the collection used last.
    pub(crate) used: Option<Used>,
}

/// Takes the connection out of the registry however its task ends.
pub(crate) struct Registered {
    pub(crate) shared: Arc<Shared>,
    pub(crate) info: Arc<ConnectionInfo>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.shared.unregister(&self.info);
    }
}

/// Serves a connection until it ends, and logs why it did.
pub(crate) async fn serve(registered: &Registered, stream: Stream) {
    let Registered { shared, info } = registered;
    let (shared, info, id) = (shared.clone(), info.clone(), info.id);
    let client = Client {
        info,
        login: Login::default(),
        compressors: Vec::new(),
        greeted: false,
        noted_session: None,
        used: None,
    };
    let mut connection = Connection { shared, stream: Some(stream), buffer: BytesMut::new(), client };
    let closing = connection.run().await;
    match &closing {
        Closing::Peer | Closing::Stopping | Closing::Fail => {
            tracing::debug!(connection = id, reason = %closing, "connection ended")
        }
        _ => tracing::warn!(
            connection = id,
            remote = %connection.client.info.remote,
            reason = %closing,
            "connection closed"
        ),
    }
    if matches!(closing, Closing::Fault(_) | Closing::Stopping) {
        let _ = timeout(Duration::from_secs(1), connection.stream().shutdown()).await;
    }
}

/// Why there is a stream whenever one is used.
const OWNED: &str = "the stream is lent only while a command runs";

struct Connection {
    shared: Arc<Shared>,
    /// Lent to the connection's registry entry while a command runs, so that a peer that goes is seen.
    stream: Option<Stream>,
    buffer: BytesMut,
    client: Client,
}

impl Connection {
    /// Serves request after request; the reason why no further one can be served.
    async fn run(&mut self) -> Closing {
        loop {
            if let Err(closing) = self.serve_one().await {
                return closing;
            }
            if self.shared.stopping.load(Ordering::Relaxed) {
                return Closing::Stopping;
            }
        }
    }

    async fn serve_one(&mut self) -> Result<(), Closing> {
        let (header, rest, _memory) = self.next_frame().await?;
        count(&self.shared.metrics.bytes_in, header.length_bytes as u64);
        count(&self.shared.metrics.requests, 1);
        if header.op_code != OP_COMPRESSED {
            let message = Message::parse(&header, rest, None)?;
            return self.answer(&message).await;
        }
        let compressed = Compressed::parse(rest)?;
        let _more_memory = self.reserve(compressed.size_bytes).await;
        let compressor = Some(compressed.compressor);
        let length_bytes = HEADER_BYTES + compressed.size_bytes;
        let header = Header { length_bytes, op_code: compressed.op_code, ..header };
        let message = Message::parse(&header, compressed.decompress()?, compressor)?;
        self.answer(&message).await
    }

    /// Runs a request and sends what it replies: nothing, one reply, or several.
    async fn answer(&mut self, message: &Message) -> Result<(), Closing> {
        let mut response_to = message.request_id;
        loop {
            let lent = self.client.info.clone();
            *lent.stream.lock() = self.stream.take();
            let answer = command::serve(&self.shared, &mut self.client, message, response_to).await;
            self.stream = lent.stream.lock().take();
            if answer.closes {
                return Err(Closing::Fail);
            }
            let Some(reply) = answer.frame else { return Ok(()) };
            self.write(&reply).await?;
            if !answer.more_to_come {
                return Ok(());
            }
            response_to = answer.request_id;
        }
    }

    fn stream(&mut self) -> &mut Stream {
        self.stream.as_mut().expect(OWNED)
    }

    async fn write(&mut self, frame: &[u8]) -> Result<(), Closing> {
        count(&self.shared.metrics.bytes_out, frame.len() as u64);
        let mut rest = frame;
        // Nearly always the socket takes all of it, and nothing has to be timed or flushed.
        if let Some(written) = self.stream().try_write(rest)? {
            rest = &rest[written..];
            if rest.is_empty() {
                return Ok(());
            }
        }
        let limit = self.shared.config.write_timeout;
        while !rest.is_empty() {
            match timeout(limit, self.stream().write(rest)).await {
                Ok(Ok(0)) => return Err(Closing::Cut),
                Ok(written) => rest = &rest[written?..],
                Err(_) => return Err(Closing::Slow("take a reply")),
            }
        }
        match timeout(limit, self.stream().flush()).await {
            Ok(flushed) => Ok(flushed?),
            Err(_) => Err(Closing::Slow("take a reply")),
        }
    }

    /// The next frame: its header, the rest of it, and the memory it took from the budget.
    async fn next_frame(&mut self) -> Result<(Header, Bytes, Option<OwnedSemaphorePermit>), Closing> {
        loop {
            if let Some(header) = Header::parse(&self.buffer)? {
                let memory = self.reserve(header.length_bytes).await;
                if self.buffer.len() < header.length_bytes {
                    self.read_rest(header.length_bytes).await?;
                }
                let mut frame = self.buffer.split_to(header.length_bytes).freeze();
                frame.advance(HEADER_BYTES);
                return Ok((header, frame, memory));
            }
            if self.buffer.is_empty() {
                self.wait().await?;
            } else {
                let limit = self.shared.config.read_timeout;
                let stream = self.stream.as_mut().expect(OWNED);
                let read = timeout(limit, stream.read_buf(&mut self.buffer)).await;
                match read {
                    Ok(Ok(0)) => return Err(Closing::Cut),
                    Ok(read) => read?,
                    Err(_) => return Err(Closing::Slow("send a message's header")),
                };
            }
        }
    }

    /// Waits, without a buffer, for the first bytes of the next request.
    async fn wait(&mut self) -> Result<(), Closing> {
        self.buffer = BytesMut::new();
        self.client.info.rest();
        let stream = self.stream.as_mut().expect(OWNED);
        stream.readable().await?;
        self.buffer.reserve(READ_BUFFER_BYTES);
        let read = stream.read_buf(&mut self.buffer).await?;
        if !self.client.info.begin() {
            return Err(Closing::Stopping);
        }
        if read == 0 { Err(Closing::Peer) } else { Ok(()) }
    }

    async fn read_rest(&mut self, length: usize) -> Result<(), Closing> {
        self.buffer.reserve(length - self.buffer.len());
        let limit = self.shared.config.read_timeout + Duration::from_secs((length / SLOWEST_BYTES_PER_SECOND) as u64);
        let buffer = &mut self.buffer;
        let stream = self.stream.as_mut().expect(OWNED);
        let all = async {
            while buffer.len() < length {
                if stream.read_buf(buffer).await? == 0 {
                    return Err(Closing::Cut);
                }
            }
            Ok(())
        };
        timeout(limit, all).await.unwrap_or(Err(Closing::Slow("send a message")))
    }

    /// Takes memory for a request of `bytes`, waiting until there is some; a small request needs none.
    async fn reserve(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        if bytes <= SMALL_REQUEST_BYTES {
            return None;
        }
        let all = self.shared.config.request_memory_bytes / BUDGET_UNIT_BYTES;
        let units = bytes.div_ceil(BUDGET_UNIT_BYTES).min(all) as u32;
        let permit = self.shared.request_memory.clone().acquire_many_owned(units).await;
        Some(permit.expect("the budget is never closed"))
    }
}

/// Compresses a reply as its request was, if that was negotiated.
pub(crate) fn compress_reply(reply: Vec<u8>, message: &Message, negotiated: &[Compressor]) -> Vec<u8> {
    match message.compressor {
        Some(compressor) if negotiated.contains(&compressor) => frame::compress(&reply, compressor),
        _ => reply,
    }
}
