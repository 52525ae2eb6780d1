//! Several processes that serve the HTTP API on one deployment, as `sheaf serve --store` makes them.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A process of ours; it is killed when the test ends.
struct Serving {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    fn start(arguments: &[&str]) -> Serving {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sheaf"));
        let mut child = command.arg("serve").args(arguments).stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        Serving { child, log }
    }

    /// Waits until the log names an address of a scheme; gives its host and port.
    fn address(&mut self, scheme: &str) -> String {
        let mut line = String::new();
        while self.log.read_line(&mut line).unwrap() > 0 {
            if let Some(at) = line.find(scheme) {
                let rest = &line[at + scheme.len()..];
                return rest.split(['/', '"', ' ', '\n', '\u{1b}']).next().unwrap().to_owned();
            }
            line.clear();
        }
        panic!("the process ended without an address");
    }
}

fn issue(store: &str, subject: &str, roles: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sheaf"));
    let done = command.args(["token", "issue", "--store", store, "--subject", subject, "--role", roles]).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().lines().next().unwrap().trim().to_owned()
}

fn send(address: &str, token: &str, call: &str, more: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let length = body.len();
    let head = format!(
        "{call} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n{more}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    stream
}

/// One call; gives what came back, from the status on.
fn call(address: &str, token: &str, call: &str, body: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let key = format!("idempotency-key: test-{}\r\n", NEXT.fetch_add(1, Ordering::Relaxed));
    let mut answer = String::new();
    send(address, token, call, &key, body).read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 2"), "{call}: {answer}");
    answer
}

/// Live updates as they come.
struct Live(BufReader<TcpStream>);

impl Live {
    fn open(address: &str, token: &str) -> Live {
        let mut live = Live(BufReader::new(send(address, token, "GET /v1/updates", "", "")));
        // The stream says at once where it is; from then on nothing is missed.
        live.field("id:");
        live
    }

    /// The value of the next line of a name.
    fn field(&mut self, name: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            if let Some(value) = line.trim_end().strip_prefix(name) {
                return value.trim().to_owned();
            }
        }
    }
}

fn member(answer: &str, name: &str) -> String {
    let start = answer.find(&format!("\"{name}\":\"")).unwrap() + name.len() + 4;
    answer[start..].split('"').next().unwrap().to_owned()
}

#[test]
fn a_subscriber_of_one_process_sees_what_another_writes() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Serving::start(&["--data", folder.path().to_str().unwrap(), "--port", "0"]);
    let url = format!("mongodb://{}/", server.address("mongodb://"));
    let (mut one, mut other) = (
        Serving::start(&["--store", &url, "--http-port", "0"]),
        Serving::start(&["--store", &url, "--http-port", "0"]),
    );
    let (here, there) = (one.address("http://"), other.address("http://"));
    let operator = issue(&url, "ops", "operator");
    let user = |address: &str, name: &str| {
        let answer = call(address, &operator, "POST /v1/users", &format!("{{\"username\": \"{name}\"}}"));
        let id = member(&answer, "id");
        let token = issue(&url, &id, "user");
        (id, token)
    };
    let ((ada, at), (bob, bt)) = (user(&here, "ada"), user(&there, "bob"));

    let mut live = Live::open(&here, &at);
    call(&there, &bt, &format!("PUT /v1/following/{ada}"), "");
    let told = live.field("data:");
    assert!(told.contains("\"notification\"") && told.contains(&bob), "{told}");

    let mut reader = Live::open(&here, &bt);
    call(&there, &at, "POST /v1/posts", "{\"content\": \"hello\"}");
    let (place, told) = (reader.field("id:"), reader.field("data:"));
    assert!(told.contains("\"post\"") && told.contains(&ada), "{told}");
    drop(reader);

    // What comes while nobody listens is told to whoever comes back, by either process.
    let talk = member(&call(&there, &at, "POST /v1/conversations", &format!("{{\"members\": [\"{bob}\"]}}")), "id");
    call(&there, &at, &format!("POST /v1/conversations/{talk}/messages"), "{\"text\": \"are you there\"}");
    for address in [&here, &there] {
        let more = format!("last-event-id: {place}\r\n");
        let mut back = Live(BufReader::new(send(address, &bt, "GET /v1/updates", &more, "")));
        let told = back.field("data:");
        assert!(told.contains("\"message\"") && told.contains(&talk), "{told}");
    }
}
