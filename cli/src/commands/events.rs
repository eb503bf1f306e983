//! `heeler events`: what has happened, and with `-f` what happens.

use std::time::Duration;

use clap::Args;
use heeler_client::{
    Client, Error, ListOptions, StreamExt, WatchItem, WatchOptions,
    v1::{
        BackgroundTask, TaskEvent, TaskEventType, WatchEventsResponse, watch_events_response::Item,
    },
};

use crate::{
    context::{ClientArgs, Context, Printed},
    exit::{Exit, Failure},
    text,
    values::{self, EventType},
    words,
};

/// How soon a quiet stream tells that it has come to the present.
const CATCH_UP: Duration = Duration::from_millis(100);
/// How long a daemon that has gone is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
  heeler events --session s1
  heeler events -f --after now --type ended
  heeler events -f --after now --type session-idle
  heeler events -f --json --after 4711 | jq -c .event

A line has the revision, the time, the task's id, what happened, the task's state after it, and more.
SESSION_IDLE, when the last live task of a session has ended, has the session's name and no task.
With --json every message of the stream is printed, bookmarks included: resume after the last revision
of either kind.";

/// Print what has happened
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Events {
    /// Only what came after this revision, or `now`; 0: from the first there is record of
    #[arg(long, value_name = "REV", default_value = "0", value_parser = after)]
    after: After,

    /// Only of tasks of this session
    #[arg(long, value_parser = values::not_empty())]
    session: Option<String>,

    /// Only of this type; may be given again
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<EventType>,

    /// Go on with what happens, rather than end at the present
    #[arg(short, long)]
    follow: bool,

    #[command(flatten)]
    client: ClientArgs,
}

/// Where to begin.
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
            .map_err(|_| "write a revision, or `now`".to_owned()),
    }
}

impl Events {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let head = match self.follow {
            true => None,
            false => Some(present(&cx.client).await?),
        };
        let mut watch = cx.client.watch(self.options());
        while let Some(item) = watch.next().await {
            let item = item?;
            let reached = revision(&item);
            // What happened since the command began is no longer the past.
            if head.is_none_or(|head| reached <= head) {
                print(&mut cx, item)?;
            }
            if head.is_some_and(|head| reached >= head) {
                break;
            }
        }
        cx.out.flush()?;
        Ok(Exit::Done)
    }

    fn options(&self) -> WatchOptions {
        let options = match self.after {
            After::Revision(revision) => WatchOptions::after(revision),
            After::Now => WatchOptions::from_now(),
        };
        let options = options
            .matching(values::filter(self.session.as_deref(), &[]))
            .give_up_after(PATIENCE);
        let options = if self.follow {
            options
        } else {
            options.bookmark_interval(CATCH_UP)
        };
        self.types
            .iter()
            .fold(options, |options, &kind| options.event_type(kind.into()))
    }
}

/// The newest revision there is.
async fn present(client: &Client) -> Result<u64, Error> {
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
        cx.out.line(&text::visible(&line(event)))?;
    }
    Ok(cx.out.flush()?)
}

fn line(event: &TaskEvent) -> String {
    let at = event.event_time.map(words::moment).unwrap_or_default();
    let kind = words::event_type(event.r#type());
    let revision = event.revision;
    let Some(task) = &event.task else {
        let session = event.session_activity.as_ref();
        let session = session.map_or("", |activity| &activity.session_id);
        return format!("{revision} {at} - {kind} {session}");
    };
    let (id, state) = (&task.id, words::state(task));
    let detail = detail(event.r#type(), task);
    let line = format!("{revision} {at} {id} {kind} {state} {detail}");
    let activity = event.session_activity.as_ref().map(words::activity);
    match activity {
        Some(activity) => format!("{} [{activity}]", line.trim_end()),
        None => line.trim_end().to_owned(),
    }
}

/// What else is worth a glance.
fn detail(kind: TaskEventType, task: &BackgroundTask) -> String {
    let outcome = || {
        task.outcome
            .as_ref()
            .map(words::outcome)
            .unwrap_or_default()
    };
    match kind {
        TaskEventType::Created => words::command(task),
        TaskEventType::Started => task
            .leader
            .as_ref()
            .map(|leader| format!("pid {}", leader.pid))
            .unwrap_or_default(),
        TaskEventType::Stopping => task.stop.as_ref().map(words::asked).unwrap_or_default(),
        TaskEventType::KillOverdue => {
            let proof = task.stop.as_ref().and_then(|stop| stop.proof.as_ref());
            proof.map(words::proof).unwrap_or_default()
        }
        TaskEventType::LeaderExited | TaskEventType::Ended => outcome(),
        TaskEventType::Detached => task
            .detached
            .as_ref()
            .map(words::detached)
            .unwrap_or_default(),
        TaskEventType::Admitted => words::waited(task),
        TaskEventType::Stale => words::silence(task),
        TaskEventType::Active => format!("{} bytes written", task.output_bytes),
        TaskEventType::Removed | TaskEventType::SessionIdle | TaskEventType::Unspecified => {
            String::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{Outcome, SessionActivity, TaskState, outcome};

    use super::*;

    #[test]
    fn a_line_has_everything_in_its_order() {
        let task = BackgroundTask {
            id: "shell-a".to_owned(),
            state: TaskState::Completed.into(),
            outcome: Some(Outcome {
                result: Some(outcome::Result::ExitCode(0)),
            }),
            ..BackgroundTask::default()
        };
        let event = TaskEvent {
            revision: 7,
            event_time: Some(prost_types::Timestamp {
                seconds: 0,
                nanos: 0,
            }),
            r#type: TaskEventType::Ended.into(),
            task: Some(task),
            output_tail: None,
            session_activity: None,
        };
        assert_eq!(
            line(&event),
            "7 1970-01-01T00:00:00.000Z shell-a ENDED COMPLETED exit code 0"
        );
        let activity = SessionActivity {
            session_id: "s1".to_owned(),
            shells: 2,
            ..SessionActivity::default()
        };
        let counted = TaskEvent {
            session_activity: Some(activity),
            ..event
        };
        assert_eq!(
            line(&counted),
            "7 1970-01-01T00:00:00.000Z shell-a ENDED COMPLETED exit code 0 [s1: 2 shells]"
        );
    }

    /// E9
    #[test]
    fn the_line_of_an_idle_session_names_it() {
        let activity = SessionActivity {
            session_id: "s1".to_owned(),
            ..SessionActivity::default()
        };
        let event = TaskEvent {
            revision: 8,
            r#type: TaskEventType::SessionIdle.into(),
            session_activity: Some(activity),
            ..TaskEvent::default()
        };
        assert_eq!(line(&event), "8  - SESSION_IDLE s1");
    }

    #[test]
    fn after_is_a_revision_or_now() {
        assert_eq!(after("42"), Ok(After::Revision(42)));
        assert_eq!(after("now"), Ok(After::Now));
        assert!(after("-1").is_err() && after("").is_err() && after("then").is_err());
    }
}
