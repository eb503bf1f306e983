//! `heeler events`: prints past events, and with `-f` new ones.

use std::time::Duration;

use clap::Args;
use heeler_client::{
    Client, Error, ListOptions, StreamExt, WatchItem, WatchOptions,
    v1::{WatchEventsResponse, watch_events_response::Item},
};

use crate::{
    args::{choices::EventType, selection},
    context::{ClientArgs, Context, Printed, RECONNECT_LIMIT},
    exit::Exit,
    failure::Failure,
    render::{event, text},
};

/// The bookmark interval without `-f`: a bookmark shows that a quiet stream has reached the present.
const CATCH_UP_BOOKMARKS: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Examples:
  heeler events --session s1
  heeler events -f --after now --type ended
  heeler events -f --after now --type session-idle
  heeler events -f --json --after 4711 | jq -c .event

A line has the revision, the time, the task's id, the event type, the task's state after the event
and a detail. SESSION_IDLE says that the last live task of a session has finished; it has the
session instead of a task. With --json every message of the stream is printed, bookmarks included:
resume after the last revision of either kind.";

/// Print events: the past ones, and with -f new ones as they happen
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Events {
    /// Only events after this revision, or `now`; 0 begins with the oldest event
    #[arg(long, value_name = "REV", default_value = "0", value_parser = after)]
    after: After,

    /// Only events of this session
    #[arg(long, value_parser = selection::not_empty())]
    session: Option<String>,

    /// Only events of this type; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<EventType>,

    /// Print new events as they happen
    #[arg(short, long)]
    follow: bool,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Revision(u64),
    Now,
}

fn after(text: &str) -> Result<After, String> {
    match text {
        "now" => Ok(After::Now),
        number => number
            .parse()
            .map(After::Revision)
            .map_err(|_| "expected a revision, or `now`".to_owned()),
    }
}

impl Events {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let present = match self.follow {
            true => None,
            false => Some(newest_revision(&cx.client).await?),
        };
        let mut watch = cx.client.watch(self.options());
        while let Some(item) = watch.next().await {
            let item = item?;
            let revision = revision(&item);
            // Events that are newer than the command are not printed without -f.
            if present.is_none_or(|present| revision <= present) {
                print(&mut cx, item)?;
            }
            if present.is_some_and(|present| revision >= present) {
                break;
            }
        }
        cx.out.flush()?;
        Ok(Exit::Success)
    }

    fn options(&self) -> WatchOptions {
        let options = match self.after {
            After::Revision(revision) => WatchOptions::after(revision),
            After::Now => WatchOptions::from_now(),
        };
        let options = options
            .matching(selection::filter(self.session.as_deref(), &[]))
            .give_up_after(RECONNECT_LIMIT);
        let options = if self.follow {
            options
        } else {
            options.bookmark_interval(CATCH_UP_BOOKMARKS)
        };
        self.types
            .iter()
            .fold(options, |options, &kind| options.event_type(kind.into()))
    }
}

async fn newest_revision(client: &Client) -> Result<u64, Error> {
    Ok(client
        .list_page(ListOptions::live().page_size(1))
        .await?
        .revision)
}

fn revision(item: &WatchItem) -> u64 {
    match item {
        WatchItem::Initial(task) => task.revision,
        WatchItem::Event(event) => event.revision,
        WatchItem::Bookmark(bookmark) => bookmark.revision,
    }
}

fn print(cx: &mut Context, item: WatchItem) -> Result<(), Failure> {
    let item = match item {
        WatchItem::Initial(task) => Item::Initial(task),
        WatchItem::Event(event) => Item::Event(event),
        WatchItem::Bookmark(bookmark) => Item::Bookmark(bookmark),
    };
    let response = WatchEventsResponse { item: Some(item) };
    if cx.print_json_line(&response)? == Printed::No
        && let Some(Item::Event(event)) = &response.item
    {
        cx.out.line(&text::visible(&event::line(event)))?;
    }
    Ok(cx.out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_is_a_revision_or_now() {
        assert_eq!(after("42"), Ok(After::Revision(42)));
        assert_eq!(after("now"), Ok(After::Now));
        assert!(after("-1").is_err() && after("").is_err() && after("then").is_err());
    }
}
