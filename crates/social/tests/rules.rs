//! The whole of the social rules, beside a slow and obvious copy of them in memory.
//!
//! Several threads do random things at once. What concerns a pair of users is done by the pair's thread, what concerns a post
//! or a name by the author's, so that the copy knows what must come out; what they share (counts, inboxes, the fan-out) meets
//! in the store. Meanwhile workers fan out and are killed at any point. After each round everything is compared.
//!
//! `SOCIAL_OPERATIONS` says how many operations (2,000), `SOCIAL_THREADS` how many threads (4, at most 12), `SOCIAL_SEED`
//! which, `SOCIAL_ROUND` after how many everything is compared (200).

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may end at what it did not expect, and says how fast it was"
)]

mod common;

use social::{
    Assignment, Error, Id, Keeping, Network, NewPost, PageRequest, PostChange, ProfileChange, Settings, Visibility,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::Store;

const USERS: usize = 12;
/// What of a feed and a list is compared after each round; at the end, all.
const COMPARED: usize = 60;

#[derive(Clone)]
struct RefPost {
    author: usize,
    content: String,
    visibility: Visibility,
    edits: usize,
    deleted: bool,
    likes: BTreeSet<usize>,
}

/// The rules, obviously.
#[derive(Clone, Default)]
struct Reference {
    names: Vec<String>,
    follows: BTreeSet<(usize, usize)>,
    blocks: BTreeSet<(usize, usize)>,
    mutes: BTreeSet<(usize, usize)>,
    friends: BTreeSet<(usize, usize)>,
    requests: BTreeSet<(usize, usize)>,
    posts: BTreeMap<Id, RefPost>,
    comments: BTreeMap<Id, (Id, usize, Option<Id>)>,
    /// What decides who sees a post, and how often it has begun and ended to change: while it changes, the store knows
    /// before this copy does.
    changes: BTreeMap<Subject, (u64, u64)>,
}

/// What decides who sees a post: the post itself, or what is between two users.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Post(Id),
    Pair(usize, usize),
}

impl Subject {
    fn pair(a: usize, b: usize) -> Subject {
        Subject::Pair(a.min(b), a.max(b))
    }
}

/// A subject changes from the making of this to its end.
struct Changing<'a>(&'a World, Subject);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        // A test that ends by a panic may leave the copy locked.
        if let Ok(mut reference) = self.0.reference.lock() {
            reference.changes.entry(self.1).or_default().1 += 1;
        }
    }
}

impl Reference {
    fn blocked(&self, a: usize, b: usize) -> bool {
        self.blocks.contains(&(a, b)) || self.blocks.contains(&(b, a))
    }

    fn sees(&self, viewer: usize, post: Id) -> bool {
        let Some(post) = self.posts.get(&post) else { return false };
        let author = post.author;
        !post.deleted
            && (author == viewer
                || !self.blocked(viewer, author)
                    && match post.visibility {
                        Visibility::Public => true,
                        Visibility::Followers => self.follows.contains(&(viewer, author)),
                        Visibility::Friends => self.friends.contains(&(viewer, author)),
                        Visibility::Private => false,
                    })
    }

    fn feed(&self, reader: usize) -> Vec<(Id, String, String)> {
        let shown = |(id, post): (&Id, &RefPost)| {
            let follows = self.follows.contains(&(reader, post.author));
            let muted = self.mutes.contains(&(reader, post.author));
            (follows && !muted && self.sees(reader, *id))
                .then(|| (*id, self.names[post.author].clone(), post.content.clone()))
        };
        self.posts.iter().rev().filter_map(shown).collect()
    }

    fn thread(&self, root: Id) -> Vec<Id> {
        let mut gone = vec![root];
        let mut at = 0;
        while at < gone.len() {
            let above = gone[at];
            gone.extend(self.comments.iter().filter(|(_, comment)| comment.2 == Some(above)).map(|(id, _)| *id));
            at += 1;
        }
        gone
    }

    fn depth(&self, comment: Id) -> usize {
        self.comments[&comment].2.map_or(0, |parent| 1 + self.depth(parent))
    }
}

/// A small generator of numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

struct World {
    network: Network,
    ids: Vec<Id>,
    reference: Mutex<Reference>,
}

impl World {
    fn with<T>(&self, look: impl FnOnce(&mut Reference) -> T) -> T {
        look(&mut self.reference.lock().unwrap())
    }

    fn changing(&self, subject: Subject) -> Changing<'_> {
        self.with(|reference| reference.changes.entry(subject).or_default().0 += 1);
        Changing(self, subject)
    }

    /// How often the subjects have changed; nothing while one of them changes. The same answer before and after an operation
    /// says that the copy knew during all of it.
    fn settled(&self, subjects: [Subject; 2]) -> Option<[u64; 2]> {
        self.with(|reference| {
            let counts = subjects.map(|subject| reference.changes.get(&subject).copied().unwrap_or_default());
            counts.iter().all(|(begun, ended)| begun == ended).then(|| counts.map(|(begun, _)| begun))
        })
    }

    /// One operation of a thread.
    async fn step(&self, thread: usize, threads: usize, random: &mut Random) {
        // The pairs are numbered without gaps, so that each thread has some.
        let mine = |a: usize, b: usize| (a.max(b) * (a.max(b) - 1) / 2 + a.min(b)) % threads == thread;
        let (a, b) = loop {
            let (a, b) = (random.below(USERS), random.below(USERS));
            if a != b && mine(a, b) {
                break (a, b);
            }
        };
        let author = (0..).map(|_| random.below(USERS)).find(|author| author % threads == thread).unwrap();
        match random.below(20) {
            0..5 => self.relation(a, b, random).await,
            5 | 6 => self.friendship(a, b, random).await,
            7..10 => self.post(author, random).await,
            10 | 11 => self.change_post(author, random).await,
            12..15 => self.like(a, b, random).await,
            15..18 => self.comment(author, random).await,
            18 => {
                let page = PageRequest::first(1 + random.below(9) as u32);
                self.network.feed(self.ids[random.below(USERS)], &page).await.unwrap();
            }
            _ => match random.below(4) {
                0 => {
                    let name = format!("u{author} {}", random.below(1_000_000));
                    let change = ProfileChange { username: Some(name.clone()), ..ProfileChange::default() };
                    self.network.change_profile(self.ids[author], &change).await.unwrap();
                    self.with(|reference| reference.names[author] = name);
                }
                1 => drop(self.network.sweep_idle(2).await.unwrap()),
                _ => drop(self.network.join(self.ids[random.below(USERS)]).await.unwrap()),
            },
        }
    }

    async fn relation(&self, a: usize, b: usize, random: &mut Random) {
        let (one, other) = (self.ids[a], self.ids[b]);
        let _changing = self.changing(Subject::pair(a, b));
        match random.below(24) {
            0..11 => {
                let blocked = self.with(|reference| reference.blocked(a, b));
                match self.network.follow(one, other).await {
                    Ok(new) => {
                        assert!(!blocked);
                        assert_eq!(self.with(|reference| reference.follows.insert((a, b))), new);
                    }
                    Err(Error::Blocked) => assert!(blocked),
                    Err(error) => panic!("follow: {error}"),
                }
            }
            11..17 => {
                let gone = self.network.unfollow(one, other).await.unwrap();
                assert_eq!(self.with(|reference| reference.follows.remove(&(a, b))), gone);
            }
            17 => {
                let new = self.network.block(one, other).await.unwrap();
                self.with(|reference| {
                    assert_eq!(reference.blocks.insert((a, b)), new);
                    for pair in [(a, b), (b, a)] {
                        reference.follows.remove(&pair);
                        reference.friends.remove(&pair);
                        reference.requests.remove(&pair);
                    }
                });
            }
            18..21 => {
                let gone = self.network.unblock(one, other).await.unwrap();
                assert_eq!(self.with(|reference| reference.blocks.remove(&(a, b))), gone);
            }
            21 => {
                let new = self.network.mute(one, other).await.unwrap();
                assert_eq!(self.with(|reference| reference.mutes.insert((a, b))), new);
            }
            _ => {
                let gone = self.network.unmute(one, other).await.unwrap();
                assert_eq!(self.with(|reference| reference.mutes.remove(&(a, b))), gone);
            }
        }
    }

    async fn friendship(&self, a: usize, b: usize, random: &mut Random) {
        let (one, other) = (self.ids[a], self.ids[b]);
        let _changing = self.changing(Subject::pair(a, b));
        match random.below(6) {
            0 | 1 => {
                let (blocked, friends, open) = self.with(|reference| {
                    let open = reference.requests.contains(&(a, b)) || reference.requests.contains(&(b, a));
                    (reference.blocked(a, b), reference.friends.contains(&(a, b)), open)
                });
                match self.network.ask_friend(one, other).await {
                    Ok(()) => {
                        assert!(!blocked && !friends && !open);
                        self.with(|reference| reference.requests.insert((a, b)));
                    }
                    Err(Error::Blocked) => assert!(blocked),
                    Err(Error::AlreadyFriends) => assert!(friends),
                    Err(Error::RequestPending { .. }) => assert!(open),
                    Err(error) => panic!("ask: {error}"),
                }
            }
            2 | 3 => {
                let open = self.with(|reference| reference.requests.remove(&(b, a)));
                assert_eq!(self.network.accept_friend(one, other).await.is_ok(), open);
                if open {
                    self.with(|reference| reference.friends.extend([(a, b), (b, a)]));
                }
            }
            4 => {
                let open = self.with(|reference| reference.requests.remove(&(b, a)));
                assert_eq!(self.network.decline_friend(one, other).await.is_ok(), open);
            }
            _ => {
                let gone = self.network.unfriend(one, other).await.unwrap();
                let expected = self.with(|reference| {
                    reference.friends.remove(&(b, a));
                    reference.friends.remove(&(a, b))
                });
                assert_eq!(gone, expected);
            }
        }
    }

    async fn post(&self, author: usize, random: &mut Random) {
        let visibility = match random.below(10) {
            0 => Visibility::Followers,
            1 => Visibility::Friends,
            2 => Visibility::Private,
            _ => Visibility::Public,
        };
        let content = format!("post {}", random.below(1_000_000));
        let new = NewPost { content: content.clone(), visibility, ..NewPost::default() };
        let id = self.network.post(self.ids[author], &new).await.unwrap();
        let post = RefPost { author, content, visibility, edits: 0, deleted: false, likes: BTreeSet::new() };
        self.with(|reference| reference.posts.insert(id, post));
    }

    /// A post, a recent one more often, of an author or anybody's.
    fn some_post(&self, author: Option<usize>, random: &mut Random) -> Option<Id> {
        self.with(|reference| {
            let fits = |post: &&(&Id, &RefPost)| author.is_none_or(|author| post.1.author == author);
            let posts: Vec<_> = reference.posts.iter().rev().take(300).collect();
            let found: Vec<_> = posts.iter().filter(|post| fits(post)).take(20).map(|(id, _)| **id).collect();
            (!found.is_empty()).then(|| found[random.below(found.len())])
        })
    }

    async fn change_post(&self, author: usize, random: &mut Random) {
        let Some(id) = self.some_post(Some(author), random) else { return };
        let _changing = self.changing(Subject::Post(id));
        let deleted = self.with(|reference| reference.posts[&id].deleted);
        if random.below(3) == 0 {
            assert_eq!(self.network.delete_post(self.ids[author], id).await.is_ok(), !deleted);
            self.with(|reference| reference.posts.get_mut(&id).unwrap().deleted = true);
            return;
        }
        let content = format!("edit {}", random.below(1_000_000));
        let visibility = (random.below(3) == 0).then_some(Visibility::Public);
        let change = PostChange { content: Some(content.clone()), visibility, version: None };
        assert_eq!(self.network.edit_post(self.ids[author], id, &change).await.is_ok(), !deleted);
        self.with(|reference| {
            let post = reference.posts.get_mut(&id).unwrap();
            if !deleted {
                post.content = content;
                post.visibility = visibility.unwrap_or(post.visibility);
                post.edits += 1;
            }
        });
    }

    async fn like(&self, a: usize, b: usize, random: &mut Random) {
        let Some(id) = self.some_post(Some(b), random) else { return };
        if random.below(3) == 0 {
            let gone = self.network.unlike(self.ids[a], id).await.unwrap();
            assert_eq!(self.with(|reference| reference.posts.get_mut(&id).unwrap().likes.remove(&a)), gone);
            return;
        }
        let subjects = [Subject::Post(id), Subject::pair(a, b)];
        let (settled, sees) = (self.settled(subjects), self.with(|reference| reference.sees(a, id)));
        let done = self.network.like(self.ids[a], id).await;
        let certain = settled.is_some() && settled == self.settled(subjects);
        match done {
            Ok(new) => {
                assert!(sees || !certain, "{id} cannot be seen by {a}");
                assert_eq!(self.with(|reference| reference.posts.get_mut(&id).unwrap().likes.insert(a)), new);
            }
            Err(Error::UnknownPost(_)) => assert!(!sees || !certain, "{id} can be seen by {a}"),
            Err(error) => panic!("like: {error}"),
        }
    }

    /// Comments, replies and deletions on an author's posts, by anybody.
    async fn comment(&self, author: usize, random: &mut Random) {
        let Some(id) = self.some_post(Some(author), random) else { return };
        let user = random.below(USERS);
        let existing: Vec<Id> = self.with(|reference| {
            let on = reference.comments.iter().filter(|(_, comment)| comment.0 == id);
            on.map(|(id, _)| *id).collect()
        });
        let parent = (!existing.is_empty() && random.below(2) == 0).then(|| existing[random.below(existing.len())]);
        let subjects = [Subject::Post(id), Subject::pair(user, author)];
        let (settled, sees) = (self.settled(subjects), self.with(|reference| reference.sees(user, id)));
        if let (Some(parent), 0) = (parent, random.below(3)) {
            let by = self.with(|reference| reference.comments[&parent].1);
            let done = self.network.delete_comment(self.ids[user], parent).await;
            let certain = settled.is_some() && settled == self.settled(subjects);
            match done {
                Ok(gone) => {
                    assert!((sees || !certain) && (user == by || user == author));
                    let thread = self.with(|reference| reference.thread(parent));
                    assert_eq!(gone, thread.len() as u64);
                    self.with(|reference| reference.comments.retain(|id, _| !thread.contains(id)));
                }
                Err(Error::NotAllowed(_)) => assert!(user != by && user != author),
                Err(Error::UnknownComment(_)) => assert!(!sees || !certain),
                Err(error) => panic!("delete: {error}"),
            }
            return;
        }
        let deep = parent.is_some_and(|parent| self.with(|reference| reference.depth(parent)) >= 5);
        let done = self.network.comment(self.ids[user], id, "something", parent).await;
        let certain = settled.is_some() && settled == self.settled(subjects);
        match done {
            Ok(comment) => {
                assert!((sees || !certain) && !deep);
                self.with(|reference| reference.comments.insert(comment.id, (id, user, parent)));
            }
            Err(Error::TooDeep { .. }) => assert!(deep),
            Err(Error::UnknownPost(_)) => assert!(!sees || !certain),
            Err(error) => panic!("comment: {error}"),
        }
    }

    /// Compares what every reader sees with the reference.
    async fn compare(&self, depth: usize) {
        let reference = self.with(|reference| reference.clone());
        for (user, id) in self.ids.iter().enumerate() {
            self.compare_feed(&reference, user, depth).await;
            let profile = self.network.profile(*id).await.unwrap();
            assert_eq!(profile.username, reference.names[user]);
            let all = PageRequest::first(200);
            let ids = |list: Vec<social::Related>| list.into_iter().map(|one| one.user.id).collect::<BTreeSet<_>>();
            let from = |set: &BTreeSet<(usize, usize)>| -> BTreeSet<Id> {
                set.iter().filter(|(from, _)| *from == user).map(|(_, to)| self.ids[*to]).collect()
            };
            let to = |set: &BTreeSet<(usize, usize)>| -> BTreeSet<Id> {
                set.iter().filter(|(_, to)| *to == user).map(|(from, _)| self.ids[*from]).collect()
            };
            let following = ids(self.network.following(*id, &all).await.unwrap().items);
            let followers = ids(self.network.followers(*id, &all).await.unwrap().items);
            let friends = ids(self.network.friends(*id, &all).await.unwrap().items);
            assert_eq!(following, from(&reference.follows));
            assert_eq!(followers, to(&reference.follows));
            assert_eq!(friends, from(&reference.friends));
            assert_eq!(ids(self.network.blocks(*id, &all).await.unwrap().items), from(&reference.blocks));
            assert_eq!(ids(self.network.mutes(*id, &all).await.unwrap().items), from(&reference.mutes));
            let requests = self.network.incoming_requests(*id, &all).await.unwrap().items;
            let requests: BTreeSet<_> = requests.into_iter().map(|request| request.user.id).collect();
            assert_eq!(requests, to(&reference.requests));
            let counts = (profile.following_count, profile.follower_count, profile.friend_count, profile.post_count);
            let posts = reference.posts.values().filter(|post| post.author == user && !post.deleted).count() as i64;
            let expected = (following.len() as i64, followers.len() as i64, friends.len() as i64, posts);
            assert_eq!(counts, expected, "following, followers, friends, posts of {user}");
        }
        for (id, post) in reference.posts.iter().rev().take(depth) {
            for viewer in [post.author, id.time().timestamp_ms() as usize % USERS] {
                let shown = self.network.read_post(self.ids[viewer], *id).await;
                assert_eq!(shown.is_ok(), reference.sees(viewer, *id), "{viewer} sees {id}");
                let Ok(shown) = shown else { continue };
                let comments: Vec<_> = reference
                    .comments
                    .iter()
                    .rev()
                    .filter(|(_, comment)| comment.0 == *id)
                    .map(|(id, _)| *id)
                    .collect();
                let counts = (shown.like_count, shown.comment_count, shown.version);
                assert_eq!(counts, (post.likes.len() as i64, comments.len() as i64, 1 + post.edits as i64), "{id}");
                let latest = self.network.latest_comments(self.ids[viewer], *id).await.unwrap();
                let latest: Vec<_> = latest.into_iter().map(|comment| comment.id).collect();
                assert_eq!(latest, comments[..comments.len().min(10)], "the latest comments of {id}");
            }
        }
    }

    async fn compare_feed(&self, reference: &Reference, user: usize, depth: usize) {
        let expected = reference.feed(user);
        let (mut found, mut page) = (Vec::new(), PageRequest::first(7));
        while found.len() < depth {
            let feed = self.network.feed(self.ids[user], &page).await.unwrap();
            found.extend(feed.items.into_iter().map(|post| (post.id, post.author.username, post.content)));
            match feed.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        let compared = expected.len().min(depth);
        assert!(found.len() >= compared, "{} of {} posts in the feed of {user}", found.len(), expected.len());
        assert_eq!(found[..compared], expected[..compared], "the feed of {user}");
        assert!(found.len() == compared || expected.len() > depth, "more in the feed of {user} than there ought to be");
    }
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Where the network is.
enum Place {
    Memory,
    Folder(tempfile::TempDir),
    /// A deployment, by its URL.
    Deployment(String),
}

async fn open(place: &Place, settings: &Settings) -> (Store, Network) {
    let mut tries = 0;
    let store = loop {
        let opened = match place {
            Place::Memory => Store::in_memory(),
            Place::Folder(folder) => Store::open(folder.path()),
            Place::Deployment(url) => Store::connect(url).await,
        };
        match opened {
            Ok(store) => break store,
            // Whoever was killed may hold the old store a moment longer.
            Err(error) => assert!(tries < 100, "{error}"),
        }
        tries += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    if settings.keeping == Keeping::Model {
        Network::keep_model(&store, "social").unwrap();
    }
    let network = Network::with_settings(store.clone(), "social", settings.clone());
    network.ensure_indexes().await.unwrap();
    (store, network)
}

/// Fans out until told to stop, and is killed every now and then.
fn workers(network: &Network, seed: u64) -> tokio::task::JoinHandle<()> {
    let network = network.clone();
    tokio::spawn(async move {
        let mut random = Random(seed | 1);
        loop {
            // The set ends its worker also when this task itself is ended.
            let (working, mut worker) = (network.clone(), tokio::task::JoinSet::new());
            worker.spawn(async move { working.run(std::future::pending()).await.unwrap() });
            tokio::time::sleep(Duration::from_millis(random.below(40) as u64)).await;
            worker.shutdown().await;
        }
    })
}

async fn play(settings: Settings, place: Place, operations: usize) {
    let (threads, seed) = (number("SOCIAL_THREADS", 4), number("SOCIAL_SEED", 7) as u64);
    let (mut store, mut network) = open(&place, &settings).await;
    let (mut ids, mut names) = (Vec::new(), Vec::new());
    for user in 0..USERS {
        names.push(format!("u{user}"));
        ids.push(network.add_user(&names[user]).await.unwrap());
    }
    let mut reference = Reference { names, ..Reference::default() };
    let begun = std::time::Instant::now();
    let size = number("SOCIAL_ROUND", 200);
    for round in 0..operations.div_ceil(size) {
        let world = Arc::new(World { network: network.clone(), ids: ids.clone(), reference: Mutex::new(reference) });
        let killed = [workers(&network, seed + round as u64 * 2), workers(&network, seed + round as u64 * 2 + 1)];
        let mut playing = tokio::task::JoinSet::new();
        for thread in 0..threads {
            let world = world.clone();
            playing.spawn(async move {
                let mut random = Random(seed.wrapping_mul(0x9e37_79b9) + (round * threads + thread) as u64 * 7919 + 1);
                for _ in 0..size / threads {
                    world.step(thread, threads, &mut random).await;
                }
            });
        }
        while let Some(done) = playing.join_next().await {
            done.unwrap();
        }
        for worker in killed {
            worker.abort();
            let _ = worker.await;
        }
        // What a killed worker had taken is taken up again after its lease.
        while !network.fan_outs(1).await.unwrap().is_empty() || network.work(u64::MAX).await.unwrap().steps > 0 {
            network.work(u64::MAX).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let last = round + 1 == operations.div_ceil(size);
        world.compare(if last { 100_000 } else { COMPARED }).await;
        reference = world.with(std::mem::take);
        drop(world);
        if round % 50 == 49 {
            let done = (round + 1) * size;
            eprintln!("{done} operations, {:.0} a second", done as f64 / begun.elapsed().as_secs_f64());
        }
        if round % 4 == 0 && !matches!(place, Place::Memory) {
            if let Some(engine) = store.engine() {
                engine.clone().close().unwrap();
            }
            drop((store, network));
            (store, network) = open(&place, &settings).await;
        }
    }
    let (rate, posts) = (operations as f64 / begun.elapsed().as_secs_f64(), reference.posts.len());
    eprintln!(
        "{:?} {:?}: {operations} operations, {rate:.0} a second, {posts} posts",
        settings.keeping, settings.assignment
    );
}

fn settings(keeping: Keeping, assignment: Assignment) -> Settings {
    Settings {
        idle_after: Duration::from_millis(300),
        fan_out_lease: Duration::from_millis(50),
        ..common::small(keeping, assignment)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_model_layer_keeps_the_rules_with_threshold_crossings_and_reopening() {
    let folder = Place::Folder(tempfile::tempdir().unwrap());
    play(settings(Keeping::Model, Assignment::PullAbove), folder, number("SOCIAL_OPERATIONS", 2_000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_service_keeps_the_rules_with_threshold_crossings() {
    play(settings(Keeping::Service, Assignment::PullAbove), Place::Memory, number("SOCIAL_OPERATIONS", 2_000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_opposite_assignment_gives_the_same_feeds() {
    play(settings(Keeping::Model, Assignment::PullBelow), Place::Memory, number("SOCIAL_OPERATIONS", 1_000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pushing_to_everybody_gives_the_same_feeds() {
    play(settings(Keeping::Model, Assignment::PushAll), Place::Memory, number("SOCIAL_OPERATIONS", 1_000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_rules_hold_on_a_deployment_through_the_driver() {
    let deployment = Place::Deployment(common::deployment());
    play(settings(Keeping::Service, Assignment::PullAbove), deployment, number("SOCIAL_OPERATIONS", 1_000)).await;
}
