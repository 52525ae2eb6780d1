//! The server under load: a process of its own, so that its processor time and memory are its own.

use crate::load::Client;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running `serve` of this package.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    /// Starts one on a folder; its commits are flushed or not.
    pub fn start(folder: &Path, durable: bool) -> Server {
        Server::start_with(folder, durable, None)
    }

    /// The same, with a model that keeps the database `shop`.
    pub fn start_with(folder: &Path, durable: bool, model: Option<&Path>) -> Server {
        let program = std::env::current_exe().unwrap().with_file_name("serve");
        let mut child = Command::new(program)
            .arg(folder)
            .arg(if durable { "durable" } else { "stubbed" })
            .args(model)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`serve` is built beside this program: cargo build --release");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().parse().expect("serve prints its address");
        Server { child, address }
    }

    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// Its processor time so far.
    pub fn cpu(&self) -> Duration {
        crate::cpu_of(&self.child.id().to_string())
    }

    /// Its resident memory in MB: now, and at most so far.
    pub fn memory_mb(&self) -> (u64, u64) {
        crate::memory_mb(&self.child.id().to_string())
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, as a crash does.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
