//! Turns the words that people type for a task into ids: an id, a unique prefix of one, or the name that
//! one live task has.
//!
//! A whole id is taken as it is, without a call. Prefixes are compared with every task that the daemon
//! keeps, finished ones included: a prefix that is unique among live tasks alone could be meant for a
//! finished one, and a cancel would stop the wrong task.

use heeler_client::{Client, Error, ListOptions, StreamExt, v1::BackgroundTask};

use crate::{
    failure::Failure,
    render::{spec, status},
};

/// The number of characters after the kind and its dash.
const RANDOM_PART: usize = 10;
/// Candidates of an ambiguous word that are looked for.
const MOST_CANDIDATES: usize = 10;
/// Tasks per page of a search.
const PAGE: u16 = 1000;

/// The ids that these words stand for, each once, in the order of first mention.
pub(crate) async fn resolve(client: &Client, words: &[String]) -> Result<Vec<String>, Failure> {
    let mut ids: Vec<String> = Vec::new();
    for word in words {
        let id = match is_whole_id(word) {
            true => word.clone(),
            false => Search::run(client, word).await?.id()?,
        };
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// The id that this word stands for.
pub(crate) async fn resolve_one(client: &Client, word: &str) -> Result<String, Failure> {
    match is_whole_id(word) {
        true => Ok(word.to_owned()),
        false => Search::run(client, word).await?.id(),
    }
}

/// The id of the task that was created last.
pub(crate) async fn latest(client: &Client) -> Result<String, Failure> {
    let mut tasks = client.list(all_tasks());
    let mut latest: Option<BackgroundTask> = None;
    while let Some(task) = tasks.next().await {
        let task = task?;
        let finished = status::is_finished(&task);
        let is_newer = latest
            .as_ref()
            .is_none_or(|found| created(found) < created(&task));
        if is_newer {
            latest = Some(task);
        }
        // Live tasks come first, then the newest finished one.
        if finished {
            break;
        }
    }
    let none = || Failure::NoSuchTask("there is no task".to_owned());
    Ok(latest.ok_or_else(none)?.id)
}

fn created(task: &BackgroundTask) -> Option<(i64, i32)> {
    task.create_time.map(|at| (at.seconds, at.nanos))
}

fn all_tasks() -> ListOptions {
    ListOptions::all()
        .with_finished_foreground()
        .page_size(PAGE)
}

/// Returns whether the word has the form of a whole id: a kind, a dash and ten characters of base32.
fn is_whole_id(word: &str) -> bool {
    let is_base32 = |c: char| matches!(c, 'a'..='z' | '2'..='7');
    word.rsplit_once('-').is_some_and(|(kind, random)| {
        matches!(kind, "shell" | "agent" | "hosted")
            && random.len() == RANDOM_PART
            && random.chars().all(is_base32)
    })
}

/// The tasks that a word may stand for.
#[derive(Debug, Default)]
struct Search {
    word: String,
    /// Live tasks with this name.
    named: Vec<BackgroundTask>,
    /// Tasks whose id begins so, with or without the kind.
    prefixed: Vec<BackgroundTask>,
    /// The newest finished task with this name.
    finished: Option<String>,
}

impl Search {
    async fn run(client: &Client, word: &str) -> Result<Self, Error> {
        let mut search = Self {
            word: word.to_owned(),
            ..Self::default()
        };
        let mut tasks = client.list(all_tasks());
        while let Some(task) = tasks.next().await {
            search.consider(task?);
        }
        Ok(search)
    }

    fn consider(&mut self, task: BackgroundTask) {
        let is_live = !status::is_finished(&task);
        let random = task.id.rsplit_once('-').map_or("", |(_, random)| random);
        if spec::name(&task) == self.word {
            if is_live {
                self.named.push(task.clone());
            } else {
                self.finished.get_or_insert_with(|| task.id.clone());
            }
        }
        let is_prefix = task.id.starts_with(&self.word) || random.starts_with(&self.word);
        if is_prefix && self.prefixed.len() < MOST_CANDIDATES {
            self.prefixed.push(task);
        }
    }

    /// A name takes precedence over a prefix.
    fn id(self) -> Result<String, Failure> {
        let word = &self.word;
        let found = match self.named.is_empty() {
            true => &self.prefixed,
            false => &self.named,
        };
        match (found.as_slice(), &self.finished) {
            ([task], _) => Ok(task.id.clone()),
            ([], None) => Err(Failure::NoSuchTask(format!(
                "no task has an id that begins with {word:?}, and no live task has this name"
            ))),
            ([], Some(id)) => Err(Failure::NoSuchTask(format!(
                "no live task is named {word:?}; the last one that was is {id}, which is finished"
            ))),
            (several, _) => {
                let lines: Vec<String> = several.iter().map(candidate).collect();
                Err(Failure::AmbiguousTask(format!(
                    "{word:?} is ambiguous; it may be\n{}",
                    lines.join("\n")
                )))
            }
        }
    }
}

fn candidate(task: &BackgroundTask) -> String {
    let (id, state) = (&task.id, status::state(task));
    let line = format!(
        "  {id}  {state}  {}  {}",
        spec::name(task),
        spec::command(task)
    );
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{TaskSpec, TaskState};

    use super::*;

    fn task(id: &str, name: &str, state: TaskState) -> BackgroundTask {
        BackgroundTask {
            id: id.to_owned(),
            state: state.into(),
            spec: Some(TaskSpec {
                name: name.to_owned(),
                ..TaskSpec::default()
            }),
            ..BackgroundTask::default()
        }
    }

    fn search(word: &str) -> Result<String, Failure> {
        let mut search = Search {
            word: word.to_owned(),
            ..Search::default()
        };
        for one in [
            task("shell-aaaabbbbcc", "dev", TaskState::Running),
            task("agent-aabbccddee", "bot", TaskState::Running),
            task("shell-bbbbbbbbbb", "bot", TaskState::Queued),
            task("shell-aaaaccccdd", "old", TaskState::Completed),
        ] {
            search.consider(one);
        }
        search.id()
    }

    /// U1
    #[test]
    fn a_unique_prefix_with_or_without_the_kind_is_an_id() {
        assert_eq!(search("shell-b").unwrap(), "shell-bbbbbbbbbb");
        assert_eq!(search("agent").unwrap(), "agent-aabbccddee");
        assert_eq!(search("bb").unwrap(), "shell-bbbbbbbbbb");
        assert_eq!(search("aaaac").unwrap(), "shell-aaaaccccdd");
    }

    /// U1
    #[test]
    fn the_name_of_one_live_task_is_an_id_and_precedes_a_prefix() {
        assert_eq!(search("dev").unwrap(), "shell-aaaabbbbcc");
        let Failure::NoSuchTask(text) = search("old").unwrap_err() else {
            panic!("a finished task has no name");
        };
        assert!(text.contains("shell-aaaaccccdd"), "{text}");
    }

    /// U1
    #[test]
    fn an_ambiguous_prefix_or_name_lists_the_candidates() {
        for (word, ids) in [
            ("aaaa", ["shell-aaaabbbbcc", "shell-aaaaccccdd"]),
            ("bot", ["agent-aabbccddee", "shell-bbbbbbbbbb"]),
        ] {
            let Failure::AmbiguousTask(text) = search(word).unwrap_err() else {
                panic!("{word} is ambiguous");
            };
            assert!(ids.iter().all(|id| text.contains(id)), "{text}");
        }
        assert!(matches!(search("zz"), Err(Failure::NoSuchTask(_))));
    }

    #[test]
    fn a_whole_id_needs_no_search() {
        assert!(is_whole_id("shell-4k2mzq7xda") && is_whole_id("agent-aaaaaaaaaa"));
        for word in ["shell-4k2mzq7xd", "shell-4K2MZQ7XDA", "job-4k2mzq7xda", ""] {
            assert!(!is_whole_id(word), "{word}");
        }
    }
}
