//! Digests of what a Spawn request says, in place of the request itself, which may hold secrets.
//!
//! Of a request with a `request_id` one digest is kept, to tell whether a later request with the id is the
//! same. Of one with an exclusive key the value of each environment variable has a digest, to tell
//! whether a later request with the key asks for an equal task, and in which variable it differs.

use ring::hmac;
use subtle::ConstantTimeEq as _;

use crate::task::{SpawnRequest, TaskUid, ValueDigest};

/// Keeps the digest of a value apart from that of a request.
const VALUE: &[u8] = b"value of a variable\0";

/// Keeps the secret of a task apart from every digest.
const SECRET: &[u8] = b"secret of a task\0";

fn secret_message(uid: TaskUid) -> Vec<u8> {
    [SECRET, uid.as_bytes()].concat()
}

/// The key of the digests of a state directory: without it, a value of few possibilities could be guessed
/// from a digest.
#[derive(Debug, Clone)]
pub(super) struct RequestKey(hmac::Key);

/// The digest of a request.
#[derive(Debug)]
pub(super) struct RequestDigest(hmac::Tag);

impl RequestKey {
    pub(super) fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    pub(super) fn digest(
        &self,
        request: &SpawnRequest,
    ) -> Result<RequestDigest, serde_json::Error> {
        let body = serde_json::to_vec(request)?;
        Ok(RequestDigest(hmac::sign(&self.0, &body)))
    }

    /// The digest of the value of a variable. The name is in it, so that equal values of two variables
    /// do not look alike.
    pub(super) fn value(&self, name: &str, value: &str) -> ValueDigest {
        let mut context = hmac::Context::with_key(&self.0);
        for part in [VALUE, name.as_bytes(), b"\0", value.as_bytes()] {
            context.update(part);
        }
        let mut half = [0; 16];
        half.copy_from_slice(&context.sign().as_ref()[..16]);
        ValueDigest(u128::from_be_bytes(half))
    }

    /// The secret of a task: a digest of its uid, so that nothing has to be stored.
    pub(super) fn task_secret(&self, uid: TaskUid) -> String {
        let tag = hmac::sign(&self.0, &secret_message(uid));
        let digits = tag.as_ref().iter().map(|byte| format!("{byte:02x}"));
        digits.collect()
    }

    /// Compares in constant time.
    pub(super) fn is_task_secret(&self, uid: TaskUid, secret: &str) -> bool {
        self.task_secret(uid)
            .as_bytes()
            .ct_eq(secret.as_bytes())
            .into()
    }

    /// The digest of a text of which nothing else is kept.
    pub(super) fn digest_of_text(&self, text: &str) -> TextDigest {
        TextDigest(hmac::sign(&self.0, text.as_bytes()).as_ref().into())
    }

    /// Reports whether a stored digest is that of this request. A request that cannot be encoded was
    /// never stored.
    pub(super) fn is_digest_of(&self, digest: &[u8], request: &SpawnRequest) -> bool {
        let body = serde_json::to_vec(request);
        body.is_ok_and(|body| hmac::verify(&self.0, &body, digest).is_ok())
    }
}

/// The keyed digest of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextDigest(Box<[u8]>);

impl TextDigest {
    /// A digest as it was stored.
    pub(super) fn stored(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl RequestDigest {
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X4, N4
    #[test]
    fn the_digest_of_a_value_depends_on_the_key_the_name_and_the_value() {
        let key = RequestKey::new(b"one");
        let digest = key.value("TOKEN", "secret");
        assert_eq!(key.value("TOKEN", "secret"), digest);
        assert_ne!(key.value("TOKEN", "another"), digest);
        assert_ne!(key.value("PASSWORD", "secret"), digest);
        assert_ne!(RequestKey::new(b"two").value("TOKEN", "secret"), digest);
    }

    /// K4
    #[test]
    fn the_secret_of_a_task_depends_on_the_key_and_the_task() {
        let (key, task) = (RequestKey::new(b"one"), TaskUid::new());
        let secret = key.task_secret(task);
        assert_eq!(secret.len(), 64);
        assert!(key.is_task_secret(task, &secret));
        assert!(!key.is_task_secret(TaskUid::new(), &secret));
        assert!(!RequestKey::new(b"two").is_task_secret(task, &secret));
        for forged in ["", "0", &secret[1..], &secret.to_uppercase()] {
            assert!(!key.is_task_secret(task, forged), "{forged}");
        }
    }
}
