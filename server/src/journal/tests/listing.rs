//! Lists against a model: each task has one place, whatever happens between two pages.

use std::cmp::Reverse;

use proptest::{prelude::*, sample::Index};

use super::*;
use crate::{
    journal::{ListQuery, Position, read::list::SCAN},
    task::{
        Actor, Filter, Foreground, OnDisconnect, OnForegroundTimeout, Placement, State, Stop,
        StopCause, StopMode, StopPolicy, TaskId,
    },
};

/// A change to one of the tasks.
#[derive(Debug, Clone)]
enum Step {
    Create(Index, Traits),
    Start(Index),
    Stop(Index),
    End(Index, EndState),
    Remove(Index),
}

/// The properties that a filter can name.
#[derive(Debug, Clone)]
struct Traits {
    kind: Kind,
    session: String,
    labels: BTreeMap<String, String>,
    parent: Option<Index>,
    placement: Placement,
    queue: Option<String>,
}

/// The sort key of a list: live at the first page, then the number.
type Place = (Reverse<bool>, Reverse<Seq>);

/// Every task, in no order.
struct Model {
    journal: Journal,
    /// Numbers that were given out and have no task yet; they are used in any order.
    unused: Vec<Seq>,
    tasks: Vec<Task>,
}

impl Model {
    async fn apply(&mut self, step: Step) {
        match step {
            Step::Create(which, traits) => self.create(which, traits).await,
            Step::Start(which) => self.change(which, EventKind::Started, start).await,
            Step::Stop(which) => self.change(which, EventKind::Stopping, stop).await,
            Step::End(which, state) => {
                self.change(which, EventKind::Ended, |task| end(task, state))
                    .await;
            }
            Step::Remove(which) => self.remove(which).await,
        }
    }

    async fn create(&mut self, which: Index, traits: Traits) {
        while self.unused.len() < 10 {
            self.unused.push(self.journal.next_seq());
        }
        let seq = self.unused.swap_remove(which.index(self.unused.len()));
        let Traits {
            kind,
            session: session_id,
            labels,
            parent,
            placement,
            queue,
        } = traits;
        let parent = parent.and_then(|parent| self.id(parent));
        let spec = Spec {
            kind,
            session_id,
            labels,
            parent,
            foreground: (placement == Placement::Foreground).then(foreground),
            queue,
            ..spec()
        };
        let task = task_with(self.journal.id_key(), seq, spec);
        append(&self.journal, EventKind::Created, &task).await;
        self.tasks.push(task);
    }

    async fn change(&mut self, which: Index, kind: EventKind, change: impl FnOnce(&mut Task)) {
        let mut live: Vec<_> = self
            .tasks
            .iter_mut()
            .filter(|task| task.is_live())
            .collect();
        if !live.is_empty() {
            let index = which.index(live.len());
            change(live[index]);
            append(&self.journal, kind, live[index]).await;
        }
    }

    async fn remove(&mut self, which: Index) {
        let finished = self.tasks.iter().filter(|task| !task.is_live());
        let finished: Vec<TaskId> = finished.map(|task| task.id.clone()).collect();
        if !finished.is_empty() {
            let id = which.get(&finished);
            self.journal
                .remove(vec![id.clone()])
                .await
                .expect("it is finished");
            self.tasks.retain(|task| task.id != *id);
        }
    }

    fn id(&self, which: Index) -> Option<TaskId> {
        (!self.tasks.is_empty()).then(|| which.get(&self.tasks).id.clone())
    }

    fn places(&self) -> Vec<Place> {
        let place = |task: &Task| (Reverse(task.is_live()), Reverse(task.seq));
        let mut places: Vec<_> = self.tasks.iter().map(place).collect();
        places.sort();
        places
    }

    /// Those of the places that a list has now.
    fn listed(&self, query: &ListQuery, places: &[Place]) -> Vec<Place> {
        let finished_too = query.include_finished || !query.filter.states.is_empty();
        let wanted = |(Reverse(live), Reverse(seq)): &Place| {
            let task = self.tasks.iter().find(|task| task.seq == *seq);
            let is_shown = |task: &Task| {
                query.include_finished_foreground
                    || !query.filter.ids.is_empty()
                    || task.placement() == Placement::Background
            };
            let matches = |task: &Task| query.filter.matches(task) && (*live || is_shown(task));
            (*live || finished_too) && task.is_some_and(matches)
        };
        places.iter().copied().filter(wanted).collect()
    }
}

fn foreground() -> Foreground {
    Foreground {
        timeout: Duration::from_secs(60),
        on_timeout: OnForegroundTimeout::Detach,
        on_disconnect: OnDisconnect::Cancel,
        reattach_window: Duration::from_secs(10),
    }
}

fn stop(task: &mut Task) {
    task.stop = Some(Stop {
        killed: false,
        soft: None,
        cause: StopCause::Cancel,
        actor: Actor::default(),
        reason: None,
        requested: Moment::now(),
        mode: StopMode::Graceful(StopPolicy::default()),
        cascade: false,
        signals: Vec::new(),
        proof: None,
    });
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![4 => Just(Kind::Shell), 1 => Just(Kind::Agent), 1 => Just(Kind::Hosted)]
}

fn session() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("s1".into()), Just("s2".into())]
}

fn placement() -> impl Strategy<Value = Placement> {
    prop_oneof![2 => Just(Placement::Background), 1 => Just(Placement::Foreground)]
}

fn queue() -> impl Strategy<Value = Option<String>> {
    prop::option::weighted(0.3, Just("q".to_owned()))
}

fn labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    prop::collection::btree_map("[ab]", "[xy]", 0..=2)
}

fn end_state() -> impl Strategy<Value = EndState> {
    prop_oneof![
        4 => Just(EndState::Completed),
        2 => Just(EndState::Failed),
        1 => Just(EndState::Cancelled),
        1 => Just(EndState::TimedOut),
        1 => Just(EndState::Lost),
    ]
}

fn state() -> impl Strategy<Value = State> {
    let live = vec![State::Starting, State::Running, State::Stopping];
    prop_oneof![
        prop::sample::select(live),
        end_state().prop_map(State::Ended)
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let parent = prop::option::weighted(0.3, any::<Index>());
    let traits = (kind(), session(), labels(), parent, placement(), queue()).prop_map(
        |(kind, session, labels, parent, placement, queue)| Traits {
            kind,
            session,
            labels,
            parent,
            placement,
            queue,
        },
    );
    prop_oneof![
        4 => (any::<Index>(), traits).prop_map(|(which, traits)| Step::Create(which, traits)),
        2 => any::<Index>().prop_map(Step::Start),
        1 => any::<Index>().prop_map(Step::Stop),
        3 => (any::<Index>(), end_state()).prop_map(|(which, state)| Step::End(which, state)),
        1 => any::<Index>().prop_map(Step::Remove),
    ]
}

/// A filter without ids and parent: these are chosen later, from the existing tasks.
fn filter() -> impl Strategy<Value = (Filter, Vec<Index>, Option<Index>)> {
    let session = prop::option::weighted(0.3, session());
    let kinds = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(kind(), 1..3)];
    let states = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(state(), 1..4)];
    let labels = prop_oneof![2 => Just(BTreeMap::new()), 1 => labels()];
    let placement = prop::option::weighted(0.2, placement());
    let queue = prop_oneof![4 => Just(None), 1 => queue()];
    let filter = (session, kinds, states, labels, placement, queue).prop_map(
        |(session_id, kinds, states, labels, placement, queue)| Filter {
            session_id,
            kinds,
            states,
            labels,
            placement,
            queue,
            ..Filter::default()
        },
    );
    let ids = prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec(any::<Index>(), 1..12)];
    (filter, ids, prop::option::weighted(0.2, any::<Index>()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() })]

    /// L1
    #[test]
    fn each_task_has_one_place_in_a_list_whatever_happens_between_two_pages(
        history in prop::collection::vec(step(), 0..60),
        between in prop::collection::vec(prop::collection::vec(step(), 0..6), 30),
        (filter, ids, parent) in filter(),
        prefixed in prop::option::weighted(0.2, (any::<Index>(), prop::sample::select(vec![0, 6]))),
        (include_finished, include_finished_foreground) in any::<(bool, bool)>(),
        page_size in 1..8usize,
        restart in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let journal = open(dir.path());
            let mut model = Model { journal, unused: Vec::new(), tasks: Vec::new() };
            for step in history {
                model.apply(step).await;
            }
            if restart {
                model.journal.close().await.unwrap();
                model.journal = open(dir.path());
                model.unused.clear();
            }
            let ids = ids.into_iter().filter_map(|index| model.id(index)).collect();
            let parent = parent.and_then(|index| model.id(index));
            let prefixed = prefixed.and_then(|(index, from)| Some((model.id(index)?, from)));
            // With or without the kind and its dash.
            let id_prefix = prefixed.map(|(id, from)| id.as_str()[from..8].parse().unwrap());
            let filter = Filter { ids, parent, id_prefix, ..filter };
            let query = ListQuery {
                filter,
                include_finished,
                include_finished_foreground,
                page_size,
                position: None,
            };
            walk(model, query, between).await;
        });
    }
}

/// Lists page after page, and compares each with the model.
async fn walk(mut model: Model, mut query: ListQuery, between: Vec<Vec<Step>>) {
    let mut places = model.places();
    let mut between = between.into_iter();
    loop {
        let page = model.journal.list(query.clone()).await.unwrap();
        let rest = model.listed(&query, &places);
        let expected: Vec<Seq> = rest
            .iter()
            .take(query.page_size)
            .map(|place| place.1.0)
            .collect();
        let listed: Vec<Seq> = page.tasks.iter().map(|task| task.seq).collect();
        assert_eq!(listed, expected, "{query:?}");
        assert_eq!(page.revision, model.journal.head());
        for listed in &page.tasks {
            let task = model
                .tasks
                .iter()
                .find(|task| task.seq == listed.seq)
                .unwrap();
            assert_eq!(
                **listed,
                Task {
                    revision: listed.revision,
                    ..task.clone()
                }
            );
        }
        assert_eq!(
            page.next.is_some(),
            rest.len() > query.page_size,
            "{query:?}"
        );
        let Some(next) = page.next else { return };
        query.position = Some(as_token(next));
        let last = rest[query.page_size - 1];
        places.retain(|place| *place > last);
        for step in between.next().unwrap_or_default() {
            model.apply(step).await;
        }
    }
}

/// The position as a client sends it back.
fn as_token(position: Position) -> Position {
    serde_json::from_str(&serde_json::to_string(&position).unwrap()).unwrap()
}

/// L1
#[tokio::test]
async fn a_task_that_is_created_after_the_first_page_is_not_in_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let (mut early, mut late) = (new_task(&journal), new_task(&journal));
    let first = new_task(&journal);
    let last = task_with(journal.id_key(), Seq(0), spec());
    append(&journal, EventKind::Created, &first).await;
    append(&journal, EventKind::Created, &last).await;
    let mut query = ListQuery {
        include_finished: true,
        page_size: 1,
        ..Default::default()
    };
    let page = journal.list(query.clone()).await.unwrap();
    assert_eq!(page.tasks[0].seq, first.seq);

    // Their places are between the two pages; one is live and one finished.
    append(&journal, EventKind::Created, &early).await;
    append(&journal, EventKind::Created, &late).await;
    end(&mut early, EndState::Completed);
    append(&journal, EventKind::Ended, &early).await;
    start(&mut late);
    append(&journal, EventKind::Started, &late).await;
    query.position = page.next;
    let page = journal.list(query).await.unwrap();
    assert_eq!((page.tasks[0].seq, page.next), (last.seq, None));
}

/// L1
#[tokio::test]
async fn a_page_of_large_tasks_is_bounded_in_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut tasks = Vec::new();
    for size in [100, 1_500_000, 1_500_000, 2_900_000] {
        let spec = Spec {
            name: "x".repeat(size),
            ..spec()
        };
        let task = task_with(journal.id_key(), journal.next_seq(), spec);
        append(&journal, EventKind::Created, &task).await;
        tasks.push(task.seq);
    }
    let mut query = ListQuery {
        page_size: 10,
        ..Default::default()
    };
    let mut pages = Vec::new();
    loop {
        let page = journal.list(query.clone()).await.unwrap();
        pages.push(page.tasks.iter().map(|task| task.seq).collect::<Vec<_>>());
        query.position = page.next;
        if page.next.is_none() {
            break;
        }
    }
    let [small, first, second, largest] = tasks[..] else {
        panic!("there are four")
    };
    assert_eq!(pages, [vec![largest], vec![second], vec![first, small]]);
}

/// L1: a filter that few tasks match costs a bounded number of reads per page, and misses none.
#[tokio::test]
async fn a_page_reads_a_bounded_number_of_tasks_and_the_next_page_continues() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut queued = task_with(
        journal.id_key(),
        journal.next_seq(),
        Spec {
            queue: Some("q".to_owned()),
            ..spec()
        },
    );
    append(&journal, EventKind::Created, &queued).await;
    end(&mut queued, EndState::Completed);
    append(&journal, EventKind::Ended, &queued).await;
    for _ in 0..SCAN + 100 {
        let mut task = new_task(&journal);
        append(&journal, EventKind::Created, &task).await;
        end(&mut task, EndState::Completed);
        append(&journal, EventKind::Ended, &task).await;
    }
    let mut query = ListQuery {
        filter: Filter {
            queue: Some("q".to_owned()),
            ..Filter::default()
        },
        include_finished: true,
        page_size: 50,
        ..Default::default()
    };
    let page = journal.list(query.clone()).await.unwrap();
    assert!(page.tasks.is_empty() && page.next.is_some());
    query.position = page.next;
    let page = journal.list(query).await.unwrap();
    assert_eq!(page.tasks.len(), 1);
    assert_eq!((page.tasks[0].seq, page.next), (queued.seq, None));
}
