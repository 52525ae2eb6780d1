//! A PostgreSQL server of our own, in a temporary folder.

use postgres::{Client, NoTls};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A running server; it ends with this.
pub struct Postgres {
    folder: TempDir,
    child: Child,
    port: u16,
}

/// A program of Debian's package.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("apt-get install postgresql");
    let found =
        versions.filter_map(|version| Some(version.ok()?.path().join("bin").join(name))).find(|path| path.exists());
    found.expect("apt-get install postgresql")
}

/// A command as somebody who is not root, which the server refuses to be.
fn command(name: &str) -> Command {
    if std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() != 0) {
        return Command::new(program(name));
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program(name));
    command
}

fn run(command: &mut Command) {
    let done = command.stdout(Stdio::null()).status().expect("the program starts");
    assert!(done.success(), "{command:?}");
}

impl Postgres {
    /// Starts one whose files are in a folder, with a cache for all that is measured.
    pub fn start(place: &Path) -> Postgres {
        let folder = tempfile::tempdir_in(place).unwrap();
        if std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
            run(Command::new("chown").arg("postgres").arg(folder.path()));
        }
        let data = folder.path().join("data");
        run(command("initdb").arg("-D").arg(&data).args(["-A", "trust", "-U", "bench", "-E", "UTF8", "--locale=C"]));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = command("postgres")
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k", ""])
            .args(["-c", "shared_buffers=1GB", "-c", "work_mem=256MB", "-c", "max_wal_size=4GB"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Postgres { folder, child, port };
        for _ in 0..200 {
            if server.try_client().is_ok() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("PostgreSQL does not answer");
    }

    fn try_client(&self) -> Result<Client, postgres::Error> {
        let text = format!("host=127.0.0.1 port={} user=bench dbname=postgres", self.port);
        Client::connect(&text, NoTls)
    }

    /// A connection.
    pub fn client(&self) -> Client {
        self.try_client().expect("PostgreSQL answers")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.folder.path().join("data");
        let _ = command("pg_ctl").arg("-D").arg(data).args(["stop", "-m", "immediate"]).stdout(Stdio::null()).status();
        let _ = self.child.wait();
    }
}
