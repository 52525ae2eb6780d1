//! What moderators do: take a post out of everybody's sight and put it back, take comments down.
//!
//! A hidden post is as good as deleted for everybody, its author too, but keeps what it says. What was done, by whom and why
//! stands in the log of the author's operations, written in the same transaction.

use crate::error::{Error, Result};
use crate::id::{Id, Time};
use crate::network::{Network, POSTS};
use crate::operations::MAX_DETAIL;
use crate::read;
use bson::{Document, doc};
use store::FindOneAndUpdate;

fn check_reason(why: &str) -> Result<()> {
    if why.trim().is_empty() || why.chars().count() > MAX_DETAIL {
        return Err(Error::Invalid(format!("a reason has 1 to {MAX_DETAIL} characters")));
    }
    Ok(())
}

impl Network {
    /// Hides a published post; whether it was published.
    ///
    /// # Errors
    /// [`Error::UnknownPost`] if there is none or it was deleted, [`Error::Invalid`].
    pub async fn hide_post(&self, moderator: &str, post: Id, why: &str) -> Result<bool> {
        check_reason(why)?;
        let hidden =
            doc! { "$set": { "status": "hidden", "hiddenBy": moderator, "hiddenWhy": why, "hiddenAt": Time::now() } };
        self.moderate(post, "published", "hidden", hidden, &format!("{post} by {moderator}: {why}")).await
    }

    /// Shows a hidden post again; whether it was hidden.
    ///
    /// # Errors
    /// [`Error::UnknownPost`] if there is none or it was deleted.
    pub async fn restore_post(&self, moderator: &str, post: Id) -> Result<bool> {
        let shown = doc! {
            "$set": { "status": "published" }, "$unset": { "hiddenBy": "", "hiddenWhy": "", "hiddenAt": "" },
        };
        self.moderate(post, "hidden", "published", shown, &format!("{post} by {moderator}")).await
    }

    /// Takes a post from one state to another; whether it was in the first.
    async fn moderate(
        &self,
        post: Id,
        from: &'static str,
        to: &'static str,
        change: Document,
        why: &str,
    ) -> Result<bool> {
        let (network, why) = (self.clone(), why.to_owned());
        self.transact(move |session| {
            let (network, change, why) = (network.clone(), change.clone(), why.clone());
            Box::pin(async move {
                let posts = network.collection(POSTS);
                let (guard, before) = (doc! { "_id": post, "status": from }, FindOneAndUpdate::default());
                let Some(found) = posts.find_one_and_update(guard, change, before, Some(&mut *session)).await? else {
                    let there = doc! { "_id": post, "status": { "$in": ["published", "hidden"] } };
                    let there = posts.find_one(there, Some(session)).await?;
                    return there.map(|_| false).ok_or(Error::UnknownPost(post));
                };
                let author = read::id(&found, "authorId");
                network.account(POSTS, &[post], Some(&mut *session)).await?;
                let action = if to == "published" { "postRestored" } else { "postHidden" };
                network.note_operation(author, action, &why, Some(session)).await?;
                Ok(true)
            })
        })
        .await
    }

    /// Takes a comment down with its replies; gives how many went.
    ///
    /// # Errors
    /// [`Error::UnknownComment`], [`Error::Invalid`].
    pub async fn remove_comment(&self, moderator: &str, comment: Id, why: &str) -> Result<u64> {
        check_reason(why)?;
        let found = self.known_comment(comment).await?;
        self.delete_thread(&found, Some(format!("{comment} by {moderator}: {why}"))).await
    }
}
