//! A process that is killed in the middle of the fan-out and of chat writes: nothing is lost and nothing is there twice.
//!
//! The test starts itself again as another process and kills it without warning, again and again. Once that process is the
//! network itself, on a folder: it posts, chats, follows and likes as fast as it can, with a key for each call, and says what
//! it begins. Once it is the server of a deployment, whose clients go on when it is back. Whoever repeats what was begun,
//! with its key, has each thing once.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may end at what it did not expect; the killed process says what it does"
)]

mod common;

use social::{Assignment, Error, Id, Keeping, Network, NewPost, PageRequest, Settings};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use store::Store;

const FOLDER: &str = "SHEAF_KILL_FOLDER";
const PORT: &str = "SHEAF_KILL_PORT";
const KILLS: u64 = 4;
const USERS: usize = 10;
/// Users who call at once.
const BUSY: usize = 6;

fn settings(keeping: Keeping) -> Settings {
    Settings {
        threshold: 6,
        inbox_cap: 40,
        join_above: 1,
        fan_out_batch: 3,
        fan_out_lease: Duration::from_millis(200),
        ..common::small(keeping, Assignment::PullAbove)
    }
}

fn open(folder: &Path) -> Network {
    let store = Store::open(folder).unwrap();
    Network::keep_model(&store, "social").unwrap();
    Network::with_settings(store, "social", settings(Keeping::Model))
}

fn close(network: Network) {
    let engine = network.store().engine().unwrap().clone();
    drop(network);
    engine.close().unwrap();
}

/// The users, and their one conversation.
async fn people(network: &Network) -> (Vec<Id>, Id) {
    let mut ids = Vec::new();
    for user in 0..USERS {
        ids.push(network.user_by_name(&format!("u{user}")).await.unwrap().unwrap().id);
    }
    let group = network.conversations(ids[0], &PageRequest::first(1)).await.unwrap().items[0].id;
    (ids, group)
}

async fn settle_people(network: &Network) {
    let mut ids = Vec::new();
    for user in 0..USERS {
        ids.push(network.add_user(&format!("u{user}")).await.unwrap());
    }
    network.begin_group(ids[0], "all", &ids).await.unwrap();
}

/// One call of a user; the same again for the same number.
async fn call(network: &Network, ids: &[Id], group: Id, user: usize, number: u64) -> Result<(), Error> {
    let (me, key) = (ids[user], format!("{number}"));
    match number % 6 {
        0 => network.post_once(me, &NewPost::text(format!("{user} {number}")), &key).await.map(drop),
        1 => network.follow(me, ids[(user + 1 + number as usize / 6) % USERS]).await.map(drop),
        2 => network.join(me).await.map(drop),
        _ => network.send_once(me, group, &format!("{user} {number}"), &key).await.map(drop),
    }
}

/// Calls without end, and says what it begins.
async fn call_on(network: Network, ids: Vec<Id>, group: Id, user: usize, from: u64) {
    for number in from.. {
        println!("begun {user} {number}");
        match call(&network, &ids, group, user, number).await {
            Ok(()) | Err(Error::SelfRelation) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_process_that_gets_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    if let Ok(port) = std::env::var(PORT) {
        let engine = engine::Engine::open(Path::new(&folder), engine::Options::system()).unwrap();
        common::serve(engine, port.parse().unwrap());
        return std::future::pending().await;
    }
    let network = open(Path::new(&folder));
    let (ids, group) = people(&network).await;
    let mut from = 0;
    for id in &ids {
        from = from.max(highest(&network, *id, group).await + 10);
    }
    let mut tasks = tokio::task::JoinSet::new();
    for user in 0..BUSY {
        tasks.spawn(call_on(network.clone(), ids.clone(), group, user, from));
    }
    let working = network.clone();
    tasks.spawn(async move { working.run(std::future::pending()).await.unwrap() });
    let ended = tasks.join_next().await;
    panic!("somebody stopped: {ended:?}");
}

/// The highest number that a user has used.
async fn highest(network: &Network, user: Id, group: Id) -> u64 {
    let number = |text: &str| text.split(' ').nth(1).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    let posts = network.posts_of(user, user, &PageRequest::first(1)).await.unwrap().items;
    let said = network.messages(user, group, &PageRequest::first(100)).await.unwrap().items;
    let posts = posts.iter().map(|post| number(&post.content));
    posts.chain(said.iter().map(|message| number(&message.text))).max().unwrap_or_default()
}

fn start(folder: &Path, port: Option<u16>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_process_that_gets_killed", "--nocapture"]).env(FOLDER, folder);
    if let Some(port) = port {
        command.env(PORT, port.to_string());
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Everything that was begun is there once, in every list and every count.
async fn verify(network: &Network, begun: &BTreeSet<(usize, u64)>) {
    let (ids, group) = people(network).await;
    while !network.fan_outs(1).await.unwrap().is_empty() || network.work(u64::MAX).await.unwrap().steps > 0 {
        network.work(u64::MAX).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let all = |kind: &dyn Fn(u64) -> bool| -> Vec<String> {
        let mut all: Vec<_> = begun.iter().filter(|(_, number)| kind(*number)).collect();
        all.sort_unstable();
        all.into_iter().map(|(user, number)| format!("{user} {number}")).collect()
    };
    let (mut said, mut page, mut next) = (Vec::new(), PageRequest::first(200), i64::MAX);
    loop {
        let found = network.messages(ids[0], group, &page).await.unwrap();
        for message in found.items {
            assert!(next == i64::MAX || message.number == next - 1, "numbers have no gaps");
            next = message.number;
            said.push(message.text);
        }
        match found.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    said.sort_unstable();
    let mut expected = all(&|number| number % 6 > 2);
    expected.sort_unstable();
    assert_eq!(said, expected, "each message once");
    let mut posts = all(&|number| number.is_multiple_of(6));
    posts.sort_unstable();
    for (user, id) in ids.iter().enumerate() {
        let unread = network.conversation(*id, group).await.unwrap().unread;
        let last = expected.len() as i64;
        assert!(if user < BUSY { unread < last } else { unread == last }, "{unread} unread of {user}");
        let following = network.following(*id, &PageRequest::first(200)).await.unwrap().items;
        let profile = network.profile(*id).await.unwrap();
        assert_eq!(profile.following_count, following.len() as i64, "the count of {user}");
        let names: BTreeSet<_> = following.into_iter().map(|one| one.user.username[1..].to_owned()).collect();
        let mut expected: Vec<_> =
            posts.iter().filter(|post| post.split(' ').next().is_some_and(|author| names.contains(author))).collect();
        let mut feed = common::feed(network, *id).await;
        feed.sort_unstable();
        expected.sort_unstable();
        assert!(feed.iter().eq(expected.iter().copied()), "the feed of {user}: {} and {}", feed.len(), expected.len());
        let told = network.notifications(*id, &PageRequest::first(200)).await.unwrap().items.len();
        assert_eq!(told as i64, profile.follower_count, "each follower was told of to {user}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_network_is_killed_and_what_was_begun_is_there_once() {
    if std::env::var_os(FOLDER).is_some() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let network = open(folder.path());
    network.ensure_indexes().await.unwrap();
    settle_people(&network).await;
    close(network);
    let mut begun: BTreeSet<(usize, u64)> = BTreeSet::new();
    for kill in 0..KILLS {
        let mut child = start(folder.path(), None);
        let lines = BufReader::new(child.stdout.take().unwrap());
        let reading = std::thread::spawn(move || lines.lines().map_while(Result::ok).collect::<Vec<_>>());
        tokio::time::sleep(Duration::from_millis(900 + kill * 137)).await;
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        let network = open(folder.path());
        let (ids, group) = people(&network).await;
        for line in reading.join().unwrap() {
            // The last line of a killed process may be torn.
            let Some(call) = line.split("begun ").nth(1).and_then(|call| call.split_once(' ')) else { continue };
            let (Ok(user), Ok(number)) = (call.0.parse(), call.1.parse()) else { continue };
            begun.insert((user, number));
        }
        // Those who had no answer ask again; the last few of each are enough, those before were answered.
        for user in 0..BUSY {
            let last: Vec<u64> = begun.iter().filter(|one| one.0 == user).map(|one| one.1).rev().take(3).collect();
            for number in last.into_iter().rev() {
                match self::call(&network, &ids, group, user, number).await {
                    Ok(()) | Err(Error::SelfRelation) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
        verify(&network, &begun).await;
        close(network);
    }
    assert!(begun.len() > BUSY * 6, "{} calls are too few to say anything", begun.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deployment_is_killed_and_its_clients_go_on() {
    if std::env::var_os(FOLDER).is_some() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = start(folder.path(), Some(port));
    let url = format!("mongodb://127.0.0.1:{port}/?replicaSet=sheaf&serverSelectionTimeoutMS=20000");
    let network = Network::with_settings(Store::connect(&url).await.unwrap(), "social", settings(Keeping::Service));
    network.ensure_indexes().await.unwrap();
    settle_people(&network).await;
    let (ids, group) = people(&network).await;
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut clients = tokio::task::JoinSet::new();
    for user in 0..BUSY {
        let (network, ids, stop) = (network.clone(), ids.clone(), stop.clone());
        clients.spawn(async move {
            let mut number = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                // Whatever the failure was: the same call again.
                if let Ok(()) | Err(Error::SelfRelation) = call(&network, &ids, group, user, number).await {
                    number += 1;
                }
            }
            loop {
                match call(&network, &ids, group, user, number).await {
                    Ok(()) | Err(Error::SelfRelation) => return (user, number),
                    Err(_) => {}
                }
            }
        });
    }
    let working = network.clone();
    let worker = tokio::spawn(async move {
        loop {
            if working.work(10).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    for kill in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(900 + kill * 137)).await;
        assert!(server.try_wait().unwrap().is_none(), "it ended by itself");
        server.kill().unwrap();
        server.wait().unwrap();
        server = start(folder.path(), Some(port));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut begun = BTreeSet::new();
    for (user, last) in clients.join_all().await {
        begun.extend((0..=last).map(|number| (user, number)));
    }
    worker.abort();
    let _ = worker.await;
    verify(&network, &begun).await;
    assert!(begun.len() > BUSY * 6, "{} calls are too few to say anything", begun.len());
    server.kill().unwrap();
    server.wait().unwrap();
}
