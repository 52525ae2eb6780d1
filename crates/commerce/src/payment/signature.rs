//! Signatures of callbacks and webhooks, by the Standard Webhooks scheme: HMAC-SHA256 over `id.timestamp.body`.

use crate::error::{Error, Result};
use crate::time::Time;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::time::Duration;

/// How old or early a signature may be.
pub const SIGNATURE_TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// A signed message: the three headers and the body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// `webhook-id`: the same when the message is sent again.
    pub id: String,
    /// `webhook-timestamp`: when it was sent, in seconds since 1970.
    pub timestamp: i64,
    /// `webhook-signature`: `v1,` and the signature in Base64; several ones are separated by spaces.
    pub signature: String,
    /// The body, byte for byte.
    pub body: Vec<u8>,
}

fn mac(secret: &[u8], id: &str, timestamp: i64, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(id.as_bytes());
    mac.update(b".");
    mac.update(timestamp.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    mac
}

impl Signed {
    /// Signs a body.
    pub fn sign(secret: &[u8], id: &str, at: Time, body: Vec<u8>) -> Signed {
        let timestamp = at.millis().div_euclid(1_000);
        let tag = mac(secret, id, timestamp, &body).finalize().into_bytes();
        Signed { id: id.to_owned(), timestamp, signature: format!("v1,{}", STANDARD.encode(tag)), body }
    }

    /// That the body was signed with the secret, not long ago. Compares in constant time.
    ///
    /// # Errors
    /// [`Error::BadSignature`], also for an empty secret: a shop without one accepts nothing.
    pub fn verify(&self, secret: &[u8], now: Time) -> Result<()> {
        let age = now.millis().div_euclid(1_000).saturating_sub(self.timestamp).unsigned_abs();
        if secret.is_empty() || age > SIGNATURE_TOLERANCE.as_secs() {
            return Err(Error::BadSignature);
        }
        let one_fits = self.signature.split_ascii_whitespace().any(|signature| {
            let tag = signature.strip_prefix("v1,").and_then(|text| STANDARD.decode(text).ok());
            tag.is_some_and(|tag| mac(secret, &self.id, self.timestamp, &self.body).verify_slice(&tag).is_ok())
        });
        if one_fits { Ok(()) } else { Err(Error::BadSignature) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemes_own_example_is_signed_as_published() {
        // The example of the Standard Webhooks specification's test suite.
        let secret = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let at = Time::from_millis(1_614_265_330_000);
        let signed = Signed::sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, br#"{"test": 2432232314}"#.to_vec());
        assert_eq!(signed.signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_byte_changed_or_a_minute_too_late_is_refused() {
        let at = Time::from_millis(1_700_000_000_000);
        let signed = Signed::sign(b"secret", "m1", at, b"{}".to_vec());
        signed.verify(b"secret", at).unwrap();
        signed.verify(b"secret", at.plus(SIGNATURE_TOLERANCE)).unwrap();
        let rotated = Signed { signature: format!("v1,AAAA {}", signed.signature), ..signed.clone() };
        rotated.verify(b"secret", at).unwrap();
        let wrong = [
            signed.verify(b"other", at),
            signed.verify(b"", at),
            signed.verify(b"secret", at.plus(SIGNATURE_TOLERANCE + Duration::from_secs(60))),
            signed.verify(b"secret", at.minus(SIGNATURE_TOLERANCE + Duration::from_secs(60))),
            Signed { body: b"{ }".to_vec(), ..signed.clone() }.verify(b"secret", at),
            Signed { id: "m2".into(), ..signed.clone() }.verify(b"secret", at),
            Signed { timestamp: signed.timestamp + 1, ..signed.clone() }.verify(b"secret", at),
            Signed { signature: String::new(), ..signed }.verify(b"secret", at),
        ];
        assert!(wrong.iter().all(|refused| matches!(refused, Err(Error::BadSignature))), "{wrong:?}");
    }
}
