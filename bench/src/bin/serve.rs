//! The server that the measurements run against: the wire layer over an engine on a folder, with the log's flush in place
//! or stubbed out. It prints its address and serves until its standard input ends.
//!
//! `serve <folder> durable|stubbed [model file]`: with a model, the database `shop` is kept by it.

use engine::storage::Flush;
use engine::{Engine, Options};
use model::keep::Keeper;
use model::keep::embedded::ModelHook;
use model::problem::Sources;
use std::path::PathBuf;
use std::sync::Arc;
use wire::{Address, Config, Listen, Server};

/// The allocator of the `sheaf` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("a folder"));
    let mut options = Options::system();
    if arguments.next().as_deref() == Some("stubbed") {
        options.storage.flush = Flush::Skip;
    }
    let engine = Engine::open(&folder, options).expect("the folder opens");
    if let Some(file) = arguments.next() {
        let mut sources = Sources::default();
        sources.push(file.clone(), std::fs::read_to_string(&file).expect("the model's file"));
        let checked = model::parse(sources).unwrap_or_else(|problems| panic!("{problems:?}"));
        engine.add_hook(Arc::new(ModelHook::new(Keeper::new(&checked.model).unwrap(), "shop")));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listen = vec![Listen::Tcp { host: "127.0.0.1".to_owned(), port: 0 }];
        let server = Server::bind(Config { listen, ..Config::default() }, engine.clone()).await.unwrap();
        for address in server.addresses() {
            if let Address::Tcp(address) = address {
                println!("{address}");
            }
        }
        server
            .serve(async {
                let wait = || std::io::Read::read_to_end(&mut std::io::stdin(), &mut Vec::new());
                let _ = tokio::task::spawn_blocking(wait).await;
            })
            .await;
    });
    drop(runtime);
    engine.close().unwrap();
}
