//! The search for the task's patterns, as far as its actor drives it: when a turn begins, and when lines
//! that match are told.
//!
//! ```text
//!          output written              20 ms later                 turn done
//!  Idle ───────────────────> Due ─────────────────────> Searching ───────────> found lines are told at once,
//!   ^                         ^                             │                  or after the cool-down
//!   │  all output is searched │    there is more output     │
//!   └─────────────────────────┴─────────────────────────────┘
//! ```
//!
//! A line that makes the task ready is told like any other, as READY. A found line is recorded together with the
//! place up to which the output was searched. So a server that dies in between finds the line again, and one that
//! dies afterwards does not.
//!
//! Output can be there before the actor has read that the leader runs. Nothing is searched before the first start
//! is recorded, and READY waits for the start of its attempt: the facts of a task keep their order.

use std::{io, time::Duration};

use tokio::time::{Instant, timeout_at};

use super::TaskActor;
use crate::{
    crash,
    supervisor::{
        lifecycle::{Input, Life, PatternFound, Probed},
        output::{Extent, PatternSearch, Searched, Turn},
    },
    task::{Monotonic, Ready, Task},
};

/// The time from an output to its search: a search after each small write would slow the task down.
const PAUSE: Duration = Duration::from_millis(20);
/// The pause after output could not be read.
const RETRY: Duration = Duration::from_secs(1);
/// Maximum time for which the end of a task waits for the search of its last output.
const LAST_SEARCH: Duration = Duration::from_secs(1);

type TurnResult = io::Result<(Box<PatternSearch>, Searched)>;

/// The search of a task that has patterns.
pub(super) enum Matching {
    /// All output was searched that the actor knows of.
    Idle(Box<PatternSearch>),
    /// There may be output to search, at this time or later.
    Due(Box<PatternSearch>, Instant),
    Searching(Turn<TurnResult>),
}

/// An event of the search.
pub(super) enum MatchingEvent {
    TurnDue,
    TurnDone(TurnResult),
    /// Lines that were found can be told.
    MatchDue,
}

impl Matching {
    /// The search for the patterns of a task, from the recorded state; `None` if there is nothing to search
    /// for.
    pub(super) fn of(task: &Task) -> Option<Self> {
        let search = Box::new(PatternSearch::of(task)?);
        Some(Self::Due(search, Instant::now()))
    }

    /// Waits for the next event. Cancel safe.
    async fn next_event(&mut self, life: &Life) -> MatchingEvent {
        match self {
            Self::Searching(turn) => MatchingEvent::TurnDone(turn.done().await.flatten()),
            Self::Due(..) if life.task.started.is_none() => std::future::pending().await,
            Self::Due(search, at) => {
                tokio::select! {
                    () = tokio::time::sleep_until(*at) => MatchingEvent::TurnDue,
                    () = match_due(search, life) => MatchingEvent::MatchDue,
                }
            }
            Self::Idle(search) => {
                match_due(search, life).await;
                MatchingEvent::MatchDue
            }
        }
    }
}

/// Waits for the next event of a search; for ever where there is none.
pub(super) async fn next_event(matching: &mut Option<Matching>, life: &Life) -> MatchingEvent {
    match matching {
        // On the heap: few tasks have patterns.
        Some(matching) => Box::pin(matching.next_event(life)).await,
        None => std::future::pending().await,
    }
}

/// Waits until lines of a pattern can be told; for ever where there are none.
async fn match_due(search: &PatternSearch, life: &Life) {
    if search.is_ready_found() && life.task.attempt_started().is_some() {
        return;
    }
    let unrecorded = search.found().filter(|(_, found)| found.count > 0);
    let due = unrecorded
        .filter_map(|(name, _)| life.match_due(name))
        .min();
    match due {
        Some(due) => tokio::time::sleep(due.since(Monotonic::now())).await,
        None => std::future::pending().await,
    }
}

fn is_by_pattern(ready: &Ready) -> bool {
    ready.pattern().is_some()
}

impl TaskActor {
    /// Notes that there may be output to search.
    pub(super) fn search_output(&mut self) {
        self.matching = match self.matching.take() {
            Some(Matching::Idle(search)) => Some(Matching::Due(search, Instant::now() + PAUSE)),
            other => other,
        };
    }

    pub(super) async fn handle_matching(&mut self, event: MatchingEvent) {
        match event {
            MatchingEvent::TurnDue => {
                self.matching = self.matching.take().map(|matching| match matching {
                    Matching::Idle(search) | Matching::Due(search, _) => {
                        Matching::Searching(self.begin_turn(search, Extent::Growing))
                    }
                    turn @ Matching::Searching(_) => turn,
                });
            }
            MatchingEvent::TurnDone(Ok((search, searched))) => {
                self.matching = Some(match searched.is_caught_up {
                    true => Matching::Idle(search),
                    false => Matching::Due(search, Instant::now()),
                });
                self.tell_matches().await;
                if searched.is_caught_up && self.matching.is_some() {
                    self.follow_output(searched.end).await;
                }
            }
            MatchingEvent::TurnDone(Err(error)) => {
                self.warn_of_search(&error);
                let search = PatternSearch::of(&self.life.task).map(Box::new);
                self.matching = search.map(|search| Matching::Due(search, Instant::now() + RETRY));
            }
            MatchingEvent::MatchDue => self.tell_matches().await,
        }
    }

    fn begin_turn(&self, search: Box<PatternSearch>, extent: Extent) -> Turn<TurnResult> {
        search.begin_turn(&self.shared, &self.life.task, extent)
    }

    fn warn_of_search(&self, error: &io::Error) {
        tracing::warn!(task = %self.life.task.id, %error, "cannot search the output for patterns");
    }

    /// Records the lines that were found of patterns whose cool-down is over.
    async fn tell_matches(&mut self) {
        let (mut search, due) = match self.matching.take() {
            Some(Matching::Idle(search)) => (search, None),
            Some(Matching::Due(search, at)) => (search, Some(at)),
            other => return self.matching = other,
        };
        let mut names: Vec<_> = search
            .found()
            .map(|(name, found)| (found.lines.first().map(|line| line.offset), name.to_owned()))
            .collect();
        names.sort();
        if search.is_ready_found() && self.life.task.attempt_started().is_some() {
            search.drop_ready();
            crash::point("ready.found");
            self.apply(Input::Probed(Probed::Ready)).await;
        }
        for (first, name) in names {
            if first.is_some() && !self.can_tell(&name) {
                continue;
            }
            let found = PatternFound {
                found: search.take(&name),
                searched: search.cursor(),
                name,
            };
            if first.is_none() {
                self.apply(Input::Searched(found)).await;
                continue;
            }
            let name = found.name.clone();
            crash::point("match.found");
            self.apply(Input::Matched(found)).await;
            crash::point("match.recorded");
            if self.life.match_due(&name).is_none() {
                search.drop_pattern(&name);
            }
        }
        self.matching = (!search.is_over()).then(|| match due {
            None => Matching::Idle(search),
            Some(at) => Matching::Due(search, at),
        });
    }

    fn can_tell(&self, name: &str) -> bool {
        let due = self.life.match_due(name);
        due.is_some_and(|due| due <= Monotonic::now())
    }

    /// Searches the output of now for the line that makes the task ready: it may have been written in time,
    /// and not searched yet because no server ran. An expression that takes too long does not delay NOT_READY.
    pub(super) async fn search_before_not_ready(&mut self) {
        let deadline = Instant::now() + LAST_SEARCH;
        let mut is_caught_up = false;
        while !is_caught_up && self.life.awaited_readiness().is_some_and(is_by_pattern) {
            let (mut turn, is_new) = match self.matching.take() {
                Some(Matching::Searching(turn)) => (turn, false),
                Some(Matching::Idle(search) | Matching::Due(search, _)) => {
                    (self.begin_turn(search, Extent::Growing), true)
                }
                None => return,
            };
            let Ok(done) = timeout_at(deadline, turn.done()).await.map(Result::flatten) else {
                return self.matching = Some(Matching::Searching(turn));
            };
            is_caught_up = match &done {
                Ok((_, searched)) => is_new && searched.is_caught_up,
                Err(_) => true,
            };
            self.handle_matching(MatchingEvent::TurnDone(done)).await;
        }
    }

    /// Searches the rest of the output of a task whose tree is gone. Lines that match within a cool-down are
    /// counted. An expression that takes too long does not delay the end: the place up to which the output
    /// was searched stays in the task.
    pub(super) async fn finish_matching(&mut self, written: u64) {
        let extent = Extent::Complete { written };
        let deadline = Instant::now() + LAST_SEARCH;
        while let Some(matching) = self.matching.take() {
            let (mut turn, is_last) = match matching {
                Matching::Searching(turn) => (turn, false),
                Matching::Idle(search) | Matching::Due(search, _) => {
                    (self.begin_turn(search, extent), true)
                }
            };
            match timeout_at(deadline, turn.done()).await.map(Result::flatten) {
                Ok(Ok((search, searched))) => {
                    self.matching = Some(Matching::Idle(search));
                    self.tell_matches().await;
                    if is_last && searched.is_caught_up {
                        return self.count_untold().await;
                    }
                }
                Ok(Err(error)) => return self.warn_of_search(&error),
                Err(_) => {
                    let task = &self.life.task.id;
                    tracing::warn!(%task, "the search for patterns took too long; the rest is not searched");
                }
            }
        }
    }

    /// Counts lines that were found and are not told.
    async fn count_untold(&mut self) {
        let Some(Matching::Idle(mut search)) = self.matching.take() else {
            return;
        };
        let names: Vec<_> = search.found().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            let found = PatternFound {
                found: search.take(&name),
                searched: search.cursor(),
                name,
            };
            self.apply(Input::Searched(found)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        supervisor::lifecycle::EarlierWork,
        task::{
            Command, Containment, IdKey, Kind, Leader, Moment, Pattern, Seq, Spec, Started,
            StartedBy, Timestamp,
        },
    };

    /// The life of a task with a pattern, before its start.
    fn created() -> Life {
        let mut spec = Spec::new(Command::Argv(vec!["true".to_owned()]));
        spec.output.patterns.push(Pattern {
            name: "up".to_owned(),
            regex: "up".to_owned(),
            stream: None,
            cooldown: Duration::ZERO,
            max_events: 1,
            from_offset: 0,
        });
        let id = IdKey(1).task_id(Kind::Shell, Seq(1));
        let task = Task::new(Seq(1), id, spec, Timestamp(0));
        Life::new(task, EarlierWork::None, Monotonic(0))
    }

    fn started() -> Input {
        Input::Started(Started {
            at: Moment::default(),
            by: StartedBy::Leader(Leader {
                pid: 7,
                start_ticks: 1,
                containment: Containment::Cgroup,
            }),
        })
    }

    /// Y1, O16: output that is there before the actor knows of the start is searched after it.
    #[tokio::test]
    async fn nothing_is_searched_before_the_start_is_recorded() {
        let mut life = created();
        let mut matching = Matching::of(&life.task);
        let moment = Duration::from_millis(50);
        let early = tokio::time::timeout(moment, next_event(&mut matching, &life)).await;
        assert!(early.is_err(), "a turn before the start");
        life.step(started(), Moment::default());
        let event = next_event(&mut matching, &life).await;
        assert!(matches!(event, MatchingEvent::TurnDue));
    }
}
