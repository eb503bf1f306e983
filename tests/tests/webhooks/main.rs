//! Webhooks: what is sent, and to whom; and what follows if it is not accepted.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod delivery;
mod failures;
mod refusals;

use heeler_tests::{Daemon, Receiver, daemon::Builder, receiver::Notice};

/// A daemon that sends events of these types to the receivers.
fn sending(types: &str, receivers: &[&Receiver]) -> Builder {
    let builder = Daemon::builder().arg("--webhook-events").arg(types);
    let webhook =
        |builder: Builder, receiver: &&Receiver| builder.arg("--webhook").arg(receiver.url());
    receivers.iter().fold(builder, webhook)
}

fn revisions(notices: &[Notice]) -> Vec<u64> {
    notices.iter().map(Notice::revision).collect()
}
