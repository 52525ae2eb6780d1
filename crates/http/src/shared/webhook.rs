//! Standard Webhooks: signatures of what comes in and of what goes out.
//!
//! A message has three headers: `webhook-id`, `webhook-timestamp` (seconds since 1970) and `webhook-signature`, a list with
//! spaces between of `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`. A secret is `whsec_` and base64.

use crate::shared::core::Core;
use crate::shared::problem::{BODY_TOO_LARGE, Problem, Result, SIGNATURE_INVALID};
use crate::shared::token::same;
use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// How far a message's clock may be from ours.
const TOLERANCE_SECONDS: u64 = 5 * 60;
/// The most signatures of a message that are looked at.
const MAX_SIGNATURES: usize = 8;
const SECRET_PREFIX: &str = "whsec_";

/// The secrets by sender.
pub(crate) struct Secrets {
    keys: BTreeMap<String, Vec<u8>>,
}

impl Secrets {
    /// Secrets as they are configured; one that can't be read is refused by the configuration already.
    pub(crate) fn new(configured: &[(String, String)]) -> Secrets {
        let keys = configured.iter().filter_map(|(sender, secret)| Some((sender.clone(), key(secret)?)));
        Secrets { keys: keys.collect() }
    }
}

/// Whether a text is a webhook secret: `whsec_` and base64.
pub fn is_secret(text: &str) -> bool {
    key(text).is_some()
}

/// The key of a secret; `None` for what is not one.
pub(crate) fn key(secret: &str) -> Option<Vec<u8>> {
    let key = STANDARD.decode(secret.strip_prefix(SECRET_PREFIX)?).ok()?;
    (!key.is_empty()).then_some(key)
}

/// A message's signature.
pub(crate) fn sign(key: &[u8], id: &str, timestamp: u64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// Checks a message's signature; gives its id.
fn verify(key: &[u8], headers: &HeaderMap, body: &[u8], now: u64) -> Result<String> {
    let refused = |why: &str| Problem::new(&SIGNATURE_INVALID, why);
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(id), Some(timestamp), Some(signatures)) =
        (header("webhook-id"), header("webhook-timestamp"), header("webhook-signature"))
    else {
        return Err(refused("send webhook-id, webhook-timestamp and webhook-signature"));
    };
    let Ok(timestamp) = timestamp.parse::<u64>() else {
        return Err(refused("webhook-timestamp must be seconds since 1970"));
    };
    if timestamp.abs_diff(now) > TOLERANCE_SECONDS {
        return Err(refused("webhook-timestamp is too far from now"));
    }
    let ours = sign(key, id, timestamp, body);
    let fits = signatures.split(' ').take(MAX_SIGNATURES).any(|theirs| same(theirs.as_bytes(), ours.as_bytes()));
    if fits { Ok(id.to_owned()) } else { Err(refused("webhook-signature does not fit the message")) }
}

/// Reads and checks a signed request; gives the sender, the message's id and the request.
pub(crate) async fn verified(core: &Core, request: Request) -> Result<(String, String, Request)> {
    let sender = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let (parts, body) = request.into_parts();
    let limit = core.limits.body_size_bytes;
    let body = tokio::time::timeout(core.limits.body_timeout, axum::body::to_bytes(body, limit)).await;
    let Ok(Ok(body)) = body else {
        return Err(Problem::new(&BODY_TOO_LARGE, format!("the body may have {limit} bytes, and must arrive in time")));
    };
    // An unknown sender is told the same as one with a wrong signature.
    let unknown = Vec::from(*b"no sender has this key");
    let key = core.secrets.keys.get(&sender).unwrap_or(&unknown);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let id = verify(key, &parts.headers, &body, now)?;
    if !core.secrets.keys.contains_key(&sender) {
        return Err(Problem::new(&SIGNATURE_INVALID, "webhook-signature does not fit the message"));
    }
    Ok((sender, id, Request::from_parts(parts, Body::from(body))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    /// The example of the Standard Webhooks specification's reference libraries.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const TIME: u64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn headers(signature: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("webhook-id", HeaderValue::from_static(ID));
        headers.insert("webhook-timestamp", HeaderValue::from(TIME));
        headers.insert("webhook-signature", HeaderValue::from_str(signature).unwrap());
        headers
    }

    #[test]
    fn signatures_are_those_of_the_specification() {
        let key = key(SECRET).unwrap();
        assert_eq!(sign(&key, ID, TIME, BODY), SIGNATURE);
        assert_eq!(verify(&key, &headers(SIGNATURE), BODY, TIME).unwrap(), ID);
        let among_others = format!("v1,AAAA v2,BBBB {SIGNATURE}");
        assert_eq!(verify(&key, &headers(&among_others), BODY, TIME).unwrap(), ID);
    }

    #[test]
    fn another_body_a_late_message_and_missing_headers_are_refused() {
        let key = key(SECRET).unwrap();
        assert!(verify(&key, &headers(SIGNATURE), b"{}", TIME).is_err());
        assert!(verify(&key, &headers(SIGNATURE), BODY, TIME + TOLERANCE_SECONDS).is_ok());
        assert!(verify(&key, &headers(SIGNATURE), BODY, TIME + TOLERANCE_SECONDS + 1).is_err());
        assert!(verify(&key, &headers(SIGNATURE), BODY, TIME - TOLERANCE_SECONDS - 1).is_err());
        assert!(verify(&key, &HeaderMap::new(), BODY, TIME).is_err());
        assert!(super::key("whsec_").is_none() && super::key("secret").is_none());
    }
}
