//! Subscriptions to resources: one future each, which tells its client of changes, but not more often than it
//! could read them.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use heeler_client::CancellationToken;
use rmcp::{
    ErrorData, Peer, RoleServer, model::ResourceUpdatedNotificationParam, service::SubscriptionSink,
};
use tokio::time::sleep;

use super::Source;

/// The most subscriptions of a connection.
const MOST: usize = 64;
/// Minimum time between two notifications of one resource.
const PAUSE: Duration = Duration::from_millis(500);

/// The subscriptions of a client of the older lifecycle, by their URI.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    open: Mutex<HashMap<String, CancellationToken>>,
}

impl Subscriptions {
    pub(crate) fn add(
        &self,
        source: Source,
        peer: Peer<RoleServer>,
        closed: &CancellationToken,
    ) -> Result<(), ErrorData> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, token| !token.is_cancelled());
        if open.len() >= MOST {
            let message = format!("there are {MOST} subscriptions: unsubscribe from one first");
            return Err(ErrorData::invalid_params(message, None));
        }
        let token = closed.child_token();
        if let Some(earlier) = open.insert(source.uri.clone(), token.clone()) {
            earlier.cancel();
        }
        tokio::spawn(async move {
            let uri = source.uri.clone();
            let tell = || {
                let notice = ResourceUpdatedNotificationParam::new(uri.clone());
                async { peer.notify_resource_updated(notice).await.is_ok() }
            };
            token.run_until_cancelled(follow(source, tell)).await;
            token.cancel();
        });
        Ok(())
    }

    pub(crate) fn remove(&self, uri: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = open.remove(uri) {
            token.cancel();
        }
    }
}

/// Tells a client of the newer lifecycle of changes, until its subscription ends.
pub(crate) async fn listen(sources: Vec<Source>, sink: &SubscriptionSink) {
    let mut followers = tokio::task::JoinSet::new();
    for source in sources.into_iter().take(MOST) {
        let (sink, uri) = (sink.clone(), source.uri.clone());
        followers.spawn(async move {
            let tell = || {
                let uri = uri.clone();
                async { sink.notify_resource_updated(uri).await.is_ok() }
            };
            follow(source, tell).await;
        });
    }
    while followers.join_next().await.is_some() {}
    // A source that has ended changes nothing for the client: the subscription stays open.
    std::future::pending::<()>().await;
}

async fn follow<F: Future<Output = bool>>(mut source: Source, tell: impl Fn() -> F) {
    while source.changed().await.is_some() {
        if !tell().await {
            return;
        }
        sleep(PAUSE).await;
    }
}
