//! A real Redis server beside us, and as much of its protocol as this needs.

use crate::Outcome;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PORT: &str = "16399";

/// A server and a connection to it; the server ends with it.
pub(crate) struct Redis {
    child: Child,
    stream: TcpStream,
    replies: BufReader<TcpStream>,
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command as bytes.
pub(crate) fn command(batch: &mut Vec<u8>, words: &[&str]) {
    batch.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        batch.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
}

impl Redis {
    /// Starts a server with its files in a folder; nothing if there is none on the path.
    pub(crate) fn start(folder: &Path, policy: &str) -> Outcome<Option<Redis>> {
        std::fs::create_dir_all(folder)?;
        let place = folder.to_str().ok_or("the folder's name is no text")?;
        let started = Command::new("redis-server")
            .args(["--port", PORT, "--dir", place, "--appendonly", "yes", "--appendfsync", policy, "--save", ""])
            .stdout(Stdio::null())
            .spawn();
        let Ok(mut child) = started else {
            println!("no redis-server on the path");
            return Ok(None);
        };
        let stream = loop {
            match TcpStream::connect(format!("127.0.0.1:{PORT}")) {
                Ok(stream) => break stream,
                Err(_) if child.try_wait()?.is_some() => return Err("redis-server ended by itself".into()),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        };
        stream.set_nodelay(true)?;
        let replies = BufReader::new(stream.try_clone()?);
        Ok(Some(Redis { child, stream, replies }))
    }

    /// Sends commands and reads so many replies.
    pub(crate) fn call(&mut self, batch: &[u8], replies: usize) -> Outcome<Vec<String>> {
        self.stream.write_all(batch)?;
        let mut found = Vec::new();
        for _ in 0..replies {
            self.reply(&mut found)?;
        }
        Ok(found)
    }

    /// Reads a reply: its texts, an array's one by one.
    fn reply(&mut self, found: &mut Vec<String>) -> Outcome<()> {
        let mut line = String::new();
        if self.replies.read_line(&mut line)? == 0 {
            return Err("Redis is gone".into());
        }
        let (kind, rest) = (line.as_bytes()[0], line[1..].trim_end());
        match kind {
            b'*' => {
                for _ in 0..rest.parse::<usize>()? {
                    self.reply(found)?;
                }
            }
            b'$' if rest != "-1" => {
                let mut text = vec![0; rest.parse::<usize>()? + 2];
                self.replies.read_exact(&mut text)?;
                text.truncate(text.len() - 2);
                found.push(String::from_utf8(text)?);
            }
            b'-' => return Err(rest.to_owned().into()),
            _ => found.push(rest.to_owned()),
        }
        Ok(())
    }

    /// The server's resident memory in bytes.
    pub(crate) fn resident(&self) -> u64 {
        sheafdb_bench::memory_mb(&self.child.id().to_string()).0 << 20
    }
}
