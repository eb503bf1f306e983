//! Turns the words that people type for a task into ids: an id, a unique prefix of one, or the name that
//! one live task has.
//!
//! A whole id is taken as it is, without a call. The daemon compares prefixes with every task that it
//! keeps, finished ones included: a prefix that is unique among live tasks alone could be meant for a
//! finished one, and a cancel would stop the wrong task.

use heeler_client::{Client, Error, Filter, ListOptions, StreamExt, v1::BackgroundTask};

use crate::{
    failure::Failure,
    render::{spec, status},
};

/// The number of characters after the kind and its dash.
const RANDOM_PART: usize = 10;
/// The length of the longest id.
const LONGEST_ID: usize = "hosted-".len() + RANDOM_PART;
/// Candidates of an ambiguous word that are looked for.
const MOST_CANDIDATES: u16 = 10;
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

/// The first of the tasks that match: enough to name the candidates.
async fn first(
    client: &Client,
    options: ListOptions,
    filter: Filter,
) -> Result<Vec<BackgroundTask>, Error> {
    let options = options.matching(filter).page_size(MOST_CANDIDATES);
    let page = client.list_page(options).await?;
    Ok(page.tasks)
}

fn is_base32(c: char) -> bool {
    matches!(c, 'a'..='z' | '2'..='7')
}

/// Returns whether an id may begin so: the daemon refuses other prefixes.
fn may_begin_an_id(word: &str) -> bool {
    word.len() <= LONGEST_ID && word.chars().all(|c| c == '-' || is_base32(c))
}

/// Returns whether the word has the form of a whole id: a kind, a dash and ten characters of base32.
fn is_whole_id(word: &str) -> bool {
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
    /// Without a live task of this name: tasks whose id begins so, with or without the kind.
    prefixed: Vec<BackgroundTask>,
    /// Without any of them: the newest finished task with this name.
    finished: Option<BackgroundTask>,
}

impl Search {
    async fn run(client: &Client, word: &str) -> Result<Self, Error> {
        let mut search = Self {
            word: word.to_owned(),
            ..Self::default()
        };
        let named = Filter::all().name(word);
        search.named = first(client, ListOptions::live(), named.clone()).await?;
        if search.named.is_empty() && may_begin_an_id(word) {
            search.prefixed = first(client, all_tasks(), Filter::all().id_prefix(word)).await?;
        }
        if search.named.is_empty() && search.prefixed.is_empty() {
            let finished = first(client, all_tasks(), named).await?;
            search.finished = finished.into_iter().next();
        }
        Ok(search)
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
            ([], Some(last)) => Err(Failure::NoSuchTask(format!(
                "no live task is named {word:?}; the last one that was is {}, which is finished",
                last.id
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

    const RUNNING: TaskState = TaskState::Running;

    /// U1
    #[test]
    fn one_candidate_is_the_task() {
        let prefixed = Search {
            word: "aaaa".to_owned(),
            prefixed: vec![task("shell-aaaabbbbcc", "old", TaskState::Completed)],
            ..Search::default()
        };
        assert_eq!(prefixed.id().unwrap(), "shell-aaaabbbbcc");
        let named = Search {
            word: "dev".to_owned(),
            named: vec![task("shell-bbbbbbbbbb", "dev", RUNNING)],
            ..Search::default()
        };
        assert_eq!(named.id().unwrap(), "shell-bbbbbbbbbb");
    }

    /// U1
    #[test]
    fn no_candidate_is_an_error_that_names_a_finished_task_of_this_name() {
        let search = |finished| Search {
            word: "old".to_owned(),
            finished,
            ..Search::default()
        };
        let finished = task("shell-aaaaccccdd", "old", TaskState::Completed);
        let Failure::NoSuchTask(text) = search(Some(finished)).id().unwrap_err() else {
            panic!("a finished task has no name");
        };
        assert!(text.contains("shell-aaaaccccdd"), "{text}");
        let nothing = search(None).id();
        assert!(matches!(nothing, Err(Failure::NoSuchTask(_))));
    }

    /// U1
    #[test]
    fn several_candidates_are_listed() {
        let both = || {
            let agent = task("agent-aabbccddee", "bot", RUNNING);
            vec![agent, task("shell-bbbbbbbbbb", "bot", TaskState::Queued)]
        };
        let search = |named, prefixed| Search {
            word: "b".to_owned(),
            named,
            prefixed,
            finished: None,
        };
        for search in [search(both(), Vec::new()), search(Vec::new(), both())] {
            let Failure::AmbiguousTask(text) = search.id().unwrap_err() else {
                panic!("it is ambiguous");
            };
            for id in ["agent-aabbccddee", "shell-bbbbbbbbbb"] {
                assert!(text.contains(id), "{text}");
            }
        }
    }

    #[test]
    fn a_name_that_no_id_begins_with_is_not_looked_for_among_ids() {
        assert!(may_begin_an_id("shell-4k") && may_begin_an_id("4k") && may_begin_an_id("dev"));
        for word in ["dev server", "Dev", "v1", "a-name-that-is-longer"] {
            assert!(!may_begin_an_id(word), "{word}");
        }
    }

    #[test]
    fn a_whole_id_needs_no_search() {
        assert!(is_whole_id("shell-4k2mzq7xda") && is_whole_id("agent-aaaaaaaaaa"));
        for word in ["shell-4k2mzq7xd", "shell-4K2MZQ7XDA", "job-4k2mzq7xda", ""] {
            assert!(!is_whole_id(word), "{word}");
        }
    }
}
