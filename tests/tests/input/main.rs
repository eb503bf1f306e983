//! Input to tasks, and their terminals.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod awaited;
mod crash;
mod refused;
mod relay;
mod room;
mod screen;
mod stop;
mod terminal;
mod write;
mod writers;

use heeler_tests::{Api, within};

/// Waits until the output has this text, and returns all of it.
async fn output_with(api: &Api, id: &str, text: &str) -> String {
    output_until(api, id, text, |output| output.contains(text)).await
}

/// Waits until the output so far is as described, and returns it.
async fn output_until(api: &Api, id: &str, what: &str, is_it: impl Fn(&str) -> bool) -> String {
    let found = async {
        let mut all = Vec::new();
        loop {
            let piece = api.poll(id, all.len() as u64).await.expect("a poll");
            all.extend(heeler_tests::output::bytes(&piece.chunks));
            let output = String::from_utf8_lossy(&all).into_owned();
            if is_it(&output) {
                return output;
            }
            assert!(!piece.complete, "ended without {what:?}: {output:?}");
        }
    };
    within(what, found).await
}
