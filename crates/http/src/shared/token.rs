//! Bearer tokens: random secrets, of which only a hash is stored.
//!
//! ```text
//!   shf_<id: 16 hex digits>_<secret: 64 hex digits>
//!       └ the record's _id    └ SHA-256 of it is in the record
//! ```
//!
//! The secret has 256 random bits, so that a fast hash is enough: there is nothing to guess.

use crate::shared::auth::{Caller, Role};
use bson::{Bson, DateTime, Document, doc};
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::Duration;
use store::{Collection, Find, Store, Update};

const COLLECTION: &str = "apiTokens";
const PREFIX: &str = "shf_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

/// Why there is no token.
#[derive(Debug)]
pub enum TokenError {
    /// What was asked for makes no sense.
    Invalid(String),
    /// The store failed.
    Store(store::Error),
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::Invalid(why) => f.write_str(why),
            TokenError::Store(error) => write!(f, "the store failed: {error}"),
        }
    }
}

impl std::error::Error for TokenError {}

impl From<store::Error> for TokenError {
    fn from(error: store::Error) -> TokenError {
        TokenError::Store(error)
    }
}

/// What a token shall be.
#[derive(Clone, Debug, Default)]
pub struct NewToken {
    /// On whose behalf it calls: a user's id.
    pub subject: String,
    /// What it may do.
    pub roles: Vec<Role>,
    /// For how long; forever by default.
    pub lives: Option<Duration>,
    /// What it is for, for people.
    pub label: String,
}

/// A token that was just made: the only time that its secret is seen.
#[derive(Clone, Debug)]
pub struct Issued {
    /// What to send after `Bearer `.
    pub secret: String,
    /// The rest.
    pub token: Token,
}

/// A token, without its secret.
#[derive(Clone, Debug)]
pub struct Token {
    /// Its id.
    pub id: String,
    /// On whose behalf it calls.
    pub subject: String,
    /// What it may do.
    pub roles: Vec<Role>,
    /// What it is for.
    pub label: String,
    /// Since when it is.
    pub created_at: DateTime,
    /// When it ends.
    pub expires_at: Option<DateTime>,
    /// When it was taken back.
    pub revoked_at: Option<DateTime>,
}

/// The tokens of a store.
#[derive(Clone)]
pub struct Tokens {
    collection: Collection,
}

impl Tokens {
    /// The tokens in a database.
    pub fn new(store: &Store, database: &str) -> Tokens {
        Tokens { collection: store.collection(database, COLLECTION) }
    }

    /// Creates the index that lists need.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn ensure_indexes(&self) -> Result<(), store::Error> {
        self.collection.create_index(doc! { "subject": 1, "_id": 1 }, false).await
    }

    /// Makes a token.
    ///
    /// # Errors
    /// A subject or roles that are missing, a store that fails.
    pub async fn issue(&self, new: &NewToken) -> Result<Issued, TokenError> {
        if new.subject.is_empty() || new.subject.len() > 128 {
            return Err(TokenError::Invalid("a token needs a subject of 1 to 128 bytes: the caller's id".to_owned()));
        }
        if new.roles.is_empty() {
            return Err(TokenError::Invalid("a token needs at least one role".to_owned()));
        }
        let (id, secret) = (random_hex::<ID_BYTES>(), random_hex::<SECRET_BYTES>());
        let now = DateTime::now();
        let expires_at = new.lives.map(|lives| {
            let millis = i64::try_from(lives.as_millis()).unwrap_or(i64::MAX);
            DateTime::from_millis(now.timestamp_millis().saturating_add(millis))
        });
        let roles: Vec<Bson> = new.roles.iter().map(|role| Bson::from(role.name())).collect();
        let document = doc! {
            "_id": &id, "secretHash": hash(&secret), "subject": &new.subject, "roles": roles, "label": &new.label,
            "createdAt": now, "expiresAt": expires_at,
        };
        self.collection.insert_one(document.clone(), None).await?;
        Ok(Issued { secret: format!("{PREFIX}{id}_{secret}"), token: read(&document) })
    }

    /// Whom a bearer token belongs to; `None` for one that is unknown, over or taken back.
    pub(crate) async fn verify(&self, bearer: &str) -> Result<Option<Caller>, store::Error> {
        let Some((id, secret)) = bearer.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')) else {
            return Ok(None);
        };
        if id.len() != 2 * ID_BYTES || secret.len() != 2 * SECRET_BYTES {
            return Ok(None);
        }
        let Some(found) = self.collection.find_one(doc! { "_id": id }, None).await? else { return Ok(None) };
        let stored = found.get_str("secretHash").unwrap_or_default();
        let token = read(&found);
        let over = token.expires_at.is_some_and(|end| end <= DateTime::now());
        if !same(stored.as_bytes(), hash(secret).as_bytes()) || over || token.revoked_at.is_some() {
            return Ok(None);
        }
        Ok(Some(Caller { token: token.id, subject: token.subject, roles: token.roles }))
    }

    /// Tokens by id, after one.
    pub(crate) async fn list(&self, after: Option<String>, limit: i64) -> Result<Vec<Token>, store::Error> {
        let filter = after.map_or_else(Document::new, |after| doc! { "_id": { "$gt": after } });
        let page = Find { sort: Some(doc! { "_id": 1 }), limit, ..Find::default() };
        Ok(self.collection.find(filter, page, None).await?.iter().map(read).collect())
    }

    /// Takes a token back; gives whether there is one of that id.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn revoke(&self, id: &str) -> Result<bool, store::Error> {
        let revoke = doc! { "$min": { "revokedAt": DateTime::now() } };
        let done = self.collection.update_one(doc! { "_id": id }, revoke, Update::default(), None).await?;
        Ok(done.matched > 0)
    }
}

fn read(document: &Document) -> Token {
    let text = |name: &str| document.get_str(name).unwrap_or_default().to_owned();
    let time = |name: &str| document.get_datetime(name).ok().copied();
    let roles = document.get_array("roles").into_iter().flatten();
    Token {
        id: text("_id"),
        subject: text("subject"),
        roles: roles.filter_map(Bson::as_str).filter_map(Role::of).collect(),
        label: text("label"),
        created_at: time("createdAt").unwrap_or(DateTime::from_millis(0)),
        expires_at: time("expiresAt"),
        revoked_at: time("revokedAt"),
    }
}

fn hash(secret: &str) -> String {
    hex::encode(Sha256::digest(secret.as_bytes()))
}

/// Compares in a time that depends on the lengths only.
pub(crate) fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |sum, (left, right)| sum | (left ^ right)) == 0
}

/// Random bytes as hex digits.
pub(crate) fn random_hex<const N: usize>() -> String {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    hex::encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tokens() -> Tokens {
        Tokens::new(&Store::in_memory().unwrap(), "test")
    }

    fn new(lives: Option<Duration>) -> NewToken {
        NewToken { subject: "ada".into(), roles: vec![Role::Buyer], lives, label: "test".into() }
    }

    #[tokio::test]
    async fn a_token_is_known_by_its_secret_until_it_is_taken_back() {
        let tokens = tokens().await;
        let issued = tokens.issue(&new(None)).await.unwrap();
        let caller = tokens.verify(&issued.secret).await.unwrap().unwrap();
        assert_eq!((caller.subject.as_str(), caller.roles.as_slice()), ("ada", &[Role::Buyer][..]));
        let mut guess = issued.secret.clone();
        let last = if guess.pop() == Some('0') { '1' } else { '0' };
        guess.push(last);
        assert!(tokens.verify(&guess).await.unwrap().is_none());
        assert!(tokens.revoke(&issued.token.id).await.unwrap());
        assert!(tokens.verify(&issued.secret).await.unwrap().is_none());
        assert!(!tokens.revoke("unknown").await.unwrap());
    }

    #[tokio::test]
    async fn the_store_does_not_hold_the_secret() {
        let store = Store::in_memory().unwrap();
        let issued = Tokens::new(&store, "test").issue(&new(None)).await.unwrap();
        let secret = issued.secret.rsplit('_').next().unwrap().to_owned();
        let stored = store.collection("test", COLLECTION).find_one(doc! {}, None).await.unwrap().unwrap();
        assert!(!stored.to_string().contains(&secret));
    }

    #[tokio::test]
    async fn an_expired_token_is_unknown() {
        let tokens = tokens().await;
        let issued = tokens.issue(&new(Some(Duration::ZERO))).await.unwrap();
        assert!(tokens.verify(&issued.secret).await.unwrap().is_none());
        for garbage in ["", "shf_", "shf_x_y", "Bearer"] {
            assert!(tokens.verify(garbage).await.unwrap().is_none(), "{garbage}");
        }
    }
}
