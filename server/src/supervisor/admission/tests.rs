//! The rules of admission, by example and on random sequences of calls.

use proptest::prelude::*;

use super::*;
use crate::task::{Command, Exclusive, IdKey, Kind, Spec, Task, Timestamp};

#[derive(Debug, Clone, Default)]
struct Request {
    session: &'static str,
    label: Option<&'static str>,
    exclusive: Option<(&'static str, ExclusiveMode)>,
    queue: Option<&'static str>,
    program: Program,
}

/// The program by which two requests differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Program {
    #[default]
    True,
    False,
}

fn task(seq: u64, request: &Request) -> Task {
    let exclusive = |(key, mode): (&str, ExclusiveMode)| Exclusive {
        key: key.to_owned(),
        mode,
        variables: [].into(),
    };
    let label = |value: &str| ("repo".to_owned(), value.to_owned());
    let spec = Spec {
        session_id: request.session.to_owned(),
        labels: request.label.into_iter().map(label).collect(),
        exclusive: request.exclusive.map(exclusive),
        queue: request.queue.map(str::to_owned),
        ..Spec::new(Command::Argv(vec![format!("{:?}", request.program)]))
    };
    let id = IdKey(1).task_id(Kind::Shell, Seq(seq));
    Task::new(Seq(seq), id, spec, Timestamp(0))
}

fn id(seq: u64) -> TaskId {
    task(seq, &Request::default()).id
}

fn claim(admission: &mut Admission, seq: u64, request: &Request) -> Result<Decision, Refused> {
    admission.claim(Claim::of(&task(seq, request)))
}

fn keyed(mode: ExclusiveMode) -> Request {
    Request {
        exclusive: Some(("k", mode)),
        ..Request::default()
    }
}

fn in_queue() -> Request {
    Request {
        queue: Some("q"),
        ..Request::default()
    }
}

fn limits(tasks: usize) -> Limits {
    Limits {
        tasks,
        per_session: Some(3),
        per_label: [("repo".to_owned(), 2)].into(),
        depth: 8,
    }
}

/// X1
#[test]
fn a_rejected_claim_names_the_holder_or_the_next_in_line() {
    let mut admission = Admission::default();
    let reject = keyed(ExclusiveMode::Reject);
    let held_by = |seq| {
        Err(Refused::KeyHeld {
            key: "k".to_owned(),
            holder: id(seq),
        })
    };
    assert_eq!(claim(&mut admission, 1, &reject), Ok(Decision::Admitted));
    assert_eq!(claim(&mut admission, 2, &reject), held_by(1));
    let queued = keyed(ExclusiveMode::Queue);
    assert_eq!(claim(&mut admission, 3, &queued), Ok(Decision::Queued));
    assert_eq!(admission.free(Seq(1)), [id(3)]);
    assert_eq!(claim(&mut admission, 4, &reject), held_by(3));
    assert_eq!(admission.free(Seq(3)), []);
    assert_eq!(claim(&mut admission, 5, &reject), Ok(Decision::Admitted));
}

/// X1
#[test]
fn the_newest_replacing_claim_is_first_in_line() {
    let mut admission = Admission::default();
    claim(&mut admission, 1, &keyed(ExclusiveMode::Reject)).expect("not refused");
    claim(&mut admission, 2, &keyed(ExclusiveMode::Queue)).expect("not refused");
    let replace = keyed(ExclusiveMode::Replace);
    assert_eq!(claim(&mut admission, 3, &replace), Ok(Decision::Queued));
    assert_eq!(admission.replaced_by(&task(3, &replace)), [id(1)]);
    assert_eq!(claim(&mut admission, 4, &replace), Ok(Decision::Queued));
    assert_eq!(admission.replaced_by(&task(4, &replace)), [id(1), id(3)]);
    assert_eq!(admission.free(Seq(1)), [id(4)]);
    assert_eq!(admission.free(Seq(3)), [], "it was never admitted");
    assert_eq!(admission.replaced_by(&task(4, &replace)), []);
    assert_eq!(admission.free(Seq(4)), [id(2)]);
}

/// X1, S11
#[test]
fn the_slot_of_the_replaced_task_counts_as_free() {
    let mut admission = Admission::new(limits(1));
    claim(&mut admission, 1, &keyed(ExclusiveMode::Reject)).expect("not refused");
    let replace = keyed(ExclusiveMode::Replace);
    assert_eq!(claim(&mut admission, 2, &replace), Ok(Decision::Queued));
    assert_eq!(admission.free(Seq(1)), [id(2)]);
    let other = Request {
        exclusive: Some(("another", ExclusiveMode::Replace)),
        ..Request::default()
    };
    let full = Refused::Server { running: 1, max: 1 };
    assert_eq!(claim(&mut admission, 3, &other), Err(full));
}

/// X1
#[test]
fn the_id_of_a_live_task_is_a_key_that_it_holds() {
    let mut admission = Admission::new(limits(1));
    let on = |seq, mode| {
        let mut claimed = task(seq, &keyed(mode));
        let spec = std::sync::Arc::make_mut(&mut claimed.spec);
        let exclusive = spec.exclusive.as_mut().expect("it has a key");
        exclusive.key = id(1).to_string();
        claimed
    };
    let claim_of = |task: &Task| Claim::of(task);
    claim(&mut admission, 1, &Request::default()).expect("not refused");
    let rejected = admission.claim(claim_of(&on(2, ExclusiveMode::Reject)));
    let held =
        |found: &Refused| matches!(found, Refused::KeyHeld { holder, .. } if *holder == id(1));
    assert!(rejected.is_err_and(|refused| held(&refused)));
    let behind = on(3, ExclusiveMode::Queue);
    assert_eq!(admission.claim(claim_of(&behind)), Ok(Decision::Queued));
    let replace = on(4, ExclusiveMode::Replace);
    let queued = admission.claim(claim_of(&replace));
    assert_eq!(queued, Ok(Decision::Queued), "its slot counts as free");
    assert_eq!(admission.replaced_by(&replace), [id(1)]);
    assert_eq!(admission.free(Seq(1)), [id(4)]);
    assert_eq!(admission.free(Seq(4)), [id(3)]);
    assert_eq!(admission.free(Seq(3)), []);
    assert!(admission.keys.is_empty() && admission.places.is_empty());
}

/// X4
#[test]
fn an_equal_task_that_keeps_the_key_answers_and_a_different_one_refuses() {
    let mut admission = Admission::default();
    let ensure = keyed(ExclusiveMode::Ensure);
    let other = Request {
        program: Program::False,
        ..ensure.clone()
    };
    let find = |admission: &Admission, request: &Request, stopping: &[u64]| {
        let claim = Claim::of(&task(99, request));
        admission.find_equal(&claim, |found| {
            stopping.iter().any(|seq| id(*seq) == *found)
        })
    };
    let differs_from = |seq| {
        Err(Refused::KeyDiffers {
            key: "k".to_owned(),
            holder: id(seq),
            field: "spec.argv.args[0]".to_owned(),
        })
    };
    assert_eq!(find(&admission, &ensure, &[]), Ok(None), "the key is free");
    claim(&mut admission, 1, &keyed(ExclusiveMode::Reject)).expect("not refused");
    assert_eq!(find(&admission, &ensure, &[]), Ok(Some(id(1))));
    assert_eq!(find(&admission, &other, &[]), differs_from(1));
    let reject = keyed(ExclusiveMode::Reject);
    assert_eq!(find(&admission, &reject, &[]), Ok(None), "not asked for");

    assert_eq!(find(&admission, &other, &[1]), Ok(None), "it is stopping");
    assert_eq!(claim(&mut admission, 2, &other), Ok(Decision::Queued));
    assert_eq!(find(&admission, &other, &[1]), Ok(Some(id(2))));
    assert_eq!(find(&admission, &ensure, &[1]), differs_from(2));
    assert_eq!(admission.free(Seq(1)), [id(2)]);

    claim(&mut admission, 3, &keyed(ExclusiveMode::Replace)).expect("not refused");
    assert_eq!(find(&admission, &other, &[]), differs_from(3), "it is next");
    assert_eq!(find(&admission, &ensure, &[]), Ok(Some(id(3))));
}

/// X4, S11
#[test]
fn an_ensured_task_waits_for_a_stopping_holder_and_for_no_limit() {
    let mut admission = Admission::new(limits(1));
    claim(&mut admission, 1, &keyed(ExclusiveMode::Reject)).expect("not refused");
    let ensure = keyed(ExclusiveMode::Ensure);
    assert_eq!(claim(&mut admission, 2, &ensure), Ok(Decision::Queued));
    assert_eq!(admission.free(Seq(1)), [id(2)]);
    let other = Request {
        exclusive: Some(("another", ExclusiveMode::Ensure)),
        ..Request::default()
    };
    let full = Refused::Server { running: 1, max: 1 };
    assert_eq!(claim(&mut admission, 3, &other), Err(full));
}

/// X3
#[test]
fn session_and_label_limits_refuse_claims_that_may_not_wait() {
    let mut admission = Admission::new(limits(100));
    let request = Request {
        session: "s",
        label: Some("heeler"),
        ..Request::default()
    };
    for seq in 1..=2 {
        assert_eq!(claim(&mut admission, seq, &request), Ok(Decision::Admitted));
    }
    let full = Refused::Label {
        label: "repo".to_owned(),
        value: "heeler".to_owned(),
        running: 2,
        max: 2,
    };
    assert_eq!(claim(&mut admission, 3, &request), Err(full));
    let unlabelled = Request {
        label: None,
        ..request.clone()
    };
    assert_eq!(
        claim(&mut admission, 4, &unlabelled),
        Ok(Decision::Admitted)
    );
    let full = Refused::Session {
        session_id: "s".to_owned(),
        running: 3,
        max: 3,
    };
    assert_eq!(claim(&mut admission, 5, &unlabelled), Err(full));
    let queued = Request {
        queue: Some("q"),
        ..request
    };
    assert_eq!(claim(&mut admission, 6, &queued), Ok(Decision::Queued));
    assert_eq!(
        admission.free(Seq(4)),
        [],
        "the label limit is still reached"
    );
    assert_eq!(admission.free(Seq(1)), [id(6)]);
}

/// X1
#[test]
fn a_claim_that_waits_for_a_key_lets_its_queue_pass() {
    let mut admission = Admission::default();
    claim(&mut admission, 1, &keyed(ExclusiveMode::Reject)).expect("not refused");
    let both = Request {
        queue: Some("q"),
        ..keyed(ExclusiveMode::Queue)
    };
    assert_eq!(claim(&mut admission, 2, &both), Ok(Decision::Queued));
    assert_eq!(
        claim(&mut admission, 3, &in_queue()),
        Ok(Decision::Admitted)
    );
    assert_eq!(claim(&mut admission, 4, &in_queue()), Ok(Decision::Queued));
    let key_only = keyed(ExclusiveMode::Queue);
    assert_eq!(claim(&mut admission, 5, &key_only), Ok(Decision::Queued));
    assert_eq!(admission.free(Seq(1)), [], "the queue is full");
    assert_eq!(admission.free(Seq(3)), [id(2)], "it is first in its queue");
    assert_eq!(admission.free(Seq(2)), [id(4), id(5)]);
}

#[test]
fn an_unused_queue_is_dropped() {
    let mut admission = Admission::default();
    claim(&mut admission, 1, &in_queue()).expect("not refused");
    claim(&mut admission, 2, &in_queue()).expect("not refused");
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
fn the_number_of_waiting_claims_is_limited() {
    let mut admission = Admission::default();
    for seq in 0..=MAX_WAITING as u64 {
        claim(&mut admission, seq, &in_queue()).expect("not refused");
    }
    let full = Refused::QueueFull {
        waiting: MAX_WAITING,
        max: MAX_WAITING,
    };
    assert_eq!(claim(&mut admission, 20_000, &in_queue()), Err(full));
}

#[derive(Debug, Clone)]
enum Step {
    /// A claim; with an index, on the key that is the id of that live task.
    Claim(Request, Option<prop::sample::Index>),
    /// A stop of the live task at this index.
    Stop(prop::sample::Index),
    /// The end of the live task at this index.
    Free(prop::sample::Index),
    Configure(&'static str, u32, bool),
    /// A new server takes over all tasks.
    Restart,
}

fn any_request() -> impl Strategy<Value = Request> {
    use ExclusiveMode::{Ensure, Queue, Reject, Replace};
    let session = prop::sample::select(vec!["", "s", "t"]);
    let label = prop::option::of(prop::sample::select(vec!["a", "b"]));
    let mode = prop::sample::select(vec![Reject, Replace, Queue, Ensure]);
    let exclusive = prop::option::of((prop::sample::select(vec!["k", "l"]), mode));
    let queue = prop::option::of(prop::sample::select(vec!["q", "r"]));
    let program = prop::sample::select(vec![Program::True, Program::False]);
    let options = (session, label, exclusive, queue, program);
    options.prop_map(|(session, label, exclusive, queue, program)| Request {
        session,
        label,
        exclusive,
        // The service refuses a queue together with REPLACE.
        queue: queue.filter(|_| !matches!(exclusive, Some((_, Replace)))),
        program,
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    let queue = prop::sample::select(vec!["q", "r"]);
    prop_oneof![
        6 => (any_request(), prop::option::weighted(0.2, any::<prop::sample::Index>()))
            .prop_map(|(request, after)| Step::Claim(request, after)),
        1 => any::<prop::sample::Index>().prop_map(Step::Stop),
        4 => any::<prop::sample::Index>().prop_map(Step::Free),
        1 => (queue, 1..4u32, any::<bool>())
            .prop_map(|(name, slots, paused)| Step::Configure(name, slots, paused)),
        1 => Just(Step::Restart),
    ]
}

/// A model of the same tasks: which are admitted, and which wait.
#[derive(Default)]
struct Model {
    tasks: BTreeMap<Seq, Task>,
    running: BTreeSet<Seq>,
    stopping: BTreeSet<Seq>,
}

impl Model {
    fn is_stopping(&self, id: &TaskId) -> bool {
        self.stopping.iter().any(|seq| self.tasks[seq].id == *id)
    }

    fn stop(&mut self, id: &TaskId) {
        let found = self.tasks.values().find(|task| task.id == *id);
        self.stopping.insert(found.expect("a known task").seq);
    }

    /// The task with the id of a live one as its key, if it has a key.
    fn after(&self, index: Option<prop::sample::Index>, mut task: Task) -> Task {
        let ids: Vec<&TaskId> = self.tasks.values().map(|task| &task.id).collect();
        let spec = std::sync::Arc::make_mut(&mut task.spec);
        if let (Some(index), Some(exclusive), false) = (index, &mut spec.exclusive, ids.is_empty())
        {
            exclusive.key = index.get(&ids).to_string();
        }
        task
    }

    /// The live tasks with a key that are not being stopped.
    fn staying<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Task> {
        let stays = move |task: &&Task| {
            let has_key = Claim::of(task).key() == Some(key) || task.id.as_str() == key;
            has_key && !self.stopping.contains(&task.seq)
        };
        self.tasks.values().filter(stays)
    }

    /// Checks the answer to a claim of the mode ENSURE.
    fn check_equal(&self, claim: &Claim, equal: &Result<Option<TaskId>, Refused>) {
        let key = claim.key().expect("ENSURE has a key");
        let task = |id: &TaskId| self.staying(key).find(|task| task.id == *id).cloned();
        match equal {
            Ok(Some(id)) => {
                let task = task(id).expect("it stays, and has the key");
                assert_eq!(claim.spec.first_difference(&task.spec), None);
            }
            Err(Refused::KeyDiffers { holder, field, .. }) => {
                let task = task(holder).expect("it stays, and has the key");
                assert_eq!(
                    claim.spec.first_difference(&task.spec).as_ref(),
                    Some(field)
                );
            }
            Err(refused) => panic!("refused for another reason: {refused}"),
            Ok(None) => {
                let is_left = |task: &Task| Claim::of(task).mode() == Some(ExclusiveMode::Ensure);
                assert!(
                    !self.staying(key).any(is_left),
                    "an ensured task is passed over"
                );
            }
        }
    }

    fn admit(&mut self, admitted: &[TaskId]) {
        for id in admitted {
            let found = self.tasks.values().find(|task| task.id == *id);
            let seq = found.expect("a known task").seq;
            assert!(self.running.insert(seq), "admitted twice: {id}");
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

fn check(admission: &Admission, model: &Model) {
    assert_eq!(admission.running(), model.running.len());
    assert!(admission.running() <= admission.limits.tasks);
    for key in ["k", "l"] {
        assert!(model.holders(key) <= 1, "{key} has two holders");
        let ensured = |task: &&Task| Claim::of(task).mode() == Some(ExclusiveMode::Ensure);
        let ensured = model.staying(key).filter(ensured).count();
        assert!(ensured <= 1, "{key} has two ensured tasks");
    }
    for seq in &model.running {
        let (claim, mut tasks) = (Claim::of(&model.tasks[seq]), model.tasks.values());
        let other = tasks.find(|other| Some(other.id.as_str()) == claim.key());
        assert!(
            other.is_none(),
            "{claim:?} runs beside the task that it comes after"
        );
    }
    for queue in ["q", "r"] {
        let state = admission.queue(queue);
        assert_eq!(state.running, model.in_queue(queue));
    }
    for session in ["s", "t"] {
        let of = |seq: &&Seq| model.tasks[*seq].spec.session_id == session;
        assert!(model.running.iter().filter(of).count() <= 3);
    }
    for value in ["a", "b"] {
        let has = |seq: &&Seq| {
            model.tasks[*seq]
                .spec
                .labels
                .values()
                .any(|own| own == value)
        };
        assert!(model.running.iter().filter(has).count() <= 2);
    }
    for claim in model.waiting() {
        assert!(
            admission.blocked_by(&claim).is_some(),
            "{claim:?} could be admitted"
        );
    }
}

/// Of two claims with the same spec, the first in line is admitted first.
fn check_order(model: &Model, admitted: &[TaskId]) {
    for id in admitted {
        let admitted = model.tasks.values().find(|task| task.id == *id);
        let admitted = Claim::of(admitted.expect("a known task"));
        let is_passed =
            |claim: &Claim| claim.spec == admitted.spec && claim.position() < admitted.position();
        assert!(!model.waiting().any(|claim| is_passed(&claim)));
    }
}

proptest! {
    /// X1, X2, X3, X4, S11
    #[test]
    fn no_limit_is_exceeded_and_no_claim_waits_that_could_be_admitted(
        steps in prop::collection::vec(any_step(), 1..120),
    ) {
        let mut admission = Admission::new(limits(6));
        let mut model = Model::default();
        for (seq, step) in (1..).zip(steps) {
            let before: Vec<u32> = ["q", "r"].map(|name| admission.queue(name).running as u32).into();
            let evictable = model.running.clone();
            let mut freed = None;
            match step {
                Step::Claim(request, after) => {
                    let task = model.after(after, task(seq, &request));
                    let counts = |admission: &Admission| {
                        (admission.running(), admission.waiting.len(), admission.queues().count())
                    };
                    let (was, key_taken) = (counts(&admission), task.spec.exclusive.as_ref()
                        .is_some_and(|exclusive| admission.holder_or_next(&exclusive.key).is_some()));
                    let claim = Claim::of(&task);
                    let equal = admission.find_equal(&claim, |id| model.is_stopping(id));
                    if claim.mode() == Some(ExclusiveMode::Ensure) {
                        model.check_equal(&claim, &equal);
                    }
                    let decision = match equal {
                        Ok(None) => admission.claim(claim),
                        Ok(Some(_)) => continue,
                        Err(refused) => Err(refused),
                    };
                    match decision {
                        Ok(Decision::Admitted) => {
                            let id = task.id.clone();
                            model.tasks.insert(task.seq, task);
                            model.admit(&[id]);
                        }
                        Ok(Decision::Queued) => {
                            // As the supervisor does, once the claim is recorded.
                            for replaced in admission.replaced_by(&task) {
                                model.stop(&replaced);
                            }
                            model.tasks.insert(task.seq, task);
                        }
                        Err(refused) => {
                            prop_assert_eq!(counts(&admission), was, "a refusal changes nothing");
                            let is_held = matches!(refused, Refused::KeyHeld { .. });
                            prop_assert!(!is_held || key_taken);
                        }
                    }
                }
                Step::Stop(at) if !model.tasks.is_empty() => {
                    let seqs: Vec<Seq> = model.tasks.keys().copied().collect();
                    model.stopping.insert(*at.get(&seqs));
                }
                Step::Free(at) if !model.tasks.is_empty() => {
                    let seqs: Vec<Seq> = model.tasks.keys().copied().collect();
                    let seq = *at.get(&seqs);
                    let admitted = admission.free(seq);
                    model.tasks.remove(&seq);
                    model.running.remove(&seq);
                    model.stopping.remove(&seq);
                    freed = Some(seq);
                    model.admit(&admitted);
                    check_order(&model, &admitted);
                    prop_assert_eq!(admission.free(seq), [], "a second free does nothing");
                }
                Step::Stop(_) | Step::Free(_) => {}
                Step::Configure(name, slots, paused) => {
                    let admitted = admission.configure(name, QueueSettings { slots, paused });
                    model.admit(&admitted);
                    check_order(&model, &admitted);
                }
                Step::Restart => {
                    let mut next = Admission::new(limits(6));
                    for task in model.tasks.values() {
                        let standing = match model.running.contains(&task.seq) {
                            true => Decision::Admitted,
                            false => Decision::Queued,
                        };
                        next.restore(Claim::of(task), standing);
                    }
                    for queue in admission.queues() {
                        prop_assert_eq!(next.configure(&queue.name, queue.settings), []);
                    }
                    prop_assert_eq!(next.admit_all_possible(), [], "a restart admits no task");
                    admission = next;
                }
            }
            for (name, before) in ["q", "r"].into_iter().zip(before) {
                let state = admission.queue(name);
                let most = state.settings.slots.max(before) as usize;
                prop_assert!(state.running <= most, "{} runs too many", name);
            }
            let evicted = evictable.difference(&model.running).filter(|seq| Some(**seq) != freed);
            prop_assert_eq!(evicted.count(), 0);
            check(&admission, &model);
        }
        let live: Vec<Seq> = model.tasks.keys().copied().collect();
        for seq in live {
            admission.free(seq);
        }
        prop_assert_eq!(admission.running() + admission.waiting.len(), 0);
        prop_assert!(admission.keys.is_empty() && admission.sessions.is_empty());
        prop_assert!(admission.labels.is_empty());
    }

    /// X2
    #[test]
    fn one_of_many_claims_on_a_key_wins(
        modes in prop::collection::vec(
            prop::sample::select(vec![ExclusiveMode::Reject, ExclusiveMode::Queue]), 1..50,
        ),
    ) {
        let mut admission = Admission::default();
        let standings: Vec<_> = (1..)
            .zip(&modes)
            .map(|(seq, mode)| claim(&mut admission, seq, &keyed(*mode)))
            .collect();
        let won = standings.iter().filter(|one| **one == Ok(Decision::Admitted)).count();
        prop_assert_eq!((won, &standings[0]), (1, &Ok(Decision::Admitted)));
        let mut last = Seq(1);
        for (seq, standing) in (1..).zip(&standings).skip(1) {
            if *standing == Ok(Decision::Queued) {
                prop_assert_eq!(admission.free(last), [id(seq)], "in the order of arrival");
                last = Seq(seq);
            }
        }
        prop_assert_eq!(admission.free(last), []);
    }
}
