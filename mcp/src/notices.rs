//! A log message for each background task of the session that ends, so that hosts which show them can wake
//! their model.

#![expect(
    deprecated,
    reason = "log messages and resources/subscribe are for clients of the older lifecycle"
)]

use std::sync::{Mutex, PoisonError};

use heeler_client::{
    Filter, StreamExt, WatchItem, WatchOptions,
    v1::{Placement, TaskEvent, TaskEventType, TaskState},
};
use rmcp::{
    Peer, RoleServer,
    model::{LoggingLevel, LoggingMessageNotificationParam},
};
use serde_json::json;

use crate::{
    connection::Connection,
    view::{TaskView, summary},
};

/// Watches until the connection is closed, or the daemon cannot be watched.
pub(crate) async fn tell_of_ends(
    connection: &Connection,
    peer: &Peer<RoleServer>,
    level: &Mutex<LoggingLevel>,
) {
    let Ok(client) = connection.client().await else {
        return;
    };
    let info = peer.peer_info();
    let session = connection.session(info.as_ref().map(|info| &info.client_info));
    let options = WatchOptions::from_now()
        .event_type(TaskEventType::Ended)
        .summaries();
    // A run that ends in the foreground is told of by its call. Until that has received the end, it must not count
    // as received: the daemon then removes the task if it needs room.
    let ends = Filter::all()
        .session(session)
        .placement(Placement::Background);
    let mut watch = client.watch(options.matching(ends));
    loop {
        let item = tokio::select! {
            item = watch.next() => item,
            () = connection.closed.cancelled() => return,
        };
        match item {
            Some(Ok(WatchItem::Event(event))) => {
                let least = *level.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(notice) = notice(&event, least) {
                    let sent = peer.notify_logging_message(notice).await;
                    drop(sent);
                }
            }
            Some(Ok(WatchItem::Initial(_) | WatchItem::Bookmark(_))) => {}
            Some(Err(_)) | None => return,
        }
    }
}

/// The message of an end.
fn notice(event: &TaskEvent, least: LoggingLevel) -> Option<LoggingMessageNotificationParam> {
    let task = event.task.as_ref()?;
    let level = match task.state() == TaskState::Completed {
        true => LoggingLevel::Notice,
        false => LoggingLevel::Warning,
    };
    if severity(level) < severity(least) {
        return None;
    }
    let view = TaskView::of(task);
    let data = json!({
        "event": "task_ended",
        "id": task.id,
        "text": view.to_string(),
        "summary": summary(&event.summary, &task.id),
    });
    Some(LoggingMessageNotificationParam::new(level, data).with_logger("heeler"))
}

fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
