//! Files: never half there, whole or refused.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use common::{network, users};
use sha2::{Digest, Sha256};
use social::{Access, Error, FILE_CHUNK, Id, Keeping, Network, NewFile, Settings};
use std::time::Duration;

fn content(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

fn new(name: &str, bytes: &[u8], access: Access) -> NewFile {
    let sha256 = Some(hex::encode(Sha256::digest(bytes)));
    NewFile { name: name.into(), content_type: "image/png".into(), length: bytes.len() as u64, sha256, access }
}

async fn put(network: &Network, owner: Id, name: &str, bytes: &[u8], access: Access) -> social::File {
    let upload = network.begin_upload(owner, &new(name, bytes, access)).await.unwrap();
    network.append_upload(owner, upload.id, 0, bytes).await.unwrap();
    network.finish_upload(owner, upload.id).await.unwrap()
}

#[tokio::test]
async fn five_mebibytes_are_21_chunks_and_every_range_reads() {
    let network = network(Settings::new(Keeping::Service)).await;
    let [ada] = users(&network, ["ada"]).await;
    let bytes = content(5_242_880, 1);
    let file = put(&network, ada, "a.png", &bytes, Access::Public).await;
    assert_eq!(file.length.div_ceil(FILE_CHUNK), 21);
    assert_eq!(file.length - 20 * FILE_CHUNK, 20_480);
    for range in [0..10, 261_119..261_121, 261_120..522_240, 5_242_879..5_242_880, 5_242_870..9_000_000, 7..5_000_000] {
        let read = network.read_file(&file, range.clone()).await.unwrap();
        let end = (range.end as usize).min(bytes.len());
        assert!(read == bytes[range.start as usize..end], "{range:?}");
    }
    assert!(network.read_file(&file, 6_000_000..7_000_000).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_upload_goes_on_after_a_break_and_nobody_sees_half_of_it() {
    let network = network(Settings::new(Keeping::Service)).await;
    let [ada, bob] = users(&network, ["ada", "bob"]).await;
    let bytes = content(700_000, 2);
    let upload = network.begin_upload(ada, &new("a.png", &bytes, Access::Public)).await.unwrap();
    let after = network.append_upload(ada, upload.id, 0, &bytes[..300_000]).await.unwrap();
    assert_eq!(after.received, FILE_CHUNK, "whole chunks are taken");
    assert!(matches!(network.finish_upload(ada, upload.id).await, Err(Error::Invalid(_))));
    assert!(matches!(network.file(ada, upload.id).await, Err(Error::UnknownFile(_))));
    assert!(matches!(network.append_upload(ada, upload.id, 0, &bytes).await, Err(Error::Changed)));
    assert!(matches!(network.upload(bob, upload.id).await, Err(Error::UnknownFile(_))));
    let at = network.upload(ada, upload.id).await.unwrap().received;
    network.append_upload(ada, upload.id, at, &bytes[at as usize..]).await.unwrap();
    let file = network.finish_upload(ada, upload.id).await.unwrap();
    assert!(network.read_file(&file, 0..700_000).await.unwrap() == bytes);
}

#[tokio::test]
async fn another_checksum_is_refused() {
    let network = network(Settings::new(Keeping::Service)).await;
    let [ada] = users(&network, ["ada"]).await;
    let upload = network.begin_upload(ada, &new("a.png", b"what was meant", Access::Public)).await.unwrap();
    network.append_upload(ada, upload.id, 0, b"what was sent!").await.unwrap();
    assert!(matches!(network.finish_upload(ada, upload.id).await, Err(Error::Corrupt { .. })));
    assert!(matches!(network.file(ada, upload.id).await, Err(Error::UnknownFile(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_replaced_file_is_the_old_one_or_the_new_one() {
    let network = network(Settings::new(Keeping::Service)).await;
    let [ada] = users(&network, ["ada"]).await;
    put(&network, ada, "face.png", &content(600_000, 0), Access::Public).await;
    let reader = {
        let network = network.clone();
        tokio::spawn(async move {
            for _ in 0..30 {
                let file = network.file_by_name(ada, ada, "face.png").await.unwrap();
                let bytes = network.read_file(&file, 0..file.length).await.unwrap();
                assert_eq!(hex::encode(Sha256::digest(&bytes)), file.sha256);
            }
        })
    };
    for seed in 1..6 {
        put(&network, ada, "face.png", &content(600_000 + usize::from(seed), seed), Access::Public).await;
    }
    reader.await.unwrap();
    assert_eq!(network.file_by_name(ada, ada, "face.png").await.unwrap().length, 600_005);
    assert_eq!(network.collect_files(Duration::from_secs(60)).await.unwrap(), 0, "readers may still need them");
    assert_eq!(network.collect_files(Duration::ZERO).await.unwrap(), 5);
    let file = network.file_by_name(ada, ada, "face.png").await.unwrap();
    assert!(network.read_file(&file, 0..file.length).await.unwrap() == content(600_005, 5));
}

#[tokio::test]
async fn abandoned_uploads_are_collected_and_permissions_hold() {
    let network = network(Settings::new(Keeping::Service)).await;
    let [ada, bob, eve] = users(&network, ["ada", "bob", "eve"]).await;
    let bytes = content(300_000, 3);
    let left = network.begin_upload(ada, &new("left.png", &bytes, Access::Owner)).await.unwrap();
    network.append_upload(ada, left.id, 0, &bytes).await.unwrap();
    let own = put(&network, ada, "own.png", &bytes, Access::Owner).await;
    let talk = network.talk_to(ada, bob).await.unwrap();
    let shared = put(&network, ada, "shared.png", &bytes, Access::Conversation(talk)).await;
    assert_eq!(network.collect_files(Duration::ZERO).await.unwrap(), 1);
    assert!(matches!(network.finish_upload(ada, left.id).await, Err(Error::UnknownFile(_))));
    assert!(network.file(ada, own.id).await.is_ok());
    assert!(matches!(network.file(bob, own.id).await, Err(Error::UnknownFile(_))));
    assert!(network.file(bob, shared.id).await.is_ok());
    assert!(matches!(network.file(eve, shared.id).await, Err(Error::UnknownFile(_))));
    assert!(matches!(network.delete_file(bob, shared.id).await, Err(Error::NotAllowed(_))));
    network.delete_file(ada, shared.id).await.unwrap();
    assert!(matches!(network.file(ada, shared.id).await, Err(Error::UnknownFile(_))));
}
