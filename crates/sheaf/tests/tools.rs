//! The tools that move documents, as their users run them.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn sheaf(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sheaf")).args(arguments).output().unwrap()
}

/// Runs the tool and gives what it printed; it must succeed.
fn run(arguments: &[&str]) -> String {
    let done = sheaf(arguments);
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{arguments:?}: {said}");
    String::from_utf8(done.stdout).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Orders as JSON lines, with values of many types.
fn orders(count: usize) -> String {
    let order = |n: usize| {
        format!(
            "{{\"_id\":{n},\"city\":\"{}\",\"at\":{{\"$date\":\"2026-05-01T00:00:{:02}Z\"}},\"total\":{{\"$numberDecimal\":\"{n}.50\"}},\"lines\":[{{\"sku\":\"a\",\"n\":{}}}]}}\n",
            ["Lyon", "Porto", "Ghent"][n % 3],
            n % 60,
            n % 7
        )
    };
    (0..count).map(order).collect()
}

fn import(folder: &Path, data: &Path, count: usize) {
    let file = folder.join("orders.jsonl");
    std::fs::write(&file, orders(count)).unwrap();
    run(&["import", text(&file), "--to", text(data), "--db", "shop", "--collection", "orders", "--quiet"]);
}

fn export(data: &str) -> String {
    let common = ["export", data, "--db", "shop", "--collection", "orders", "--sort", "{\"_id\":1}"];
    run(&[&common[..], &["--json-format", "canonical"]].concat())
}

#[test]
fn what_is_imported_is_exported_and_survives_dump_and_restore() {
    let folder = tempfile::tempdir().unwrap();
    let (data, dump, again) = (folder.path().join("data"), folder.path().join("dump"), folder.path().join("again"));
    import(folder.path(), &data, 2500);
    let before = export(text(&data));
    assert_eq!(before.lines().count(), 2500);
    for gzip in [false, true] {
        let mut arguments = vec!["dump", text(&data), "--out", text(&dump), "--quiet", "--json"];
        if gzip {
            arguments.push("--gzip");
        }
        let said = run(&arguments);
        assert!(said.contains("\"documents\":2500"), "{said}");
        let name = if gzip { "orders.bson.gz" } else { "orders.bson" };
        assert!(dump.join("shop").join(name).is_file());
        run(&["restore", text(&dump), "--to", text(&again), "--quiet"]);
        assert_eq!(export(text(&again)), before);
        // Once more: what is there already is left as it is.
        run(&["restore", text(&dump), "--to", text(&again), "--quiet"]);
        std::fs::remove_dir_all(&again).unwrap();
        std::fs::remove_dir_all(&dump).unwrap();
    }
}

#[test]
fn csv_goes_in_with_types_and_comes_out_by_dotted_names() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("p.csv"));
    std::fs::write(
        &file,
        "_id.int32(),name.string(),price.amount.decimal(),price.currency.string(),when.date()\n\
         1,\"Lamp, brass\",49.00,EUR,2026-05-01\n2,007,1.10,EUR,2026-05-02T10:00:00Z\n",
    )
    .unwrap();
    let place = ["--to", text(&data), "--db", "shop", "--collection", "products", "--quiet"];
    let typed = ["--type", "csv", "--headerline", "--columns-have-types"];
    run(&[&["import", text(&file)], &place[..], &typed[..]].concat());
    let from = ["export", text(&data), "--db", "shop", "--collection", "products", "--sort", "{\"_id\":1}"];
    let out = run(&[&from[..], &["--type", "csv", "--fields", "name,price.amount,when"]].concat());
    assert_eq!(
        out,
        "name,price.amount,when\n\"Lamp, brass\",49.00,2026-05-01T00:00:00Z\n007,1.10,2026-05-02T10:00:00Z\n"
    );
    std::fs::write(&file, "_id,name\n2,Chair\n3,Table\n").unwrap();
    let merge = ["--type", "csv", "--headerline", "--mode", "merge"];
    run(&[&["import", text(&file)], &place[..], &merge[..]].concat());
    let out = run(&[&from[..], &["--type", "csv", "--fields", "_id,name,price.amount", "--no-header-line"]].concat());
    assert_eq!(out, "1,\"Lamp, brass\",49.00\n2,Chair,1.10\n3,Table,\n");
}

#[test]
fn a_copy_has_the_same_documents_and_can_be_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    import(folder.path(), &data, 1200);
    let said = run(&["copy", text(&data), text(&copy), "--once", "--quiet"]);
    assert!(said.contains("the same documents on both sides"), "{said}");
    assert_eq!(export(text(&copy)), export(text(&data)));
    // What changed since is caught up with from where the copy was.
    let more = folder.path().join("more.jsonl");
    std::fs::write(&more, "{\"_id\":5,\"city\":\"Bergen\"}\n{\"_id\":90000}\n").unwrap();
    let place = ["--to", text(&data), "--db", "shop", "--collection", "orders", "--mode", "upsert", "--quiet"];
    run(&[&["import", text(&more)], &place[..]].concat());
    let said = run(&["copy", text(&data), text(&copy), "--once", "--quiet"]);
    assert!(said.contains("2 writes") && said.contains("the same documents"), "{said}");
    assert_eq!(export(text(&copy)), export(text(&data)));
}

#[test]
fn a_backup_is_verified_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (data, backup, again) = (folder.path().join("data"), folder.path().join("backup"), folder.path().join("again"));
    import(folder.path(), &data, 800);
    run(&["backup", "create", text(&data), "--to", text(&backup), "--quiet"]);
    let before = export(text(&data));
    let more = folder.path().join("more.jsonl");
    std::fs::write(&more, "{\"_id\":90000}\n").unwrap();
    run(&["import", text(&more), "--to", text(&data), "--db", "shop", "--collection", "orders", "--quiet"]);
    let said = run(&["backup", "verify", text(&backup), "--quiet", "--json"]);
    assert!(said.contains("\"valid\":true") && said.contains("\"documents\":800"), "{said}");
    run(&["backup", "restore", text(&backup), "--data", text(&again), "--quiet"]);
    assert_eq!(export(text(&again)), before);
    run(&["backup", "append", text(&data), "--to", text(&backup), "--quiet"]);
    let said = run(&["backup", "verify", text(&backup), "--quiet", "--json"]);
    assert!(said.contains("\"documents\":801"), "{said}");
    let early = sheaf(&["backup", "restore", text(&backup), "--data", text(&folder.path().join("x")), "--to", "5"]);
    assert!(!early.status.success());
}

#[test]
fn a_backup_of_a_folder_whose_model_is_kept_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    let (data, backup) = (folder.path().join("data"), folder.path().join("backup"));
    run(&["apply", concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/shop"), text(&data), "--yes"]);
    run(&["backup", "create", text(&data), "--to", text(&backup), "--quiet"]);
    let said = run(&["backup", "verify", text(&backup), "--quiet", "--json"]);
    assert!(said.contains("\"valid\":true"), "{said}");
}

const LIBRARY: &str = r#"
entity author collection=authors id=int {
  count bookCount of=book by=authorId
}
entity book collection=books id=int {
  ref authorId to=author
  states status start=ordered history=steps max=8 { to shelved from=ordered }
  version
}
"#;

#[test]
fn a_kept_folder_is_restored_and_copied_around_its_model_and_imported_through_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (data, dump, again, model) = (path("data"), path("dump"), path("again"), path("library.sheaf.kdl"));
    let put = |to: &Path, collection: &str, lines: &str| {
        let file = path("lines.jsonl");
        std::fs::write(&file, lines).unwrap();
        let place = ["--to", text(to), "--db", "library", "--collection", collection, "--quiet"];
        sheaf(&[&["import", text(&file)], &place[..], &["--stop-on-error"]].concat())
    };
    let books =
        |data: &Path| run(&["export", text(data), "--db", "library", "--collection", "books", "--sort", "{\"_id\":1}"]);
    let authors = |data: &Path| run(&["export", text(data), "--db", "library", "--collection", "authors"]);
    std::fs::write(&model, LIBRARY).unwrap();
    run(&["apply", text(&model), text(&data), "--yes"]);
    assert!(put(&data, "authors", "{\"_id\":1}\n").status.success());
    assert!(put(&data, "books", "{\"_id\":1,\"authorId\":1}\n{\"_id\":2,\"authorId\":1}\n").status.success());
    assert!(authors(&data).contains("\"bookCount\":2"), "an import is counted");
    let refused = put(&data, "books", "{\"_id\":3,\"status\":\"shelved\"}\n");
    assert!(!refused.status.success(), "an import is held to the model");

    // A book further on in its life can be restored: it was there before.
    let step = "{\"_id\":2,\"status\":\"shelved\"}\n";
    let file = path("step.jsonl");
    std::fs::write(&file, step).unwrap();
    run(&[
        "import",
        text(&file),
        "--to",
        text(&data),
        "--db",
        "library",
        "--collection",
        "books",
        "--mode",
        "merge",
        "--quiet",
    ]);
    run(&["dump", text(&data), "--out", text(&dump), "--quiet"]);
    let said = run(&["restore", text(&dump), "--to", text(&again), "--quiet"]);
    assert!(said.contains("audited library"), "{said}");
    assert_eq!((books(&again), authors(&again)), (books(&data), authors(&data)));
    assert!(books(&again).contains("shelved"));

    // A part of it: what is kept follows.
    assert!(put(&data, "books", "{\"_id\":9,\"authorId\":1}\n").status.success());
    run(&[
        "restore",
        text(&dump),
        "--to",
        text(&data),
        "--db",
        "library",
        "--collection",
        "books",
        "--drop",
        "--quiet",
    ]);
    assert!(authors(&data).contains("\"bookCount\":2"), "{}", authors(&data));
    let audit = run(&["audit", text(&data), "--database", "library", "--json"]);
    assert!(!audit.contains("\"drifted\": 1"), "{audit}");

    let copied = path("copied");
    run(&["copy", text(&data), text(&copied), "--once", "--quiet"]);
    assert_eq!((books(&copied), authors(&copied)), (books(&data), authors(&data)));
    let served = serve(&copied, &[]);
    let refused = sheaf(&["restore", text(&dump), "--to", &served.url, "--quiet"]);
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && why.contains("keeps a model of library"), "{why}");
    assert!(get(&served.metrics, "/metrics").contains("sheaf_model_filling 0"));
}

struct Served {
    child: Child,
    url: String,
    metrics: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(data: &Path, arguments: &[&str]) -> Served {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sheaf"))
        .args(["serve", "--port", "0", "--metrics-port", "0", "--data", text(data)])
        .args(arguments)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (sender, lines) = std::sync::mpsc::channel();
    for stream in [Box::new(out) as Box<dyn Read + Send>, Box::new(err)] {
        let sender = sender.clone();
        std::thread::spawn(move || {
            BufReader::new(stream).lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
    }
    let (mut url, mut metrics) = (None, None);
    while url.is_none() || metrics.is_none() {
        let line = lines.recv_timeout(std::time::Duration::from_secs(30)).expect("the server says where it listens");
        let word = |start: &str| line.find(start).map(|at| line[at..].split_whitespace().next().unwrap().to_owned());
        url = url.or_else(|| word("mongodb://").map(|url| url.trim_end_matches('/').to_owned()));
        metrics = metrics.or_else(|| word("http://"));
    }
    Served { child, url: url.unwrap(), metrics: metrics.unwrap() }
}

fn get(url: &str, path: &str) -> String {
    let host = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_running_server_is_measured_backed_up_and_copied() {
    let folder = tempfile::tempdir().unwrap();
    let (data, backup, copy) = (folder.path().join("data"), folder.path().join("backup"), folder.path().join("copy"));
    let server = serve(&data, &["--document-alarm", "2000"]);
    let url = format!("{}/?directConnection=true", server.url);
    let file = folder.path().join("orders.jsonl");
    std::fs::write(&file, orders(500)).unwrap();
    run(&["import", text(&file), "--to", &url, "--db", "shop", "--collection", "orders", "--quiet"]);
    assert!(get(&server.metrics, "/health").contains("\"status\":\"ok\""));
    std::fs::write(&file, format!("{{\"_id\":\"large\",\"text\":\"{}\"}}\n", "x".repeat(3000))).unwrap();
    run(&["import", text(&file), "--to", &url, "--db", "shop", "--collection", "notes", "--quiet"]);
    let metrics = get(&server.metrics, "/metrics");
    assert!(metrics.contains("sheaf_operations_total{kind=\"insert\"} 501\n"), "{metrics}");
    assert!(metrics.contains("sheaf_collection_documents{database=\"shop\",collection=\"orders\"} 500\n"));
    assert!(metrics.contains("sheaf_document_alarms 1\n"));
    let health = get(&server.metrics, "/health");
    assert!(health.contains("degraded") && health.contains("shop.notes"), "{health}");
    let line = run(&["top", &url, "--rows", "1", "--interval", "0.2", "--json"]);
    assert!(line.contains("\"conn\"") && !line.contains("\"overlay\":null"), "{line}");
    run(&["backup", "create", &url, "--to", text(&backup), "--quiet"]);
    let said = run(&["backup", "verify", text(&backup), "--quiet", "--json"]);
    assert!(said.contains("\"documents\":501"), "{said}");
    let said = run(&["copy", &url, text(&copy), "--once", "--quiet", "--db", "shop"]);
    assert!(said.contains("compared 2 collections"), "{said}");
    assert_eq!(export(text(&copy)), export(&url));
    let back = folder.path().join("back.jsonl");
    std::fs::write(&back, "{\"_id\":-1}\n").unwrap();
    run(&["import", text(&back), "--to", text(&copy), "--db", "shop", "--collection", "orders", "--quiet"]);
    let said = run(&["copy", text(&copy), &url, "--once", "--quiet", "--db", "shop", "--drop"]);
    assert!(said.contains("compared 2 collections"), "{said}");
    assert_eq!(export(&url).lines().count(), 501);
}
