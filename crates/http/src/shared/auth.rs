//! Who calls, and what they may do.

use crate::shared::problem::{Problem, Result, UNAUTHENTICATED};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Buys, and sees their own orders.
    Buyer,
    /// Runs the shop: products, stock, shipping.
    Merchant,
    /// Runs the service: tokens, repairs, reports.
    Operator,
    /// Posts, follows, chats.
    User,
    /// Takes down what others posted.
    Moderator,
    /// Writes articles.
    Author,
    /// Notes readings and logs of machines.
    Collector,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 7] =
        [Role::Buyer, Role::Merchant, Role::Operator, Role::User, Role::Moderator, Role::Author, Role::Collector];

    /// Its name, as in tokens and in the API's description.
    pub fn name(self) -> &'static str {
        match self {
            Role::Buyer => "buyer",
            Role::Merchant => "merchant",
            Role::Operator => "operator",
            Role::User => "user",
            Role::Moderator => "moderator",
            Role::Author => "author",
            Role::Collector => "collector",
        }
    }

    /// The role of a name.
    pub fn of(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// Who calls.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The token's id.
    pub token: String,
    /// On whose behalf.
    pub subject: String,
    /// What they may do.
    pub roles: Vec<Role>,
}

impl Caller {
    /// Whether they have one of these roles.
    pub fn is_any(&self, roles: &[Role]) -> bool {
        self.roles.iter().any(|role| roles.contains(role))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller> {
        parts.extensions.get::<Caller>().cloned().ok_or_else(unauthenticated)
    }
}

/// What follows `Bearer ` in the request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The refusal of a call without a valid token.
pub(crate) fn unauthenticated() -> Problem {
    let challenge = HeaderValue::from_static("Bearer realm=\"sheaf\"");
    Problem::new(&UNAUTHENTICATED, "send 'Authorization: Bearer …' with a token that is known and not over")
        .header(header::WWW_AUTHENTICATE, challenge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_found_by_their_names() {
        for role in Role::ALL {
            assert_eq!(Role::of(role.name()), Some(role));
        }
        assert_eq!(Role::of("root"), None);
    }

    #[test]
    fn the_scheme_is_read_in_any_case() {
        let mut headers = HeaderMap::new();
        assert_eq!(bearer(&headers), None);
        for (text, expected) in [("bearer abc", Some("abc")), ("Bearer abc", Some("abc")), ("Basic abc", None)] {
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(text));
            assert_eq!(bearer(&headers), expected);
        }
    }
}
