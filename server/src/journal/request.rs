//! The digest of a Spawn request: all that is kept of one with a `request_id` to tell whether a later
//! request with the id is the same. The request itself may hold secrets.

use ring::hmac;

use crate::task::SpawnRequest;

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

    /// Reports whether a stored digest is that of this request. A request that cannot be encoded was
    /// never stored.
    pub(super) fn is_digest_of(&self, digest: &[u8], request: &SpawnRequest) -> bool {
        let body = serde_json::to_vec(request);
        body.is_ok_and(|body| hmac::verify(&self.0, &body, digest).is_ok())
    }
}

impl RequestDigest {
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_ref()
    }
}
