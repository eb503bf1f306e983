use super::*;

fn identity() -> Identity {
    Identity {
        task_uid: [7; 16],
        boot_id: [9; 16],
        shim_pid: 4242,
        shim_start_ticks: 1 << 40,
        cgroup: CgroupPath::new(&[b'x'; MAX_CGROUP_PATH]).expect("fits"),
        cpu_before_micros: 1 << 30,
    }
}

fn stamp() -> Stamp {
    Stamp {
        wall_micros: 3,
        monotonic_micros: 4,
    }
}

fn tree_end() -> TreeEnd {
    TreeEnd {
        time: stamp(),
        output_end: 2,
        cgroup_empty: true,
        cpu_micros: 3,
        max_memory: 4,
        capture_errno: 28,
        discarded: 5,
        abandoned: true,
    }
}

fn output_state() -> OutputState {
    OutputState {
        number: 7,
        limit: Some(Limit {
            cause: LimitCause::ServerBudget,
            time: stamp(),
            offset: 1 << 30,
            kills: true,
        }),
        ring: Some(Ring {
            head: 17,
            removed: crate::layout::Blocks { from: 20, to: 30 },
            end: u64::MAX,
        }),
        dropped: 1 << 40,
        last_dropped: stamp(),
    }
}

#[test]
fn records_decode_to_what_was_encoded() {
    assert_eq!(Identity::decode(&identity().encode()), Ok(identity()));
    let attempt = AttemptBegin {
        attempt: u32::MAX,
        output_begin: 1 << 40,
    };
    assert_eq!(AttemptBegin::decode(&attempt.encode()), Ok(attempt));
    let running = Start::Running {
        pid: 1,
        start_ticks: 2,
        time: stamp(),
        in_cgroup: true,
    };
    let failed = Start::Failed {
        stage: Stage::Exec,
        errno: 2,
    };
    for start in [running, failed] {
        assert_eq!(Start::decode(&start.encode()), Ok(start));
    }
    let signal = Exit::Signal {
        number: 11,
        core_dumped: true,
    };
    for exit in [Exit::Code(255), signal] {
        let record = LeaderExit {
            exit,
            time: stamp(),
            output_end: u64::MAX,
        };
        assert_eq!(LeaderExit::decode(&record.encode()), Ok(record));
    }
    assert_eq!(TreeEnd::decode(&tree_end().encode()), Ok(tree_end()));
    assert_eq!(
        OutputState::decode(&output_state().encode()),
        Ok(output_state())
    );
}

/// R4
#[test]
fn a_record_with_a_changed_byte_is_damaged() {
    let good = identity().encode();
    for at in 0..IDENTITY_SLOT {
        let mut bad = good;
        bad[at] ^= 0x10;
        assert_eq!(
            Identity::decode(&bad),
            Err(Unreadable::Damaged),
            "byte {at}"
        );
    }
    let of_another_kind = output_state().encode();
    assert_eq!(TreeEnd::decode(&of_another_kind), Err(Unreadable::Damaged));
}

/// O17
#[test]
fn versions_of_the_output_state_are_written_in_turn() {
    let first = OutputState {
        number: 1,
        ..OutputState::default()
    };
    assert_eq!(first.position(), position::OUTPUT[0]);
    assert_eq!(
        OutputState { number: 2, ..first }.position(),
        position::OUTPUT[1]
    );
    assert_eq!(
        OutputState { number: 3, ..first }.position(),
        position::OUTPUT[0]
    );
    assert_eq!(OutputState::decode(&first.encode()), Ok(first));
}

#[test]
fn a_slot_of_zeros_is_empty() {
    assert_eq!(TreeEnd::decode(&[0; SLOT]), Err(Unreadable::Empty));
}

/// R4: a record that ends before its last field.
#[test]
fn a_record_without_all_its_fields_is_damaged() {
    let mut w = Writer::new(b'T');
    w.stamp(stamp());
    assert_eq!(TreeEnd::decode(&w.finish()), Err(Unreadable::Damaged));
}

/// R8
#[test]
fn a_record_of_another_version_is_refused_by_its_number() {
    let mut slot = tree_end().encode();
    slot[4..6].copy_from_slice(&7u16.to_le_bytes());
    slot::reseal(&mut slot);
    assert_eq!(TreeEnd::decode(&slot), Err(Unreadable::UnknownVersion(7)));
}
