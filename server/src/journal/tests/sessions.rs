//! The counts of a session's live tasks, and the event of an idle session.

use std::collections::BTreeSet;

use proptest::{prelude::*, sample::Index};

use super::*;
use crate::task::Activity;

fn task_of(journal: &Journal, session: &str, kind: Kind) -> Task {
    let spec = Spec {
        kind,
        session_id: session.into(),
        ..spec()
    };
    task_with(journal.id_key(), journal.next_seq(), spec)
}

async fn create(journal: &Journal, session: &str, kind: Kind) -> Task {
    let task = task_of(journal, session, kind);
    append(journal, EventKind::Created, &task).await;
    task
}

async fn finish(journal: &Journal, mut task: Task) -> Arc<Event> {
    end(&mut task, EndState::Completed);
    append(journal, EventKind::Ended, &task).await
}

/// The counts of agents and shells.
fn counts(agents: u32, shells: u32) -> Option<(u32, u32)> {
    Some((agents, shells))
}

fn counted(activity: Option<&Activity>) -> Option<(u32, u32)> {
    activity.map(|activity| (activity.agents, activity.shells))
}

/// The counts of each event that has some, and the sessions that became idle.
fn activities(facts: &[Fact]) -> Vec<Result<(u32, u32), &str>> {
    let activities = facts.iter().filter_map(|fact| match fact {
        Fact::Task(event) => counted(event.activity.as_ref()).map(Ok),
        Fact::SessionIdle(idle) => Some(Err(&*idle.session_id)),
    });
    activities.collect()
}

/// The activity of a session with these tasks.
fn activity_of(live: &BTreeMap<Seq, Kind>) -> Activity {
    let seqs = |kind: Kind| -> Vec<Seq> {
        let of_kind = live.iter().filter(|(_, of)| **of == kind);
        of_kind.map(|(seq, _)| *seq).collect()
    };
    let (agent_seqs, shell_seqs) = (seqs(Kind::Agent), seqs(Kind::Shell));
    let hosted_seqs = seqs(Kind::Hosted);
    Activity {
        agents: agent_seqs.len() as u32,
        shells: shell_seqs.len() as u32,
        hosted: hosted_seqs.len() as u32,
        stale: 0,
        agent_seqs,
        shell_seqs,
        hosted_seqs,
    }
}

/// Checks all facts against counts of its own.
fn assert_counts(facts: &[Fact]) {
    let mut live: BTreeMap<&str, BTreeMap<Seq, Kind>> = BTreeMap::new();
    let mut due: Option<&str> = None;
    for fact in facts {
        let event = match (fact, due.take()) {
            (Fact::SessionIdle(idle), Some(session)) => {
                assert_eq!(idle.session_id, session);
                continue;
            }
            (Fact::Task(event), None) => event,
            (fact, due) => panic!("{due:?} is due, {fact:?} came"),
        };
        let spec = &event.task.spec;
        let session = live.entry(&spec.session_id).or_default();
        let has_changed = if event.kind == EventKind::Created {
            session.insert(event.task.seq, spec.kind).is_none()
        } else if event.kind == EventKind::Ended {
            session.remove(&event.task.seq).is_some()
        } else {
            false
        };
        let has_session = !spec.session_id.is_empty();
        let expected = (has_changed && has_session).then(|| activity_of(session));
        assert_eq!(event.activity, expected, "{event:?}");
        due = (expected.is_some() && session.is_empty()).then_some(&spec.session_id);
    }
    assert_eq!(due, None, "idle follows the last end of a session");
}

/// E9
#[tokio::test]
async fn counts_change_with_each_start_and_end_and_idle_comes_when_all_are_zero() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let shell = create(&journal, "s1", Kind::Shell).await;
    let agent = create(&journal, "s1", Kind::Agent).await;
    let other = create(&journal, "s2", Kind::Shell).await;
    let without_session = create(&journal, "", Kind::Shell).await;
    let ended = finish(&journal, shell).await;
    assert_eq!(counted(ended.activity.as_ref()), counts(1, 0));
    assert_eq!(finish(&journal, without_session).await.activity, None);
    let last = finish(&journal, agent).await;
    assert_eq!(counted(last.activity.as_ref()), counts(0, 0));
    let again = create(&journal, "s1", Kind::Agent).await;
    finish(&journal, again).await;
    finish(&journal, other).await;

    let facts = all_facts_after(&journal, Revision(0), 3).await;
    assert!(facts.iter().map(|fact| fact.revision().0).eq(1..=13));
    let activity = |agents, shells| counts(agents, shells).ok_or("");
    let expected = [
        activity(0, 1),
        activity(1, 1),
        activity(0, 1),
        activity(1, 0),
        activity(0, 0),
        Err("s1"),
        activity(1, 0),
        activity(0, 0),
        Err("s1"),
        activity(0, 0),
        Err("s2"),
    ];
    assert_eq!(activities(&facts), expected);
    let idle = &facts[usize::try_from(last.revision.0).unwrap()];
    assert!(
        matches!(idle, Fact::SessionIdle(idle) if idle.at == last.at),
        "in one transaction: {idle:?}"
    );
    let reopened = open(dir.path());
    assert_eq!(all_facts_after(&reopened, Revision(0), 2).await, facts);
}

/// E9
#[tokio::test]
async fn a_reopened_journal_continues_the_counts() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let shell = create(&journal, "s1", Kind::Shell).await;
    let agent = create(&journal, "s1", Kind::Agent).await;
    drop(journal);
    let journal = open(dir.path());
    let ended = finish(&journal, agent).await;
    assert_eq!(counted(ended.activity.as_ref()), counts(0, 1));
    drop(journal);
    let journal = open(dir.path());
    let ended = finish(&journal, shell).await;
    assert_eq!(counted(ended.activity.as_ref()), counts(0, 0));
    assert_counts(&all_facts_after(&journal, Revision(0), 10).await);
    assert_eq!(journal.head(), Revision(5));
}

/// E9: the facts of many appenders share transactions.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_appenders_get_the_counts_of_the_total_order() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut appenders = tokio::task::JoinSet::new();
    for number in 0..16 {
        let journal = journal.clone();
        appenders.spawn(async move {
            let session = ["s1", "s2", "s3"][number % 3];
            for _ in 0..20 {
                let task = create(&journal, session, Kind::Shell).await;
                finish(&journal, task).await;
            }
        });
    }
    appenders.join_all().await;
    let facts = all_facts_after(&journal, Revision(0), 100).await;
    assert_counts(&facts);
    let idle = |fact: &Fact| match fact {
        Fact::SessionIdle(idle) => Some(idle.session_id.clone()),
        Fact::Task(_) => None,
    };
    let idle: BTreeSet<String> = facts.iter().filter_map(idle).collect();
    assert_eq!(idle.len(), 3);
}

/// E9
#[tokio::test]
async fn idle_events_are_pruned_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let live = create(&journal, "s1", Kind::Agent).await;
    let ended = create(&journal, "s2", Kind::Shell).await;
    let id = ended.id.clone();
    finish(&journal, ended).await;
    let last = create(&journal, "s2", Kind::Shell).await;
    finish(&journal, last).await;
    let head = journal.head();
    while journal.prune_events(Revision(u64::MAX)).await.unwrap() {}
    assert_eq!(journal.oldest(), head, "the latest event stays");
    let idle = |dir: &Path| -> i64 {
        let count = "SELECT count(*) FROM events WHERE kind = 'session_idle'";
        raw(dir).query_row(count, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(idle(dir.path()), 1);
    for journal in [journal, open(dir.path())] {
        assert!(journal.task(&id).await.unwrap().is_some());
        let rest = all_facts_after(&journal, Revision(head.0 - 1), 10).await;
        assert_eq!(activities(&rest), [Err("s2")]);
    }
    let journal = open(dir.path());
    let next = finish(&journal, live).await;
    assert_eq!(next.revision.0, head.0 + 1);
    assert_eq!(counted(next.activity.as_ref()), counts(0, 0));
}

/// E9, L8
#[tokio::test]
async fn an_event_counts_stale_tasks_and_names_the_newest_of_each_kind() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut agent = create(&journal, "s1", Kind::Agent).await;
    agent.stale = Some(Timestamp(5));
    let stale = append(&journal, EventKind::Stale, &agent).await;
    let stale = stale.activity.clone().unwrap();
    assert_eq!((stale.stale, stale.is_only_stale()), (1, true));
    let again = append(&journal, EventKind::Progress, &agent).await;
    assert_eq!(again.activity, None, "nothing has changed");
    let mut shells = Vec::new();
    for _ in 0..Activity::MOST_NAMED + 2 {
        shells.push(create(&journal, "s1", Kind::Shell).await);
    }
    drop(journal);
    let journal = open(dir.path());
    let last = shells.pop().unwrap();
    let ended = finish(&journal, last).await;
    let activity = ended.activity.clone().unwrap();
    assert_eq!((activity.agents, activity.stale), (1, 1));
    assert!(!activity.is_only_stale());
    assert_eq!(activity.shells as usize, Activity::MOST_NAMED + 1);
    let newest: Vec<Seq> = shells[1..].iter().map(|task| task.seq).collect();
    assert_eq!(activity.shell_seqs, newest);
    agent.stale = None;
    let active = append(&journal, EventKind::Active, &agent).await;
    assert_eq!(active.activity.as_ref().unwrap().stale, 0);
}

#[derive(Debug, Clone)]
enum Step {
    Create(&'static str, Kind),
    Finish(Index),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let session = prop::sample::select(vec!["", "s1", "s2", "s\"3\u{1f415}"]);
    let kind = prop::sample::select(vec![Kind::Shell, Kind::Agent, Kind::Hosted]);
    prop_oneof![
        5 => (session, kind).prop_map(|(session, kind)| Step::Create(session, kind)),
        5 => any::<Index>().prop_map(Step::Finish),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    /// E9
    #[test]
    fn counts_are_true_after_any_sequence_of_events(steps in prop::collection::vec(step(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let mut journal = open(dir.path());
            let mut live = Vec::new();
            for step in steps {
                match step {
                    Step::Create(session, kind) => live.push(create(&journal, session, kind).await),
                    Step::Finish(which) if !live.is_empty() => {
                        let task = live.swap_remove(which.index(live.len()));
                        finish(&journal, task).await;
                    }
                    Step::Finish(_) => {}
                    Step::Reopen => {
                        journal.close().await.unwrap();
                        journal = open(dir.path());
                    }
                }
            }
            assert_counts(&all_facts_after(&journal, Revision(0), 7).await);
        });
    }
}
