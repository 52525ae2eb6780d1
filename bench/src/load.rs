//! The load: connections that send prepared requests in a closed loop, all served by one thread.

use crate::message::{body, is_ok};
use bson::RawDocument;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What a run gave.
pub struct Outcome {
    pub count: u64,
    pub elapsed: Duration,
    /// The wait for each reply, sorted.
    pub waits: Vec<Duration>,
}

impl Outcome {
    pub fn per_second(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64()
    }

    /// Adds a later run of the same.
    pub fn absorb(&mut self, later: Outcome) {
        self.count += later.count;
        self.elapsed += later.elapsed;
        self.waits.extend(later.waits);
        self.waits.sort_unstable();
    }

    pub fn percentile(&self, part: f64) -> Duration {
        if self.waits.is_empty() {
            return Duration::ZERO;
        }
        self.waits[((self.waits.len() as f64 * part) as usize).min(self.waits.len() - 1)]
    }
}

struct Peer {
    stream: TcpStream,
    out: Vec<u8>,
    written: usize,
    reply: Vec<u8>,
    sent: Instant,
}

/// Sends requests over `connections` for a while; `next` writes the next request of a connection.
pub fn run(address: SocketAddr, connections: usize, time: Duration, next: impl FnMut(usize, &mut Vec<u8>)) -> Outcome {
    run_checked(address, connections, time, next, |_, frame| assert!(is_ok(frame), "{:?}", body(frame)))
}

/// The same, with every reply shown to `check`.
pub fn run_checked(
    address: SocketAddr,
    connections: usize,
    time: Duration,
    next: impl FnMut(usize, &mut Vec<u8>),
    check: impl FnMut(usize, &[u8]),
) -> Outcome {
    let started = Instant::now();
    run_until(address, connections, || started.elapsed() >= time, next, check)
}

/// The same, until `over` says so.
pub fn run_until(
    address: SocketAddr,
    connections: usize,
    over: impl Fn() -> bool,
    next: impl FnMut(usize, &mut Vec<u8>),
    check: impl FnMut(usize, &[u8]),
) -> Outcome {
    run_framed(address, connections, over, next, check, is_frame)
}

/// Whether a reply of the MongoDB protocol is whole.
fn is_frame(reply: &[u8]) -> bool {
    reply.first_chunk().is_some_and(|length| reply.len() >= u32::from_le_bytes(*length) as usize)
}

/// The same for any protocol: `whole` says when a reply is complete.
pub fn run_framed(
    address: SocketAddr,
    connections: usize,
    over: impl Fn() -> bool,
    mut next: impl FnMut(usize, &mut Vec<u8>),
    mut check: impl FnMut(usize, &[u8]),
    whole: impl Fn(&[u8]) -> bool,
) -> Outcome {
    let mut poll = Poll::new().expect("epoll");
    let mut peers: Vec<Peer> = (0..connections).map(|_| connect(address)).collect();
    for (number, peer) in peers.iter_mut().enumerate() {
        poll.registry().register(&mut peer.stream, Token(number), Interest::READABLE | Interest::WRITABLE).unwrap();
    }
    let mut events = Events::with_capacity(1024);
    let mut waits = Vec::with_capacity(1 << 20);
    let mut chunk = vec![0; 1 << 16];
    let started = Instant::now();
    for (number, peer) in peers.iter_mut().enumerate() {
        peer.begin(|out| next(number, out));
    }
    while !over() {
        poll.poll(&mut events, Some(Duration::from_millis(100))).unwrap();
        for event in &events {
            let number = event.token().0;
            let peer = &mut peers[number];
            peer.flush();
            if event.is_readable() && peer.read(&mut chunk, &whole) {
                waits.push(peer.sent.elapsed());
                check(number, &peer.reply);
                peer.reply.clear();
                peer.begin(|out| next(number, out));
            }
        }
    }
    let elapsed = started.elapsed();
    let count = waits.len() as u64;
    waits.sort_unstable();
    Outcome { count, elapsed, waits }
}

fn connect(address: SocketAddr) -> Peer {
    let stream = std::net::TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).unwrap();
    stream.set_nonblocking(true).unwrap();
    let stream = TcpStream::from_std(stream);
    Peer { stream, out: Vec::new(), written: 0, reply: Vec::new(), sent: Instant::now() }
}

impl Peer {
    fn begin(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        self.out.clear();
        self.written = 0;
        fill(&mut self.out);
        self.sent = Instant::now();
        self.flush();
    }

    fn flush(&mut self) {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => panic!("the server closed a connection: {error}"),
            }
        }
    }

    /// Reads what is there; whether the reply is whole. Nothing can be behind it, so one read is usually enough.
    fn read(&mut self, chunk: &mut [u8], whole: impl Fn(&[u8]) -> bool) -> bool {
        loop {
            match self.stream.read(chunk) {
                Ok(0) => panic!("the server closed a connection"),
                Ok(count) => self.reply.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) => panic!("the server closed a connection: {error}"),
            }
            if whole(&self.reply) {
                return true;
            }
        }
    }
}

/// A connection for single commands, waited for.
pub struct Client(std::net::TcpStream);

impl Client {
    pub fn new(address: SocketAddr) -> Client {
        let stream = std::net::TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).unwrap();
        Client(stream)
    }

    /// Sends a prepared request and gives its reply's frame.
    pub fn send(&mut self, request: &[u8]) -> Vec<u8> {
        self.0.write_all(request).expect("the server reads");
        self.receive()
    }

    /// The next reply's frame.
    pub fn receive(&mut self) -> Vec<u8> {
        let mut frame = vec![0; 4];
        self.0.read_exact(&mut frame).expect("the server replies");
        let length = u32::from_le_bytes(frame[..4].try_into().expect("four bytes")) as usize;
        frame.resize(length, 0);
        self.0.read_exact(&mut frame[4..]).expect("the server replies");
        frame
    }

    /// Runs a command, which must succeed.
    pub fn run(&mut self, command: &RawDocument) -> bson::RawDocumentBuf {
        let mut request = Vec::new();
        crate::message::Template::new(command).write(&mut request, |_| 0);
        let frame = self.send(&request);
        assert!(is_ok(&frame), "{command:?}: {:?}", body(&frame));
        body(&frame).to_owned()
    }
}
