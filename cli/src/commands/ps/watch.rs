//! `ps --watch`: the list again whenever it changes. Events wake it; between them it asks for nothing.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use heeler_client::{StreamExt, Watch, WatchItem, WatchOptions, v1::ListResponse};
use tokio::time::timeout;

use super::Ps;
use crate::{
    context::{Context, Printed, RECONNECT_LIMIT},
    exit::Exit,
    failure::Failure,
};

/// Events that follow one another within this time make one new list.
const SETTLE: Duration = Duration::from_millis(100);
/// The most events that one list waits for.
const MOST_EVENTS: usize = 1000;

/// Clears the screen and moves to its first line.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

impl Ps {
    pub(super) async fn watch(
        &self,
        mut cx: Context,
        listed: ListResponse,
    ) -> Result<Exit, Failure> {
        let options = WatchOptions::after(listed.revision).give_up_after(RECONNECT_LIMIT);
        let mut watch = cx.client.watch(options);
        let mut listed = listed;
        loop {
            self.show(&mut cx, &listed)?;
            if !changed(&mut watch).await? {
                return Ok(Exit::Success);
            }
            listed = self.list(&cx.client).await?;
        }
    }

    fn show(&self, cx: &mut Context, listed: &ListResponse) -> Result<(), Failure> {
        if cx.print_json_line(listed)? == Printed::No {
            if io::stdout().is_terminal() {
                cx.out.bytes(CLEAR.as_bytes())?;
            }
            self.print(cx, listed)?;
            if !io::stdout().is_terminal() {
                cx.out.line("")?;
            }
        }
        Ok(cx.out.flush()?)
    }
}

/// Waits for an event, and for those that follow it at once. Returns false at the end of the stream.
async fn changed(watch: &mut Watch) -> Result<bool, Failure> {
    loop {
        match watch.next().await.transpose()? {
            Some(WatchItem::Event(_)) => break,
            Some(WatchItem::Initial(_) | WatchItem::Bookmark(_)) => {}
            None => return Ok(false),
        }
    }
    for _ in 0..MOST_EVENTS {
        match timeout(SETTLE, watch.next()).await {
            Ok(Some(item)) => drop(item?),
            Ok(None) => return Ok(false),
            Err(_) => break,
        }
    }
    Ok(true)
}
