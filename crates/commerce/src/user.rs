//! Users: the profile that is read all the time, and the part of it that hardly ever is, in a document of its own.

use crate::error::{Error, Result};
use crate::fields::{from_document, to_document};
use crate::money::{Currency, Money};
use crate::order::Address;
use crate::shop::Shop;
use crate::time::Time;
use bson::{Bson, Document, doc};
use serde::{Deserialize, Serialize};
use store::Find;

/// Somebody to sign up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NewUser {
    /// Their id; a fresh one unless given.
    pub id: Option<String>,
    /// Their name; one name is one user.
    pub username: String,
    /// The telephone number.
    pub phone: String,
    /// Where things go unless said otherwise.
    pub default_address: Option<Address>,
}

/// When and from where somebody was here last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastLogin {
    /// When.
    pub at: Time,
    /// From which address.
    #[serde(default)]
    pub ip: String,
}

/// A user as pages show them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// Their id.
    #[serde(rename(deserialize = "_id"), alias = "id")]
    pub id: String,
    /// Their name.
    pub username: String,
    /// The telephone number.
    #[serde(default)]
    pub phone: String,
    /// `basic`, `silver`, `gold`.
    #[serde(default)]
    pub member_level: String,
    /// Where things go unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_address: Option<Address>,
    /// The last visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_login: Option<LastLogin>,
    /// How many orders are paid, shipped or signed; kept.
    #[serde(default)]
    pub order_count: i64,
    /// What those come to, when all of them are in one currency; otherwise nothing, as amounts of several have no sum
    /// ([`Shop::spending`] has each).
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub total_spent: Option<Money>,
    /// Since when they are here.
    pub created_at: Time,
}

/// What a user's orders that are paid, shipped or signed come to in one currency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spending {
    /// Of what.
    pub currency: Currency,
    /// How many orders.
    pub orders: i64,
    /// Their value, in minor units.
    pub spent: i64,
}

/// What is known of a user that hardly anybody reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Profile {
    /// The name by law.
    pub real_name: String,
    /// The number of the identity card.
    pub id_number: String,
    /// Cards, by their last four digits.
    pub cards: Vec<String>,
    /// The insurance.
    pub insurance: String,
}

/// The most cards of a profile.
pub const MAX_CARDS: usize = 20;

impl Shop {
    /// Signs a user up; gives their id.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] for an id or name that is taken, [`Error::Invalid`] for an empty name.
    pub async fn add_user(&self, user: &NewUser) -> Result<String> {
        if user.username.is_empty() || user.username.len() > crate::id::MAX_ID_BYTES {
            return Err(Error::invalid("username", format!("it has 1 to {} bytes", crate::id::MAX_ID_BYTES)));
        }
        let (user, name) = (user.clone(), user.username.clone());
        let done = self.run(move |unit| {
            let user = user.clone();
            Box::pin(async move {
                let id = user.id.clone().unwrap_or_else(crate::id::fresh);
                let mut document = doc! {
                    "_id": &id, "username": &user.username, "phone": &user.phone, "memberLevel": "basic",
                    "createdAt": unit.now,
                };
                if let Some(address) = &user.default_address {
                    document.insert("defaultAddress", to_document(address)?);
                }
                unit.insert("users", "user", document).await?;
                Ok(id)
            })
        });
        match done.await {
            Err(Error::Store(error)) if error.is_duplicate_key() => {
                Err(Error::AlreadyExists { what: "user", id: name })
            }
            done => done,
        }
    }

    /// A user.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn user(&self, id: &str) -> Result<User> {
        self.with_spending(&self.by_id("users", "user", id).await?).await
    }

    /// The user of a document. Its own `totalSpent` adds up minor units; they mean something where there is one currency.
    async fn with_spending(&self, found: &Document) -> Result<User> {
        let mut user: User = from_document(found)?;
        if let [only] = self.spending(&user.id).await?.as_slice() {
            user.total_spent = Some(Money::new(only.spent, only.currency));
        }
        Ok(user)
    }

    /// A user by their name.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn user_by_name(&self, name: &str) -> Result<User> {
        let found = self.collection("users").find_one(doc! { "username": name }, None).await?;
        self.with_spending(&found.ok_or_else(|| Error::missing("user", name))?).await
    }

    /// What a user spent, by currency.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn spending(&self, user: &str) -> Result<Vec<Spending>> {
        let options = Find { sort: Some(doc! { "_id": 1 }), ..Find::default() };
        let found = self.collection("spending").find(doc! { "userId": user }, options, None).await?;
        found.iter().map(from_document).collect()
    }

    /// Sets where things go unless said otherwise. Orders keep the address they were placed with.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn set_default_address(&self, user: &str, address: &Address) -> Result<()> {
        let address = to_document(address)?;
        self.set_on_user(user, "defaultAddress", Bson::Document(address)).await
    }

    /// Notes a visit.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn note_login(&self, user: &str, ip: &str) -> Result<()> {
        let login = doc! { "at": self.now(), "ip": ip };
        self.set_on_user(user, "lastLogin", Bson::Document(login)).await
    }

    async fn set_on_user(&self, user: &str, field: &'static str, value: Bson) -> Result<()> {
        let user = user.to_owned();
        let done = self.run(move |unit| {
            let (user, value) = (user.clone(), value.clone());
            Box::pin(async move {
                unit.edit("users", "user", &user).await?.insert(field, value);
                Ok(())
            })
        });
        done.await
    }

    /// The rarely read part of a user.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such user; who has said nothing has an empty one.
    pub async fn profile(&self, user: &str) -> Result<Profile> {
        match self.collection("userProfiles").find_one(doc! { "_id": user }, None).await? {
            Some(profile) => from_document(&profile),
            None => self.by_id("users", "user", user).await.map(|_| Profile::default()),
        }
    }

    /// Writes the rarely read part of a user.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Full`].
    pub async fn set_profile(&self, user: &str, profile: &Profile) -> Result<()> {
        if profile.cards.len() > MAX_CARDS {
            return Err(Error::Full { what: "cards", max: MAX_CARDS });
        }
        let (user, profile) = (user.to_owned(), to_document(profile)?);
        let done = self.run(move |unit| {
            let (user, profile) = (user.clone(), profile.clone());
            Box::pin(async move {
                unit.need("users", "user", &user).await?;
                let mut document: Document = doc! { "_id": &user };
                document.extend(profile);
                match unit.get("userProfiles", &user).await?.is_some() {
                    true => *unit.edit("userProfiles", "profile", &user).await? = document,
                    false => unit.insert("userProfiles", "profile", document).await?,
                }
                Ok(())
            })
        });
        done.await
    }
}
