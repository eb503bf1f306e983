//! Webhooks: sends events to receivers over HTTP, in order and at least once.
//!
//! ```text
//! journal ──> watcher ──> delivery ── POST ──> receiver
//!                ^           │ 2xx
//!                └─ cursor <─┘
//! ```
//!
//! Each receiver has a delivery of its own, which holds one event and what its watcher has read ahead. A receiver
//! that does not answer delays nothing else. Its cursor is the revision up to which it has everything; events that
//! are pruned meanwhile are told of as missed.

mod cursor;
mod delivery;
mod receiver;
mod urls;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use heeler_proto::v1;
use prometheus_client::metrics::counter::Counter;
use ring::hmac;
use tokio::task::JoinSet;

use self::{
    cursor::{Cursor, Cursors, retire_all},
    delivery::Delivery,
    receiver::{Address, Roots},
};
use super::{
    Service,
    http::EventWriter,
    transport::{Purpose, Token, TokenError},
};
use crate::{config, process::own_uid};

/// The file with the secret in the state directory.
const SECRET_FILE: &str = "webhook-secret";

/// The reason why webhooks cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The rest of a URL is often a secret.
    #[error("cannot send events to {shown}: {problem}")]
    Url {
        /// Its scheme and its host.
        shown: String,
        problem: &'static str,
    },
    #[error("cannot read the URLs of webhooks in {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// Other users may know the URLs.
    #[error(
        "the file {} with the URLs of webhooks is not private to uid {}: give it the mode 0600",
        path.display(), own_uid()
    )]
    FileNotPrivate { path: PathBuf },
    #[error("the file {} contains no URL", path.display())]
    FileEmpty { path: PathBuf },
    #[error(
        "cannot send events to {host}: webhooks go to loopback addresses only (heeler serve --allow-webhook-hosts allows others)"
    )]
    HostNotAllowed { host: String },
    #[error("no type of events has the name {0}")]
    UnknownEvent(String),
    #[error(transparent)]
    Secret(#[from] TokenError),
    #[error("cannot use {}: {source}", path.display())]
    Cursors { path: PathBuf, source: io::Error },
    #[error("no certificate of an authority was found on this system, which https needs")]
    NoAuthorities,
}

/// The deliveries to all receivers.
#[derive(Debug)]
pub(crate) struct Webhooks(Vec<Delivery>);

/// Counts of the attempts to deliver, for the metrics.
#[derive(Debug, Clone, Default)]
pub(crate) struct WebhookMeters {
    pub(super) delivered: Counter,
    pub(super) failed: Counter,
}

impl Webhooks {
    /// The file with the secret.
    pub(crate) fn secret_file(config: &config::Webhooks, state_dir: &Path) -> PathBuf {
        let own = || state_dir.join(SECRET_FILE);
        config.secret_file.clone().unwrap_or_else(own)
    }

    /// Reads or makes the secret and the cursors. A new receiver gets the events from now on, so this comes
    /// before the recovery.
    pub(crate) fn open(
        config: &config::Webhooks,
        state_dir: &Path,
        service: &Service,
        meters: &WebhookMeters,
    ) -> Result<Self, WebhookError> {
        let urls = urls::all(config)?;
        let read = |url: &String| Address::read(url, config.hosts);
        let addresses: Vec<Address> = urls.iter().map(read).collect::<Result<_, _>>()?;
        let types = types(&config.events)?;
        let roots = match addresses.iter().any(Address::needs_tls) {
            true => Some(Roots::of_the_system()?),
            false => None,
        };
        let secret = Token::at(Self::secret_file(config, state_dir), Purpose::Webhooks)?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.text().as_bytes());
        let cursors = Cursors::open(state_dir, urls.iter().map(|url| url.as_str()))?;
        let writer = Arc::new(EventWriter::new());
        let deliveries = urls.iter().zip(addresses).map(|(url, address)| {
            Ok(Delivery::new(
                service.clone(),
                address.receiver(key.clone(), roots.clone()),
                types.clone(),
                Cursor::of(&cursors, url, &service.journal)?,
                Arc::clone(&writer),
                meters.clone(),
            ))
        });
        Ok(Self(deliveries.collect::<Result<_, WebhookError>>()?))
    }

    /// Notes that no receiver is configured.
    pub(crate) fn none(state_dir: &Path) {
        retire_all(state_dir);
    }

    /// Delivers until the server shuts down.
    pub(crate) async fn run(self) {
        let mut deliveries = JoinSet::new();
        for delivery in self.0 {
            deliveries.spawn(delivery.run());
        }
        while deliveries.join_next().await.is_some() {}
    }
}

/// The types of events with these names.
fn types(names: &[String]) -> Result<Vec<i32>, WebhookError> {
    let read = |name: &String| {
        let full = format!("TASK_EVENT_TYPE_{}", name.to_uppercase());
        match v1::TaskEventType::from_str_name(&full) {
            Some(v1::TaskEventType::Unspecified) | None => {
                Err(WebhookError::UnknownEvent(name.clone()))
            }
            Some(found) => Ok(found.into()),
        }
    };
    names.iter().map(read).collect()
}
