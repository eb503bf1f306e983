//! Whatever comes in whatever order, nobody gets what is not free, and nobody waits for what is.

use proptest::prelude::*;

use super::*;
use crate::task::{Command, Exclusive, IdKey, Kind, Spec, Task, Timestamp};

/// What a newcomer asks for.
#[derive(Debug, Clone, Default)]
struct Wish {
    session: &'static str,
    label: Option<&'static str>,
    exclusive: Option<(&'static str, ExclusiveMode)>,
    queue: Option<&'static str>,
}

fn task(seq: u64, wish: &Wish) -> Task {
    let exclusive = |(key, mode): (&str, ExclusiveMode)| Exclusive {
        key: key.to_owned(),
        mode,
    };
    let label = |value: &str| ("repo".to_owned(), value.to_owned());
    let spec = Spec {
        session_id: wish.session.to_owned(),
        labels: wish.label.into_iter().map(label).collect(),
        exclusive: wish.exclusive.map(exclusive),
        queue: wish.queue.map(str::to_owned),
        ..Spec::new(Command::Argv(vec!["true".to_owned()]))
    };
    let id = IdKey(1).task_id(Kind::Shell, Seq(seq));
    Task::new(Seq(seq), id, spec, Timestamp(0))
}

fn id(seq: u64) -> TaskId {
    task(seq, &Wish::default()).id
}

fn claim(admission: &mut Admission, seq: u64, wish: &Wish) -> Result<Standing, Refused> {
    admission.claim(Claim::of(&task(seq, wish)))
}

fn keyed(mode: ExclusiveMode) -> Wish {
    Wish {
        exclusive: Some(("k", mode)),
        ..Wish::default()
    }
}

fn in_queue() -> Wish {
    Wish {
        queue: Some("q"),
        ..Wish::default()
    }
}

fn limits(tasks: usize) -> Limits {
    Limits {
        tasks,
        per_session: Some(3),
        per_label: [("repo".to_owned(), 2)].into(),
    }
}

/// X1
#[test]
fn a_key_that_is_held_or_waited_for_is_refused_with_the_holders_name() {
    let mut admission = Admission::default();
    let reject = keyed(ExclusiveMode::Reject);
    let held_by = |seq| {
        Err(Refused::KeyHeld {
            key: "k".to_owned(),
            holder: id(seq),
        })
    };
    assert_eq!(claim(&mut admission, 1, &reject), Ok(Standing::Begins));
    assert_eq!(claim(&mut admission, 2, &reject), held_by(1));
    let queued = keyed(ExclusiveMode::Queue);
    assert_eq!(claim(&mut admission, 3, &queued), Ok(Standing::Waits));
    assert_eq!(admission.free(Seq(1)), [id(3)]);
    assert_eq!(claim(&mut admission, 4, &reject), held_by(3));
    assert_eq!(admission.free(Seq(3)), []);
    assert_eq!(claim(&mut admission, 5, &reject), Ok(Standing::Begins));
}

/// X1
#[test]
fn whoever_replaces_goes_before_those_who_wait_and_the_newest_of_them_first() {
    let mut admission = Admission::default();
    claim(&mut admission, 1, &keyed(ExclusiveMode::Reject)).expect("it may");
    claim(&mut admission, 2, &keyed(ExclusiveMode::Queue)).expect("it may");
    let replace = keyed(ExclusiveMode::Replace);
    assert_eq!(claim(&mut admission, 3, &replace), Ok(Standing::Waits));
    assert_eq!(admission.rivals(&task(3, &replace)), [id(1)]);
    assert_eq!(claim(&mut admission, 4, &replace), Ok(Standing::Waits));
    assert_eq!(admission.rivals(&task(4, &replace)), [id(1), id(3)]);
    assert_eq!(admission.free(Seq(1)), [id(4)]);
    assert_eq!(admission.free(Seq(3)), [], "ended without a turn");
    assert_eq!(admission.rivals(&task(4, &replace)), []);
    assert_eq!(admission.free(Seq(4)), [id(2)]);
}

/// X1, S11
#[test]
fn the_place_of_the_one_that_is_replaced_is_room_enough() {
    let mut admission = Admission::new(limits(1));
    claim(&mut admission, 1, &keyed(ExclusiveMode::Reject)).expect("it may");
    let replace = keyed(ExclusiveMode::Replace);
    assert_eq!(claim(&mut admission, 2, &replace), Ok(Standing::Waits));
    assert_eq!(admission.free(Seq(1)), [id(2)]);
    let other = Wish {
        exclusive: Some(("another", ExclusiveMode::Replace)),
        ..Wish::default()
    };
    let full = Refused::Server { running: 1, max: 1 };
    assert_eq!(claim(&mut admission, 3, &other), Err(full));
}

/// X3
#[test]
fn limits_of_sessions_and_labels_refuse_whoever_does_not_wait() {
    let mut admission = Admission::new(limits(100));
    let wish = Wish {
        session: "s",
        label: Some("heeler"),
        ..Wish::default()
    };
    for seq in 1..=2 {
        assert_eq!(claim(&mut admission, seq, &wish), Ok(Standing::Begins));
    }
    let full = Refused::Label {
        label: "repo".to_owned(),
        value: "heeler".to_owned(),
        running: 2,
        max: 2,
    };
    assert_eq!(claim(&mut admission, 3, &wish), Err(full));
    let unlabelled = Wish {
        label: None,
        ..wish.clone()
    };
    assert_eq!(claim(&mut admission, 4, &unlabelled), Ok(Standing::Begins));
    let full = Refused::Session {
        session_id: "s".to_owned(),
        running: 3,
        max: 3,
    };
    assert_eq!(claim(&mut admission, 5, &unlabelled), Err(full));
    let queued = Wish {
        queue: Some("q"),
        ..wish
    };
    assert_eq!(claim(&mut admission, 6, &queued), Ok(Standing::Waits));
    assert_eq!(admission.free(Seq(4)), [], "the label is full still");
    assert_eq!(admission.free(Seq(1)), [id(6)]);
}

/// X1
#[test]
fn what_waits_for_its_key_lets_its_queue_pass_and_is_first_for_the_key() {
    let mut admission = Admission::default();
    claim(&mut admission, 1, &keyed(ExclusiveMode::Reject)).expect("it may");
    let both = Wish {
        queue: Some("q"),
        ..keyed(ExclusiveMode::Queue)
    };
    assert_eq!(claim(&mut admission, 2, &both), Ok(Standing::Waits));
    assert_eq!(claim(&mut admission, 3, &in_queue()), Ok(Standing::Begins));
    assert_eq!(claim(&mut admission, 4, &in_queue()), Ok(Standing::Waits));
    let key_only = keyed(ExclusiveMode::Queue);
    assert_eq!(claim(&mut admission, 5, &key_only), Ok(Standing::Waits));
    assert_eq!(admission.free(Seq(1)), [], "the queue is full");
    assert_eq!(admission.free(Seq(3)), [id(2)], "before those behind it");
    assert_eq!(admission.free(Seq(2)), [id(4), id(5)]);
}

#[test]
fn a_queue_without_settings_and_tasks_leaves_no_trace() {
    let mut admission = Admission::default();
    claim(&mut admission, 1, &in_queue()).expect("it may");
    claim(&mut admission, 2, &in_queue()).expect("it may");
    let paused = QueueSettings {
        slots: 1,
        paused: true,
    };
    assert_eq!(admission.configure("q", paused), []);
    assert_eq!(admission.free(Seq(1)), []);
    let state = admission.queue("q");
    assert_eq!((state.running, state.waiting), (0, 1));
    assert_eq!(admission.configure("q", QueueSettings::default()), [id(2)]);
    admission.free(Seq(2));
    assert_eq!(admission.queues().count(), 0);
    assert!(admission.keys.is_empty() && admission.waiting.is_empty());
}

#[test]
fn no_more_may_wait_than_memory_is_meant_for() {
    let mut admission = Admission::default();
    for seq in 0..=MAX_WAITING as u64 {
        claim(&mut admission, seq, &in_queue()).expect("it may");
    }
    let full = Refused::QueueFull {
        waiting: MAX_WAITING,
        max: MAX_WAITING,
    };
    assert_eq!(claim(&mut admission, 20_000, &in_queue()), Err(full));
}

#[derive(Debug, Clone)]
enum Step {
    Claim(Wish),
    /// Of those who live, the one at this place.
    Free(prop::sample::Index),
    Configure(&'static str, u32, bool),
    /// The server is gone, and the next one takes over.
    Restart,
}

fn any_wish() -> impl Strategy<Value = Wish> {
    use ExclusiveMode::{Queue, Reject, Replace};
    let session = prop::sample::select(vec!["", "s", "t"]);
    let label = prop::option::of(prop::sample::select(vec!["a", "b"]));
    let mode = prop::sample::select(vec![Reject, Replace, Queue]);
    let exclusive = prop::option::of((prop::sample::select(vec!["k", "l"]), mode));
    let queue = prop::option::of(prop::sample::select(vec!["q", "r"]));
    (session, label, exclusive, queue).prop_map(|(session, label, exclusive, queue)| Wish {
        session,
        label,
        exclusive,
        // What replaces another does not wait for others: refused at the edge.
        queue: queue.filter(|_| !matches!(exclusive, Some((_, Replace)))),
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    let queue = prop::sample::select(vec!["q", "r"]);
    prop_oneof![
        6 => any_wish().prop_map(Step::Claim),
        4 => any::<prop::sample::Index>().prop_map(Step::Free),
        1 => (queue, 1..4u32, any::<bool>())
            .prop_map(|(name, slots, paused)| Step::Configure(name, slots, paused)),
        1 => Just(Step::Restart),
    ]
}

/// What an onlooker knows: whose turn has come, and who waits.
#[derive(Default)]
struct Onlooker {
    tasks: BTreeMap<Seq, Task>,
    running: BTreeSet<Seq>,
}

impl Onlooker {
    fn begun(&mut self, begun: &[TaskId]) {
        for id in begun {
            let found = self.tasks.values().find(|task| task.id == *id);
            let seq = found.expect("a known task").seq;
            assert!(self.running.insert(seq), "begun twice: {id}");
        }
    }

    fn holders(&self, key: &str) -> usize {
        let holds = |seq: &&Seq| Claim::of(&self.tasks[*seq]).key() == Some(key);
        self.running.iter().filter(holds).count()
    }

    fn in_queue(&self, queue: &str) -> usize {
        let counts = |seq: &&Seq| Claim::of(&self.tasks[*seq]).queue() == Some(queue);
        self.running.iter().filter(counts).count()
    }

    fn waiting(&self) -> impl Iterator<Item = Claim> {
        let waits = |task: &&Task| !self.running.contains(&task.seq);
        self.tasks.values().filter(waits).map(Claim::of)
    }
}

fn check(admission: &Admission, onlooker: &Onlooker) {
    assert_eq!(admission.running(), onlooker.running.len());
    assert!(admission.running() <= admission.limits.tasks);
    for key in ["k", "l"] {
        assert!(onlooker.holders(key) <= 1, "{key} has two holders");
    }
    for queue in ["q", "r"] {
        let state = admission.queue(queue);
        assert_eq!(state.running, onlooker.in_queue(queue));
    }
    for session in ["s", "t"] {
        let of = |seq: &&Seq| onlooker.tasks[*seq].spec.session_id == session;
        assert!(onlooker.running.iter().filter(of).count() <= 3);
    }
    for value in ["a", "b"] {
        let has = |seq: &&Seq| {
            onlooker.tasks[*seq]
                .spec
                .labels
                .values()
                .any(|own| own == value)
        };
        assert!(onlooker.running.iter().filter(has).count() <= 2);
    }
    for claim in onlooker.waiting() {
        assert!(
            admission.obstacle(&claim).is_some(),
            "{claim:?} could begin"
        );
    }
}

/// Who of two that want exactly the same waits, and came first, is not passed.
fn check_order(onlooker: &Onlooker, begun: &[TaskId]) {
    for id in begun {
        let begun = onlooker.tasks.values().find(|task| task.id == *id);
        let begun = Claim::of(begun.expect("a known task"));
        let is_passed = |claim: &Claim| claim.spec == begun.spec && claim.turn() < begun.turn();
        assert!(!onlooker.waiting().any(|claim| is_passed(&claim)));
    }
}

proptest! {
    /// X1, X2, X3, S11
    #[test]
    fn nobody_gets_what_is_taken_and_nobody_waits_for_what_is_free(
        steps in prop::collection::vec(any_step(), 1..120),
    ) {
        let mut admission = Admission::new(limits(6));
        let mut onlooker = Onlooker::default();
        for (seq, step) in (1..).zip(steps) {
            let before: Vec<u32> = ["q", "r"].map(|name| admission.queue(name).running as u32).into();
            let evictable = onlooker.running.clone();
            let mut freed = None;
            match step {
                Step::Claim(wish) => {
                    let task = task(seq, &wish);
                    let counts = |admission: &Admission| {
                        (admission.running(), admission.waiting.len(), admission.queues().count())
                    };
                    let (was, key_taken) = (counts(&admission), task.spec.exclusive.as_ref()
                        .is_some_and(|exclusive| admission.first_for(&exclusive.key).is_some()));
                    match admission.claim(Claim::of(&task)) {
                        Ok(Standing::Begins) => {
                            let id = task.id.clone();
                            onlooker.tasks.insert(task.seq, task);
                            onlooker.begun(&[id]);
                        }
                        Ok(Standing::Waits) => {
                            onlooker.tasks.insert(task.seq, task);
                        }
                        Err(refused) => {
                            prop_assert_eq!(counts(&admission), was, "a refusal changes nothing");
                            let is_held = matches!(refused, Refused::KeyHeld { .. });
                            prop_assert!(!is_held || key_taken);
                        }
                    }
                }
                Step::Free(at) if !onlooker.tasks.is_empty() => {
                    let seqs: Vec<Seq> = onlooker.tasks.keys().copied().collect();
                    let seq = *at.get(&seqs);
                    let begun = admission.free(seq);
                    onlooker.tasks.remove(&seq);
                    onlooker.running.remove(&seq);
                    freed = Some(seq);
                    onlooker.begun(&begun);
                    check_order(&onlooker, &begun);
                    prop_assert_eq!(admission.free(seq), [], "once is enough");
                }
                Step::Free(_) => {}
                Step::Configure(name, slots, paused) => {
                    let begun = admission.configure(name, QueueSettings { slots, paused });
                    onlooker.begun(&begun);
                    check_order(&onlooker, &begun);
                }
                Step::Restart => {
                    let mut next = Admission::new(limits(6));
                    for task in onlooker.tasks.values() {
                        let standing = match onlooker.running.contains(&task.seq) {
                            true => Standing::Begins,
                            false => Standing::Waits,
                        };
                        next.restore(Claim::of(task), standing);
                    }
                    for queue in admission.queues() {
                        prop_assert_eq!(next.configure(&queue.name, queue.settings), []);
                    }
                    prop_assert_eq!(next.settle(), [], "everybody is where they were");
                    admission = next;
                }
            }
            for (name, before) in ["q", "r"].into_iter().zip(before) {
                let state = admission.queue(name);
                let most = state.settings.slots.max(before) as usize;
                prop_assert!(state.running <= most, "{} runs too many", name);
            }
            let evicted = evictable.difference(&onlooker.running).filter(|seq| Some(**seq) != freed);
            prop_assert_eq!(evicted.count(), 0);
            check(&admission, &onlooker);
        }
        let live: Vec<Seq> = onlooker.tasks.keys().copied().collect();
        for seq in live {
            admission.free(seq);
        }
        prop_assert_eq!(admission.running() + admission.waiting.len(), 0);
        prop_assert!(admission.keys.is_empty() && admission.sessions.is_empty());
        prop_assert!(admission.labels.is_empty());
    }

    /// X2
    #[test]
    fn of_any_number_of_claims_on_one_key_one_wins(
        modes in prop::collection::vec(
            prop::sample::select(vec![ExclusiveMode::Reject, ExclusiveMode::Queue]), 1..50,
        ),
    ) {
        let mut admission = Admission::default();
        let standings: Vec<_> = (1..)
            .zip(&modes)
            .map(|(seq, mode)| claim(&mut admission, seq, &keyed(*mode)))
            .collect();
        let won = standings.iter().filter(|one| **one == Ok(Standing::Begins)).count();
        prop_assert_eq!((won, &standings[0]), (1, &Ok(Standing::Begins)));
        let mut last = Seq(1);
        for (seq, standing) in (1..).zip(&standings).skip(1) {
            if *standing == Ok(Standing::Waits) {
                prop_assert_eq!(admission.free(last), [id(seq)], "in the order of their coming");
                last = Seq(seq);
            }
        }
        prop_assert_eq!(admission.free(last), []);
    }
}
