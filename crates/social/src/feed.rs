//! Reading the feed: the inbox, the authors who are pulled, and below the inbox's floor all authors, as one list.
//!
//! The list is that of all posts of the authors whom the reader follows now, newest first, without those the reader may not
//! see and those of muted authors. A page comes after a post, not after a number of posts, so that pages stay what they are
//! while new posts arrive.

use crate::error::Result;
use crate::id::{Id, Page, PageRequest, Time};
use crate::inbox::{AUTHORS_PER_QUERY, highest, key, lowest};
use crate::listed::Listed;
use crate::network::{FOLLOWS, INBOXES, Network};
use crate::post::{Post, Visibility};
use crate::read;
use bson::{Document, doc};
use std::collections::{BTreeMap, HashSet};
use store::Find;

/// What a window reads beyond the page, for what is filtered out.
const SLACK: usize = 4;

/// The most that a window reads from one source.
const MAX_WINDOW: usize = 400;

/// After how long a reader whose authors are pulled tries again to join them.
const REJOIN_MS: i64 = 3_600_000;

/// A reader on the way down the list.
struct Reading {
    reader: Id,
    /// The inbox says nothing at and below it.
    floor: Option<Id>,
    /// The next post is older than this.
    before: Option<Id>,
    /// The authors who are read beside the inbox, or all of them below the floor.
    authors: Vec<Id>,
    /// Whether the floor is passed.
    below: bool,
}

impl Network {
    /// A page of a reader's feed.
    ///
    /// # Errors
    /// [`crate::Error::InvalidCursor`], a store that fails.
    pub async fn feed(&self, reader: Id, page: &PageRequest) -> Result<Page<Post>> {
        let size = page.size();
        let mut reading = self.begin(reader, page.after_id()?).await?;
        let mut posts: Vec<Post> = Vec::new();
        let mut window = size + SLACK;
        loop {
            let (found, more) = self.window(&mut reading, window).await?;
            let shown = self.shown(reader, found).await?;
            posts.extend(shown.into_iter().map(|post| post.shown(self.settings.author_names)));
            if posts.len() > size || !more {
                return Ok(Page::cut(posts, size, |post| post.id.to_string()));
            }
            window = (window * 2).min(MAX_WINDOW);
        }
    }

    async fn begin(&self, reader: Id, before: Option<Id>) -> Result<Reading> {
        let mut state = self.inbox_state(reader).await?;
        self.seen(reader, state.as_ref()).await?;
        let mut authors = self.authors_apart(reader).await?;
        let held = state.as_ref().map_or(0, |state| read::number(state, "held")) as usize;
        let joined = state.as_ref().map_or(0, |state| read::time(state, "joinedAt").timestamp_ms());
        let due = authors.len() > self.settings.join_above
            && (authors.len() > held + self.settings.join_above || Time::now().timestamp_ms() - joined > REJOIN_MS);
        if due {
            self.join(reader).await?;
            authors = self.authors_apart(reader).await?;
            state = self.inbox_state(reader).await?;
        }
        let floor = state.as_ref().and_then(|state| read::optional_id(state, "floor"));
        Ok(Reading { reader, floor, before, authors, below: false })
    }

    /// The authors whom a reader's feed reads beside the inbox.
    async fn authors_apart(&self, reader: Id) -> Result<Vec<Id>> {
        let filter = doc! { "followerId": reader, "delivery": { "$in": ["joining", "pull"] } };
        self.followees(filter).await
    }

    async fn followees(&self, filter: Document) -> Result<Vec<Id>> {
        self.ids(FOLLOWS, filter, "followeeId").await
    }

    /// The next posts of a reading, newest first, and whether there may be more.
    async fn window(&self, reading: &mut Reading, limit: usize) -> Result<(BTreeMap<Id, Option<Listed>>, bool)> {
        if let (false, Some(floor), Some(before)) = (reading.below, reading.floor, reading.before)
            && before <= floor
        {
            self.pass_floor(reading).await?;
        }
        let mut found: BTreeMap<Id, Option<Listed>> = BTreeMap::new();
        // Below the last post of a source that has more, the window doesn't know everything.
        let mut horizon: Option<Id> = None;
        if !reading.below {
            let entries = self.entries(reading, limit).await?;
            if entries.len() == limit {
                horizon = entries.last().copied();
            }
            found.extend(entries.into_iter().map(|post| (post, None)));
        }
        for authors in reading.authors.chunks(AUTHORS_PER_QUERY) {
            let posts = self.posts_before(reading, authors, limit).await?;
            if posts.len() == limit {
                let last = posts.last().map(Listed::id);
                horizon = horizon.max(last);
            }
            found.extend(posts.into_iter().map(|post| (post.id(), Some(post))));
        }
        if let Some(horizon) = horizon {
            found = found.split_off(&horizon);
            reading.before = Some(horizon);
            return Ok((found, true));
        }
        if reading.below || reading.floor.is_none() {
            return Ok((found, false));
        }
        self.pass_floor(reading).await?;
        Ok((found, true))
    }

    /// Goes on below the floor, where all authors are read.
    async fn pass_floor(&self, reading: &mut Reading) -> Result<()> {
        reading.below = true;
        reading.authors = self.followees(doc! { "followerId": reading.reader, "status": "active" }).await?;
        if let Some(floor) = reading.floor.take() {
            let above = crate::id::Id(next(floor));
            reading.before = Some(reading.before.map_or(above, |before| before.min(above)));
        }
        Ok(())
    }

    /// The next entries of the inbox.
    async fn entries(&self, reading: &Reading, limit: usize) -> Result<Vec<Id>> {
        let above = key(reading.reader, reading.floor.unwrap_or(lowest()));
        let below = key(reading.reader, reading.before.unwrap_or(highest()));
        let filter = doc! { "_id": { "$gt": above, "$lt": below } };
        let page = Find {
            projection: Some(doc! { "_id": 1 }),
            sort: Some(doc! { "_id": -1 }),
            limit: limit as i64,
            ..Find::default()
        };
        let (mut found, mut entries) = (self.collection(INBOXES).stream(filter, page, None).await?, Vec::new());
        while let Some(entry) = found.next_raw(None).await? {
            entries.extend(entry.get_document("_id").and_then(|id| id.get_object_id("p")).map(Id::from));
        }
        Ok(entries)
    }

    /// The next posts of some authors.
    async fn posts_before(&self, reading: &Reading, authors: &[Id], limit: usize) -> Result<Vec<Listed>> {
        let mut bounds = Document::new();
        if let Some(before) = reading.before {
            bounds.insert("$lt", before);
        }
        if let Some(floor) = reading.floor {
            bounds.insert("$gt", floor);
        }
        let mut filter = doc! { "authorId": { "$in": authors.to_vec() } };
        if !bounds.is_empty() {
            filter.insert("_id", bounds);
        }
        self.listed(filter, Some(doc! { "_id": -1 }), limit).await
    }

    /// The posts of a window that the reader may see, newest first.
    async fn shown(&self, reader: Id, found: BTreeMap<Id, Option<Listed>>) -> Result<Vec<Listed>> {
        let missing: Vec<_> = found.iter().filter(|(_, post)| post.is_none()).map(|(id, _)| *id).collect();
        let mut posts: BTreeMap<Id, Listed> = found.into_iter().filter_map(|(id, post)| Some((id, post?))).collect();
        if !missing.is_empty() {
            let read = self.listed(doc! { "_id": { "$in": missing } }, None, 0).await?;
            posts.extend(read.into_iter().map(|post| (post.id(), post)));
        }
        let authors: HashSet<_> = posts.values().map(Listed::author).collect();
        let (mut followed, mut muted, mut friends) = (HashSet::new(), HashSet::new(), HashSet::new());
        for authors in authors.into_iter().collect::<Vec<_>>().chunks(AUTHORS_PER_QUERY) {
            followed.extend(self.follows_of(reader, authors).await?);
            muted.extend(self.muted_of(reader, authors).await?);
        }
        let to_friends = |post: &&Listed| post.visibility() == Visibility::Friends;
        let authors: HashSet<_> = posts.values().filter(to_friends).map(Listed::author).collect();
        for authors in authors.into_iter().collect::<Vec<_>>().chunks(AUTHORS_PER_QUERY) {
            friends.extend(self.friends_of(reader, authors).await?);
        }
        let shown = |post: &Listed| {
            let author = post.author();
            followed.contains(&author) && !muted.contains(&author) && post.is_shown_to_follower(&friends)
        };
        Ok(posts.into_values().rev().filter(shown).collect())
    }
}

/// The id that follows an id.
fn next(id: Id) -> bson::oid::ObjectId {
    let mut bytes = id.0.bytes();
    for byte in bytes.iter_mut().rev() {
        let (sum, carried) = byte.overflowing_add(1);
        *byte = sum;
        if !carried {
            break;
        }
    }
    bson::oid::ObjectId::from_bytes(bytes)
}
