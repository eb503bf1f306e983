//! Every case, from what was seen.

use super::*;
use crate::process::task_file::{CgroupPath, Exit, Identity, Slot};

const BOOT: BootId = BootId([1; 16]);

fn identity(boot: BootId) -> Identity {
    Identity {
        task_uid: [7; 16],
        boot_id: boot.0,
        shim_pid: 42,
        shim_start_ticks: 1,
        cgroup: CgroupPath::NONE,
        cpu_before_micros: 0,
    }
}

fn exit() -> LeaderExit {
    LeaderExit {
        exit: Exit::Code(3),
        time: Default::default(),
        output_end: 0,
    }
}

fn end() -> TreeEnd {
    TreeEnd {
        time: Default::default(),
        output_end: 0,
        cgroup_empty: true,
        cpu_micros: 0,
        max_memory: 0,
        capture_errno: 0,
        discarded: 0,
        abandoned: false,
    }
}

fn running() -> Records {
    Records {
        identity: Slot::Whole(identity(BOOT)),
        start: Slot::Whole(Start::Running {
            pid: 43,
            start_ticks: 1,
            time: Default::default(),
            in_cgroup: false,
        }),
        ..Records::default()
    }
}

fn own(lock: Lock, records: Records, tree: Tree) -> Seen {
    let boot = Boot::of(&records, BOOT);
    Seen {
        file: FileSeen::Own {
            lock,
            boot,
            records: Box::new(records),
        },
        tree,
    }
}

/// Records stay true, whatever is alive and whatever boot it was.
#[test]
fn a_recorded_end_comes_before_everything_else() {
    let mut records = running();
    records.leader_exit = Slot::Whole(exit());
    records.tree_end = Slot::Whole(end());
    let ended = Some(Case::Ended {
        end: end(),
        leader: Some(exit()),
    });
    for lock in [Lock::Held, Lock::Free] {
        for boot in [BOOT, BootId([2; 16])] {
            records.identity = Slot::Whole(identity(boot));
            let seen = own(lock, records, Tree::NotLookedFor);
            assert_eq!(classify(StartKnown::Yes, &seen), ended);
        }
    }
    records.leader_exit = Slot::Damaged;
    let seen = own(Lock::Free, records, Tree::NotLookedFor);
    let leader = None;
    assert_eq!(
        classify(StartKnown::Yes, &seen),
        Some(Case::Ended { end: end(), leader })
    );
}

#[test]
fn a_recorded_start_failure_comes_before_a_recorded_end() {
    let mut records = running();
    let (stage, errno) = (Stage::Exec, 2);
    records.start = Slot::Whole(Start::Failed { stage, errno });
    for tree_end in [Slot::Empty, Slot::Whole(end())] {
        records.tree_end = tree_end;
        let seen = own(Lock::Free, records, Tree::NotLookedFor);
        let failed = Some(Case::StartFailed { stage, errno });
        assert_eq!(classify(StartKnown::No, &seen), failed);
    }
}

#[test]
fn a_held_lock_means_a_living_shim_whatever_is_damaged() {
    for records in [Records::default(), running()] {
        let seen = own(Lock::Held, records, Tree::NotLookedFor);
        assert_eq!(classify(StartKnown::Yes, &seen), Some(Case::ShimAlive));
    }
}

/// R5
#[test]
fn records_of_another_boot_need_no_look_at_processes() {
    let mut records = running();
    records.identity = Slot::Whole(identity(BootId([2; 16])));
    let seen = own(Lock::Free, records, Tree::NotLookedFor);
    assert_eq!(
        classify(StartKnown::Yes, &seen),
        Some(Case::AnotherBoot { leader: None })
    );
    records.leader_exit = Slot::Whole(exit());
    let seen = own(Lock::Free, records, Tree::NotLookedFor);
    assert_eq!(
        classify(StartKnown::Yes, &seen),
        Some(Case::AnotherBoot {
            leader: Some(exit())
        })
    );
}

#[test]
fn without_a_shim_the_living_processes_decide() {
    let (leader, loss) = (None, Loss::ShimDied);
    let case = |tree| classify(StartKnown::Yes, &own(Lock::Free, running(), tree));
    assert_eq!(case(Tree::NotLookedFor), None);
    assert_eq!(case(Tree::Alive), Some(Case::TreeAlive { leader, loss }));
    assert_eq!(case(Tree::Empty), Some(Case::NothingLeft { leader, loss }));
}

#[test]
fn a_damaged_identity_is_not_another_boot() {
    let mut records = running();
    records.identity = Slot::Damaged;
    let seen = own(Lock::Free, records, Tree::NotLookedFor);
    assert_eq!(
        classify(StartKnown::Yes, &seen),
        None,
        "processes have to be looked for"
    );
}

#[test]
fn a_blank_file_means_never_started_unless_the_start_is_known() {
    let blank = |start, tree| classify(start, &own(Lock::Free, Records::default(), tree));
    assert_eq!(
        blank(StartKnown::No, Tree::NotLookedFor),
        Some(Case::NeverStarted(NotStarted::Prevented))
    );
    assert_eq!(blank(StartKnown::Yes, Tree::NotLookedFor), None);
    let (leader, loss) = (None, Loss::FileGone);
    assert_eq!(
        blank(StartKnown::Yes, Tree::Empty),
        Some(Case::NothingLeft { leader, loss })
    );
}

#[test]
fn records_of_another_task_are_ignored() {
    let seen = |tree| Seen {
        file: FileSeen::OfAnotherTask,
        tree,
    };
    let (leader, loss) = (None, Loss::FileOfAnotherTask);
    assert_eq!(classify(StartKnown::Yes, &seen(Tree::NotLookedFor)), None);
    assert_eq!(
        classify(StartKnown::Yes, &seen(Tree::Empty)),
        Some(Case::NothingLeft { leader, loss })
    );
    assert_eq!(
        classify(StartKnown::No, &seen(Tree::Empty)),
        Some(Case::NeverStarted(NotStarted::PlaceTaken))
    );
    assert_eq!(
        classify(StartKnown::No, &seen(Tree::Alive)),
        Some(Case::TreeAlive { leader, loss })
    );
}

/// F11
#[test]
fn recorded_abandonment_is_an_end_though_orphans_live() {
    let mut abandoned = running();
    abandoned.leader_exit = Slot::Whole(exit());
    let end = TreeEnd {
        cgroup_empty: false,
        abandoned: true,
        ..end()
    };
    abandoned.tree_end = Slot::Whole(end);
    let leader = Some(exit());
    for tree in [Tree::NotLookedFor, Tree::Alive] {
        let seen = own(Lock::Free, abandoned, tree);
        let ended = Some(Case::Ended { end, leader });
        assert_eq!(classify(StartKnown::Yes, &seen), ended);
        // Abandoned orphans are not killed as leftovers.
        let unknown = Some(Leftover::Unknown);
        assert_eq!(leftover(Memory::None, &seen), unknown);
    }
}

#[test]
fn a_file_without_a_task_is_deleted_only_if_removed_or_blank() {
    let seen = |lock, records| own(lock, records, Tree::NotLookedFor);
    let mut ended = running();
    ended.tree_end = Slot::Whole(end());
    let deletable = Some(Leftover::Deletable);
    for (memory, lock, records, expected) in [
        (Memory::Removed, Lock::Free, running(), deletable),
        (Memory::Removed, Lock::Held, ended, deletable),
        (Memory::None, Lock::Free, Records::default(), deletable),
        (Memory::None, Lock::Free, ended, Some(Leftover::Unknown)),
        (Memory::None, Lock::Held, ended, Some(Leftover::Unknown)),
        (Memory::None, Lock::Free, running(), None),
        (
            Memory::None,
            Lock::Held,
            Records::default(),
            Some(Leftover::UnidentifiedShim),
        ),
    ] {
        assert_eq!(leftover(memory, &seen(lock, records)), expected);
    }
    let uid = TaskUid(uuid::Uuid::from_bytes([7; 16]));
    for memory in [Memory::Removed, Memory::None] {
        let held = seen(Lock::Held, running());
        assert_eq!(leftover(memory, &held), Some(Leftover::ShimAlive(uid)));
    }
    let alive = own(Lock::Free, running(), Tree::Alive);
    assert_eq!(leftover(Memory::None, &alive), Some(Leftover::TreeAlive));
}
