//! A wall clock that is set while every kind of timer runs.

use std::time::{Duration, Instant, SystemTime};

use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _, foreground, micros, millis,
    request::{cancel, grace, read},
    secs,
    v1::*,
    watch::is_of,
    within,
};

/// The span of every timer in these tests.
const SPAN: Duration = Duration::from_secs(3);
const DAY: i64 = 24 * 3600;

/// A running timer.
struct Timer {
    task_id: String,
    /// A time before its start.
    since: Instant,
    /// The event that follows when it is due.
    event: TaskEventType,
}

/// T6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wall_clock_set_forward_fires_no_timer() {
    set_while_timers_run(DAY).await;
}

/// T6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wall_clock_set_back_delays_no_timer() {
    set_while_timers_run(-DAY).await;
}

/// T6, C13
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wall_clock_set_forward_during_a_restart_fires_no_timer() {
    set_while_the_server_is_down(DAY).await;
}

/// T6, C13
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wall_clock_set_back_during_a_restart_delays_no_timer() {
    set_while_the_server_is_down(-DAY).await;
}

async fn set_while_timers_run(seconds: i64) {
    let Some(daemon) = Daemon::with_settable_clock().await else {
        return;
    };
    let api = daemon.api().await;
    let mut timers = start_timers(&daemon, &api).await;
    timers.push(start_reattach_window(&daemon, &api).await);
    daemon.set_wall_clock(seconds);
    for timer in &timers {
        wake(&api, &timer.task_id).await;
    }
    within(
        "every timer",
        assert_none_fires_early(&api, timers, seconds),
    )
    .await;
}

async fn set_while_the_server_is_down(seconds: i64) {
    let Some(mut daemon) = Daemon::with_settable_clock().await else {
        return;
    };
    let timers = start_timers(&daemon, &daemon.api().await).await;
    daemon.kill9();
    daemon.set_wall_clock(seconds);
    daemon.restart().await;
    let api = daemon.api().await;
    within(
        "every timer",
        assert_none_fires_early(&api, timers, seconds),
    )
    .await;
}

/// Starts one task for each timer that continues across a restart.
async fn start_timers(daemon: &Daemon, api: &Api) -> Vec<Timer> {
    let span = secs(SPAN.as_secs() as i64);
    let timeout = SpawnRequest::default().with_timeout(span);
    let idle = SpawnRequest::default().with_idle_timeout(span);
    let stale = SpawnRequest::default().with_stale_after(span);
    let in_foreground = foreground()
        .with_foreground_timeout(span)
        .with_on_disconnect(DisconnectAction::Keep);
    let mut timers = vec![
        start(daemon, api, timeout, TaskEventType::Stopping).await,
        start(daemon, api, idle, TaskEventType::Stopping).await,
        start(daemon, api, stale, TaskEventType::Stale).await,
        start(daemon, api, in_foreground, TaskEventType::Detached).await,
    ];
    let stubborn = daemon.run(api, "ignore TERM pid ready forever").await;
    stubborn.process("ready").await;
    let since = Instant::now();
    let request = CancelRequest {
        how: grace(span),
        ..cancel(&stubborn.id)
    };
    api.cancel_one(request).await;
    timers.push(Timer {
        task_id: stubborn.id.clone(),
        since,
        event: TaskEventType::Ended,
    });
    timers
}

/// A reattach window starts again with a new server.
async fn start_reattach_window(daemon: &Daemon, api: &Api) -> Timer {
    let request = foreground().with_reattach_window(secs(SPAN.as_secs() as i64));
    start(daemon, api, request, TaskEventType::Stopping).await
}

async fn start(daemon: &Daemon, api: &Api, request: SpawnRequest, event: TaskEventType) -> Timer {
    let since = Instant::now();
    let fixture = daemon.run_as(api, request, "forever").await;
    Timer {
        task_id: fixture.id.clone(),
        since,
        event,
    }
}

/// Makes the server look at the timers of a task again.
async fn wake(api: &Api, task_id: &str) {
    let request = ReadOutputRequest {
        wait: Some(millis(1)),
        ..read(task_id, 0)
    };
    api.read(request).await.unwrap();
}

/// Waits until every timer has fired, and asserts that none does before its span has passed.
async fn assert_none_fires_early(api: &Api, mut timers: Vec<Timer>, seconds: i64) {
    let mut watch = api.watch_after(0).await;
    while !timers.is_empty() {
        let event = watch.event().await;
        let is_due = |timer: &Timer| is_of(&event, &timer.task_id) && event.r#type() == timer.event;
        let Some(index) = timers.iter().position(is_due) else {
            continue;
        };
        let after = timers.swap_remove(index).since.elapsed();
        assert!(after >= SPAN, "{:?} after {after:?}", event.r#type());
        assert_was_set(&event, seconds);
    }
}

/// Asserts that the server has read the clock that the test has set.
fn assert_was_set(event: &TaskEvent, seconds: i64) {
    let machine = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
    let ahead = micros(&event.event_time) / 1_000_000 - machine;
    assert!((ahead - seconds).abs() < 3600, "{ahead} s ahead");
}
