//! `heeler events`: prints past events, and with `-f` new ones.

use std::{
    collections::VecDeque,
    time::{Duration, SystemTime},
};

use clap::Args;
use heeler_client::{
    Client, Error, ListOptions, StreamExt, WatchItem, WatchOptions, time,
    v1::{WatchEventsResponse, watch_events_response::Item},
};

use crate::{
    args::{selection, value::choices::EventType, value::duration},
    completion,
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
  heeler events -n 20
  heeler events -f --since 10m
  heeler events -f --after now --type ended
  heeler events -f --after now --type session-idle
  heeler events -f --session s1 --end-session
  heeler events -f --json --after 1 | jq -c .event

A line has the revision, the time, the task's id, the event type, the task's state after the event \
and a detail. SESSION_IDLE says that the last live task of a session has finished; it has the \
session instead of a task. With --json every message of the stream is printed, bookmarks included \
(with -n only those after the past events): resume after the last revision of either kind.";

/// Print events: the past ones, and with -f new ones as they happen
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Events {
    /// Only events after this revision, or `now`; 0 begins with the oldest event
    #[arg(long, value_name = "REV", default_value = "0", value_parser = after)]
    after: After,

    /// Only events of this session
    #[arg(long, value_parser = selection::not_empty(), add = completion::sessions())]
    session: Option<String>,

    /// Only events of this type; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<EventType>,

    /// Print new events as they happen
    #[arg(short, long)]
    follow: bool,

    /// Own the session: when this command and its other owners are gone, also by a kill, cancel its live tasks
    #[arg(long, requires = "session", requires = "follow")]
    end_session: bool,

    /// The time for an owner to come back before the session ends [default: 10s]
    #[arg(long, value_name = "T", value_parser = duration::parse, requires = "end_session")]
    reattach_window: Option<Duration>,

    /// Only the last N of the past events
    #[arg(short = 'n', long, value_name = "N", allow_hyphen_values = true)]
    tail: Option<usize>,

    /// Only events of the last T, e.g. 10m
    #[arg(long, value_name = "T", value_parser = duration::parse)]
    since: Option<Duration>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
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
        let present = match (self.follow, self.tail) {
            (true, None) => None,
            (false, _) | (true, Some(_)) => Some(newest_revision(&cx.client).await?),
        };
        let mut watch = cx.client.watch(self.options());
        let mut last = LastItems::new(self.tail);
        let mut is_past = present.is_some();
        while let Some(item) = watch.next().await {
            let item = item?;
            let revision = revision(&item);
            // Events that are newer than the command are not printed without -f.
            let is_wanted = self.follow || present.is_none_or(|present| revision <= present);
            if is_wanted && self.is_recent(&item) {
                match is_past {
                    true => last.put(&mut cx, item)?,
                    false => print(&mut cx, item)?,
                }
            }
            if is_past && present.is_some_and(|present| revision >= present) {
                last.finish(&mut cx)?;
                is_past = false;
                if !self.follow {
                    break;
                }
            }
        }
        cx.out.flush()?;
        Ok(Exit::Success)
    }

    /// Bookmarks are always recent.
    fn is_recent(&self, item: &WatchItem) -> bool {
        let (Some(since), WatchItem::Event(event)) = (self.since, item) else {
            return true;
        };
        let age = event
            .event_time
            .map(|at| time::since(SystemTime::now().into(), at));
        age.is_none_or(|age| age <= since)
    }

    fn options(&self) -> WatchOptions {
        let options = match self.after {
            After::Revision(revision) => WatchOptions::after(revision),
            After::Now => WatchOptions::from_now(),
        };
        let options = options
            .matching(selection::filter(self.session.as_deref(), &[]))
            .give_up_after(RECONNECT_LIMIT);
        let options = match &self.session {
            Some(session) if self.end_session => options.own_session(session, self.reattach_window),
            Some(_) | None => options,
        };
        let options = match (self.follow, self.tail) {
            (true, None) => options,
            (false, _) | (true, Some(_)) => options.bookmark_interval(CATCH_UP_BOOKMARKS),
        };
        self.types
            .iter()
            .fold(options, |options, &kind| options.event_type(kind.into()))
    }
}

/// The last of the past items, or all of them as they come.
struct LastItems {
    most: Option<usize>,
    items: VecDeque<WatchItem>,
}

impl LastItems {
    fn new(most: Option<usize>) -> Self {
        let items = VecDeque::new();
        Self { most, items }
    }

    fn put(&mut self, cx: &mut Context, item: WatchItem) -> Result<(), Failure> {
        let Some(most) = self.most else {
            return print(cx, item);
        };
        if matches!(item, WatchItem::Event(_)) {
            self.items.push_back(item);
        }
        if self.items.len() > most {
            self.items.pop_front();
        }
        Ok(())
    }

    fn finish(&mut self, cx: &mut Context) -> Result<(), Failure> {
        self.items.drain(..).try_for_each(|item| print(cx, item))
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
