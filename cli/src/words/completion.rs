//! Completion of commands, flags, ids, names, sessions and queues.
//!
//! The script of `heeler completions` runs `heeler` with a variable set and the words typed so far. The
//! candidates come from the daemon that is running; none is started, and one that does not answer at once
//! costs nothing but its candidates.

use std::{collections::BTreeSet, env, time::Duration};

use clap::CommandFactory;
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCandidates, CompletionCandidate},
};
use heeler_client::{Client, ListOptions, StreamExt, v1::BackgroundTask};
use tokio::{runtime, time::timeout};

use crate::{
    Cli,
    render::{spec, status, text},
};

/// The variable by which the script asks for candidates.
pub(crate) const VARIABLE: &str = "HEELER_COMPLETE";

/// Longest time that a person waits after the tab key.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
/// The most tasks that are offered: all live ones, then the newest finished.
const MOST_TASKS: u16 = 200;

/// Answers a completion script and exits; returns if the command was not run by one.
pub(crate) fn answer() {
    if env::var_os(VARIABLE).is_none() {
        return;
    }
    CompleteEnv::with_factory(Cli::command)
        .var(VARIABLE)
        .complete();
}

/// Ids of all tasks, and the names of live ones.
pub(crate) fn tasks() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let found = listed();
        let ids = found.iter().map(|task| candidate(&task.id, task));
        let live = found.iter().filter(|task| !status::is_finished(task));
        let named = live.filter(|task| !spec::name(task).is_empty());
        let names = named.map(|task| candidate(spec::name(task), task));
        ids.chain(names).collect()
    })
}

/// Sessions of all tasks.
pub(crate) fn sessions() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let found = listed();
        distinct(found.iter().map(spec::session))
    })
}

/// Queues that have live tasks or were changed.
pub(crate) fn queues() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let found = ask(|client| async move { Some(client.queues().await.ok()?.queues) });
        distinct(found.iter().map(|queue| queue.name.as_str()))
    })
}

fn candidate(value: &str, task: &BackgroundTask) -> CompletionCandidate {
    let help = format!("{} {}", status::state(task), spec::command(task));
    let help = text::cut(&text::visible(&help), 60).into_owned();
    CompletionCandidate::new(value).help(Some(help.into()))
}

fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<CompletionCandidate> {
    let values: BTreeSet<&str> = values.filter(|value| !value.is_empty()).collect();
    values.into_iter().map(CompletionCandidate::new).collect()
}

fn listed() -> Vec<BackgroundTask> {
    ask(|client| async move {
        let tasks = client.list(ListOptions::all().page_size(MOST_TASKS));
        let tasks = tasks.take(MOST_TASKS.into()).filter_map(Result::ok);
        Some(tasks.collect().await)
    })
}

/// The answer of the running daemon; an empty one if there is none in time.
fn ask<T, F>(question: impl FnOnce(Client) -> F) -> Vec<T>
where
    F: Future<Output = Option<Vec<T>>>,
{
    let answer = async {
        let client = Client::connect_default().await.ok()?;
        question(client.retry_for(Duration::ZERO)).await
    };
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let answer =
        runtime.map(|runtime| runtime.block_on(async { timeout(ANSWER_LIMIT, answer).await }));
    answer
        .ok()
        .and_then(Result::ok)
        .flatten()
        .unwrap_or_default()
}
