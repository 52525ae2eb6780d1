//! SCRAM, the server's side, as functions of what was said: RFC 5802 (SHA-1) and RFC 7677 (SHA-256).
//!
//! ```text
//! client first   n,,n=<user>,r=<client nonce>
//! server first   r=<client nonce><server nonce>,s=<salt>,i=<iterations>
//! client final   c=biws,r=<both nonces>,p=<proof>
//! server final   v=<server signature>
//! ```
//!
//! Only keys derived from a password are kept, never the password.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use engine::{Code, Error, Result};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// How often a password is hashed for SCRAM-SHA-1.
pub(crate) const SCRAM_SHA_1_ITERATIONS: u32 = 10_000;
/// How often a password is hashed for SCRAM-SHA-256.
pub(crate) const SCRAM_SHA_256_ITERATIONS: u32 = 15_000;
/// The salts' sizes, as MongoDB has them.
const SHA_1_SALT_BYTES: usize = 16;
const SHA_256_SALT_BYTES: usize = 28;
/// The longest message of a client.
const MAX_MESSAGE_BYTES: usize = 4096;
/// The server's part of the nonce.
const NONCE_BYTES: usize = 24;

/// A mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mechanism {
    /// SCRAM-SHA-1.
    Sha1,
    /// SCRAM-SHA-256.
    Sha256,
}

impl Mechanism {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mechanism::Sha1 => "SCRAM-SHA-1",
            Mechanism::Sha256 => "SCRAM-SHA-256",
        }
    }

    /// The mechanism of a name.
    pub(crate) fn by_name(name: &str) -> Option<Mechanism> {
        match name {
            "SCRAM-SHA-1" => Some(Mechanism::Sha1),
            "SCRAM-SHA-256" => Some(Mechanism::Sha256),
            _ => None,
        }
    }

    fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        const ANY_LENGTH: &str = "HMAC takes keys of any length";
        match self {
            Mechanism::Sha1 => {
                let mut mac = <Hmac<Sha1> as KeyInit>::new_from_slice(key).expect(ANY_LENGTH);
                parts.iter().for_each(|part| mac.update(part));
                mac.finalize().into_bytes().to_vec()
            }
            Mechanism::Sha256 => {
                let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect(ANY_LENGTH);
                parts.iter().for_each(|part| mac.update(part));
                mac.finalize().into_bytes().to_vec()
            }
        }
    }

    fn hash(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::Sha1 => Sha1::digest(bytes).to_vec(),
            Mechanism::Sha256 => Sha256::digest(bytes).to_vec(),
        }
    }

    fn salted_password(self, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        match self {
            Mechanism::Sha1 => {
                let mut out = vec![0; 20];
                pbkdf2::pbkdf2_hmac::<Sha1>(password, salt, iterations, &mut out);
                out
            }
            Mechanism::Sha256 => {
                let mut out = vec![0; 32];
                pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, iterations, &mut out);
                out
            }
        }
    }
}

/// What is kept of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) salt: Vec<u8>,
    pub(crate) iterations: u32,
    pub(crate) stored_key: Vec<u8>,
    pub(crate) server_key: Vec<u8>,
}

impl Credentials {
    /// Credentials of a password, with a fresh salt.
    pub(crate) fn new(mechanism: Mechanism, user: &str, password: &str) -> Result<Credentials> {
        let (salt_bytes, iterations) = match mechanism {
            Mechanism::Sha1 => (SHA_1_SALT_BYTES, SCRAM_SHA_1_ITERATIONS),
            Mechanism::Sha256 => (SHA_256_SALT_BYTES, SCRAM_SHA_256_ITERATIONS),
        };
        let password = match mechanism {
            Mechanism::Sha1 => sha_1_password(user, password),
            Mechanism::Sha256 => match stringprep::saslprep(password) {
                Ok(prepared) => prepared.into_owned(),
                Err(error) => {
                    return Err(Error::bad_value(format!("the password has characters that can't be used: {error}")));
                }
            },
        };
        Ok(Credentials::derive(mechanism, password.as_bytes(), random(salt_bytes)?, iterations))
    }

    fn derive(mechanism: Mechanism, password: &[u8], salt: Vec<u8>, iterations: u32) -> Credentials {
        let salted = mechanism.salted_password(password, &salt, iterations);
        let client_key = mechanism.hmac(&salted, &[b"Client Key"]);
        let server_key = mechanism.hmac(&salted, &[b"Server Key"]);
        Credentials { salt, iterations, stored_key: mechanism.hash(&client_key), server_key }
    }
}

/// MongoDB's SCRAM-SHA-1 hashes this in place of the password.
fn sha_1_password(user: &str, password: &str) -> String {
    let digest = Md5::digest(format!("{user}:mongo:{password}"));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn random(bytes: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; bytes];
    getrandom::fill(&mut out).map_err(|error| Error::internal(format!("no randomness: {error}")))?;
    Ok(out)
}

/// What a client's first message says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientFirst {
    pub(crate) user: String,
    nonce: String,
    bare: String,
    gs2_header: String,
}

impl ClientFirst {
    /// Reads it.
    pub(crate) fn parse(payload: &[u8]) -> Result<ClientFirst> {
        let text = text(payload)?;
        let mut parts = text.splitn(3, ',');
        let (binding, authorization, bare) = (parts.next(), parts.next(), parts.next());
        let (Some(binding @ ("n" | "y")), Some(authorization), Some(bare)) = (binding, authorization, bare) else {
            return Err(malformed("the first message starts with 'n,,' or 'y,,': channel binding is not supported"));
        };
        let (Some(user), Some(nonce)) = (attribute(bare, 0, 'n'), attribute(bare, 1, 'r')) else {
            return Err(malformed("the first message names a user and a nonce"));
        };
        if nonce.is_empty() {
            return Err(malformed("the nonce is empty"));
        }
        Ok(ClientFirst {
            user: unescape(user)?,
            nonce: nonce.to_owned(),
            bare: bare.to_owned(),
            gs2_header: format!("{binding},{authorization},"),
        })
    }
}

/// A conversation after the server's first message.
#[derive(Debug)]
pub(crate) struct Exchange {
    mechanism: Mechanism,
    credentials: Credentials,
    nonce: String,
    client_first: ClientFirst,
    server_first: String,
}

impl Exchange {
    /// Answers a client's first message.
    pub(crate) fn start(
        mechanism: Mechanism,
        first: ClientFirst,
        credentials: Credentials,
    ) -> Result<(Exchange, String)> {
        let server_nonce = BASE64.encode(random(NONCE_BYTES)?);
        Ok(Exchange::start_with(mechanism, first, credentials, &server_nonce))
    }

    fn start_with(
        mechanism: Mechanism,
        client_first: ClientFirst,
        credentials: Credentials,
        server_nonce: &str,
    ) -> (Exchange, String) {
        let nonce = format!("{}{server_nonce}", client_first.nonce);
        let salt = BASE64.encode(&credentials.salt);
        let server_first = format!("r={nonce},s={salt},i={}", credentials.iterations);
        (Exchange { mechanism, credentials, nonce, client_first, server_first: server_first.clone() }, server_first)
    }

    /// Checks a client's final message; the server's final one proves that we know the password's keys too.
    pub(crate) fn finish(self, payload: &[u8]) -> Result<String> {
        let text = text(payload)?;
        let Some((without_proof, proof)) = text.rsplit_once(",p=") else {
            return Err(malformed("the final message has no proof"));
        };
        let (Some(binding), Some(nonce)) = (attribute(without_proof, 0, 'c'), attribute(without_proof, 1, 'r')) else {
            return Err(malformed("the final message repeats the channel binding and the nonce"));
        };
        if nonce != self.nonce || binding != BASE64.encode(&self.client_first.gs2_header) {
            return Err(failed());
        }
        let proof = BASE64.decode(proof).map_err(|_| malformed("the proof is not base64"))?;
        let said: [&[u8]; 5] =
            [self.client_first.bare.as_bytes(), b",", self.server_first.as_bytes(), b",", without_proof.as_bytes()];
        let signature = self.mechanism.hmac(&self.credentials.stored_key, &said);
        if proof.len() != signature.len() {
            return Err(failed());
        }
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(proof, signature)| proof ^ signature).collect();
        if !equal(&self.mechanism.hash(&client_key), &self.credentials.stored_key) {
            return Err(failed());
        }
        let server_signature = self.mechanism.hmac(&self.credentials.server_key, &said);
        Ok(format!("v={}", BASE64.encode(server_signature)))
    }
}

/// Compares in a time that does not depend on where they differ.
fn equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

fn text(payload: &[u8]) -> Result<&str> {
    if payload.len() > MAX_MESSAGE_BYTES {
        return Err(malformed("the message is too long"));
    }
    std::str::from_utf8(payload).map_err(|_| malformed("the message is not UTF-8"))
}

/// The value of the attribute `name=…` at a position.
fn attribute(message: &str, position: usize, name: char) -> Option<&str> {
    message.split(',').nth(position)?.strip_prefix(name)?.strip_prefix('=')
}

fn unescape(user: &str) -> Result<String> {
    let unescaped = user.replace("=2C", ",").replace("=3D", "=");
    let escapes = user.matches("=2C").count() + user.matches("=3D").count();
    if user.matches('=').count() != escapes {
        return Err(malformed("'=' and ',' in a user's name are written '=3D' and '=2C'"));
    }
    Ok(unescaped)
}

fn malformed(reason: &str) -> Error {
    Error::new(Code::AUTHENTICATION_FAILED, format!("SCRAM conversation can't be understood: {reason}"))
}

/// The one answer to every wrong name or password.
pub(crate) fn failed() -> Error {
    Error::new(Code::AUTHENTICATION_FAILED, "Authentication failed.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(mechanism: Mechanism, password: &str, salt: &str) -> Credentials {
        let salt = BASE64.decode(salt).expect("base64");
        Credentials::derive(mechanism, password.as_bytes(), salt, 4096)
    }

    /// The example conversation of RFC 7677, section 3.
    #[test]
    fn sha_256_speaks_the_example_of_rfc_7677() {
        let first = ClientFirst::parse(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").expect("well formed");
        assert_eq!(first.user, "user");
        let keys = credentials(Mechanism::Sha256, "pencil", "W22ZaJ0SNY7soEsUEjb6gQ==");
        let server_nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let (exchange, server_first) = Exchange::start_with(Mechanism::Sha256, first, keys, server_nonce);
        assert_eq!(
            server_first,
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let client_final = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let server_final = exchange.finish(client_final).expect("the right password");
        assert_eq!(server_final, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    /// The example conversation of RFC 5802, section 5.
    #[test]
    fn sha_1_speaks_the_example_of_rfc_5802() {
        let first = ClientFirst::parse(b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL").expect("well formed");
        let keys = credentials(Mechanism::Sha1, "pencil", "QSXCR+Q6sek8bf92");
        let (exchange, _) = Exchange::start_with(Mechanism::Sha1, first, keys, "3rfcNHYJY1ZVvWVs7j");
        let client_final = b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=";
        assert_eq!(exchange.finish(client_final).expect("right"), "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=");
    }

    #[test]
    fn a_wrong_proof_nonce_or_binding_fails() {
        let start = || {
            let first = ClientFirst::parse(b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL").expect("well formed");
            let keys = credentials(Mechanism::Sha1, "pencil", "QSXCR+Q6sek8bf92");
            Exchange::start_with(Mechanism::Sha1, first, keys, "3rfcNHYJY1ZVvWVs7j").0
        };
        for message in [
            "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=AAAAv3Bz2T0CJGbJQyF0X+HI4Ts=",
            "c=biws,r=another,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            "c=eSws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=AAAA",
            "nonsense",
        ] {
            let refused = start().finish(message.as_bytes()).expect_err("refused");
            assert_eq!(refused.code, Code::AUTHENTICATION_FAILED, "{message}");
        }
    }

    #[test]
    fn names_are_unescaped_and_bindings_refused() {
        let user = |message: &str| ClientFirst::parse(message.as_bytes()).map(|first| first.user);
        assert_eq!(user("n,,n=a=2Cb=3Dc,r=x").expect("well formed"), "a,b=c");
        assert!(user("n,,n=a=b,r=x").is_err());
        assert!(user("p=tls-unique,,n=a,r=x").is_err());
        assert!(user("n,,n=a,r=").is_err());
        assert!(user("").is_err());
    }
}
