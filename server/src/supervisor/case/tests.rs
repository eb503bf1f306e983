//! Every case, told from what was seen.

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

fn own(lock: Lock, records: Records, tree: Remains) -> Seen {
    let boot = Boot::of(&records, BOOT);
    Seen {
        file: Trace::Own {
            lock,
            boot,
            records: Box::new(records),
        },
        tree,
    }
}

/// What is on record is true, whoever lives and whatever boot it was.
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
            let seen = own(lock, records, Remains::Unsought);
            assert_eq!(classify(Birth::Known, &seen), ended);
        }
    }
    records.leader_exit = Slot::Damaged;
    let seen = own(Lock::Free, records, Remains::Unsought);
    let leader = None;
    assert_eq!(
        classify(Birth::Known, &seen),
        Some(Case::Ended { end: end(), leader })
    );
}

#[test]
fn a_recorded_failure_is_a_start_that_failed_though_the_tree_has_an_end() {
    let mut records = running();
    let (stage, errno) = (Stage::Exec, 2);
    records.start = Slot::Whole(Start::Failed { stage, errno });
    for tree_end in [Slot::Empty, Slot::Whole(end())] {
        records.tree_end = tree_end;
        let seen = own(Lock::Free, records, Remains::Unsought);
        let failed = Some(Case::StartFailed { stage, errno });
        assert_eq!(classify(Birth::Unknown, &seen), failed);
    }
}

#[test]
fn a_held_lock_is_a_living_shim_whatever_else_is_damaged() {
    for records in [Records::default(), running()] {
        let seen = own(Lock::Held, records, Remains::Unsought);
        assert_eq!(classify(Birth::Known, &seen), Some(Case::ShimAlive));
    }
}

/// R5
#[test]
fn records_of_another_boot_ask_for_no_look_at_processes() {
    let mut records = running();
    records.identity = Slot::Whole(identity(BootId([2; 16])));
    let seen = own(Lock::Free, records, Remains::Unsought);
    assert_eq!(
        classify(Birth::Known, &seen),
        Some(Case::AnotherBoot { leader: None })
    );
    records.leader_exit = Slot::Whole(exit());
    let seen = own(Lock::Free, records, Remains::Unsought);
    assert_eq!(
        classify(Birth::Known, &seen),
        Some(Case::AnotherBoot {
            leader: Some(exit())
        })
    );
}

#[test]
fn without_a_shim_the_tree_is_sought_and_decides() {
    let (leader, loss) = (None, Loss::ShimDied);
    let case = |tree| classify(Birth::Known, &own(Lock::Free, running(), tree));
    assert_eq!(case(Remains::Unsought), None);
    assert_eq!(
        case(Remains::Somebody),
        Some(Case::TreeAlive { leader, loss })
    );
    assert_eq!(
        case(Remains::Nobody),
        Some(Case::NothingLeft { leader, loss })
    );
}

#[test]
fn a_damaged_identity_does_not_count_as_another_boot() {
    let mut records = running();
    records.identity = Slot::Damaged;
    let seen = own(Lock::Free, records, Remains::Unsought);
    assert_eq!(classify(Birth::Known, &seen), None, "it is to be sought");
}

#[test]
fn a_blank_file_is_a_start_that_was_undone_unless_the_start_is_known() {
    let blank = |birth, tree| classify(birth, &own(Lock::Free, Records::default(), tree));
    assert_eq!(
        blank(Birth::Unknown, Remains::Unsought),
        Some(Case::NeverBegan(Hindrance::Forestalled))
    );
    assert_eq!(blank(Birth::Known, Remains::Unsought), None);
    let (leader, loss) = (None, Loss::FileGone);
    assert_eq!(
        blank(Birth::Known, Remains::Nobody),
        Some(Case::NothingLeft { leader, loss })
    );
}

#[test]
fn what_another_task_has_written_is_not_believed() {
    let seen = |tree| Seen {
        file: Trace::AnotherTasks,
        tree,
    };
    let (leader, loss) = (None, Loss::FileOfAnother);
    assert_eq!(classify(Birth::Known, &seen(Remains::Unsought)), None);
    assert_eq!(
        classify(Birth::Known, &seen(Remains::Nobody)),
        Some(Case::NothingLeft { leader, loss })
    );
    assert_eq!(
        classify(Birth::Unknown, &seen(Remains::Nobody)),
        Some(Case::NeverBegan(Hindrance::PlaceTaken))
    );
    assert_eq!(
        classify(Birth::Unknown, &seen(Remains::Somebody)),
        Some(Case::TreeAlive { leader, loss })
    );
}

/// F11
#[test]
fn a_release_on_record_is_an_end_whoever_is_left() {
    let mut released = running();
    released.leader_exit = Slot::Whole(exit());
    let end = TreeEnd {
        cgroup_empty: false,
        abandoned: true,
        ..end()
    };
    released.tree_end = Slot::Whole(end);
    let leader = Some(exit());
    for tree in [Remains::Unsought, Remains::Somebody] {
        let seen = own(Lock::Free, released, tree);
        let ended = Some(Case::Ended { end, leader });
        assert_eq!(classify(Birth::Known, &seen), ended);
        // Nobody is stopped for being left over.
        let unknown = Some(Leftover::Unknown);
        assert_eq!(leftover(Memory::None, &seen), unknown);
    }
}

#[test]
fn a_file_without_a_task_is_deleted_only_if_it_was_to_be_or_says_nothing() {
    let seen = |lock, records| own(lock, records, Remains::Unsought);
    let mut over = running();
    over.tree_end = Slot::Whole(end());
    let worthless = Some(Leftover::Worthless);
    for (memory, lock, records, expected) in [
        (Memory::Removed, Lock::Free, running(), worthless),
        (Memory::Removed, Lock::Held, over, worthless),
        (Memory::None, Lock::Free, Records::default(), worthless),
        (Memory::None, Lock::Free, over, Some(Leftover::Unknown)),
        (Memory::None, Lock::Held, over, Some(Leftover::Unknown)),
        (Memory::None, Lock::Free, running(), None),
        (
            Memory::None,
            Lock::Held,
            Records::default(),
            Some(Leftover::ShimNameless),
        ),
    ] {
        assert_eq!(leftover(memory, &seen(lock, records)), expected);
    }
    let uid = TaskUid(uuid::Uuid::from_bytes([7; 16]));
    for memory in [Memory::Removed, Memory::None] {
        let held = seen(Lock::Held, running());
        assert_eq!(leftover(memory, &held), Some(Leftover::ShimAlive(uid)));
    }
    let alive = own(Lock::Free, running(), Remains::Somebody);
    assert_eq!(leftover(Memory::None, &alive), Some(Leftover::TreeAlive));
}
