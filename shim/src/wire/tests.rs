use super::*;

#[test]
fn messages_decode_to_what_was_encoded() {
    for order in [
        Order::Begin {
            bytes: 1 << 40,
            arguments: 2,
            variables: 3,
        },
        Order::Signal { number: 15 },
        Order::Kill {
            within_millis: u64::MAX,
        },
        Order::Follow { beyond: 1 << 60 },
        Order::Spill,
        Order::Abandon,
        Order::LimitOutput { bytes: 1 << 50 },
        Order::KeepForRestart,
        Order::Restart { attempt: u32::MAX },
        Order::GiveUp,
        Order::Input {
            offset: 1 << 50,
            bytes: 65_536,
            close: true,
        },
        Order::AskInput { room: 4096 },
        Order::FollowInput,
        Order::Note {
            part: 3,
            bytes: [7; 24],
        },
        Order::Resize {
            size: TerminalSize {
                columns: 80,
                rows: 24,
            },
        },
    ] {
        assert_eq!(Order::decode(&order.encode()), Ok(order));
    }
    for report in [
        Report::Hello { shim_pid: u32::MAX },
        Report::Started,
        Report::CannotStart {
            stage: Stage::TaskFile,
            errno: 28,
        },
        Report::LeaderExited,
        Report::TreeEnded {
            shim: AfterTask::Ends,
        },
        Report::TreeEnded {
            shim: AfterTask::Waits,
        },
        Report::TreeEnded {
            shim: AfterTask::Keeps,
        },
        Report::Signalled {
            number: 9,
            processes: 200,
            time_micros: 1 << 50,
        },
        Report::Overdue,
        Report::Output { end: 3 },
        Report::OutputLimit,
        Report::Stored { bytes: 1 << 50 },
        Report::Storm,
        Report::RecordRefused,
        Report::Input {
            taken: 1 << 50,
            room: 65_536,
            state: InputState::Broken,
            size: TerminalSize {
                columns: 1,
                rows: 65_535,
            },
            is_relayed: true,
        },
        Report::Note {
            part: 1,
            bytes: [9; 24],
        },
        Report::Resized,
        Report::InputGiven,
    ] {
        assert_eq!(Report::decode(&report.encode()), Ok(report));
    }
}

/// R8
#[test]
fn a_message_of_an_unknown_kind_or_version_is_refused_by_its_number() {
    let kind = UnknownMessage::Kind(b'?');
    let mut unknown = Order::Spill.encode();
    unknown[0] = b'?';
    assert_eq!(Order::decode(&unknown), Err(kind));
    assert_eq!(Report::decode(&unknown), Err(kind));
    let mut order = Order::Spill.encode();
    let mut report = Report::Started.encode();
    (order[1], report[1]) = (7, 7);
    assert_eq!(Order::decode(&order), Err(UnknownMessage::Version(7)));
    assert_eq!(Report::decode(&report), Err(UnknownMessage::Version(7)));
}

#[test]
fn a_socket_is_named_for_its_task() {
    let name = socket_name(&[0xab; 16]);
    assert_eq!(&name, b"heeler/abababababababababababababababab");
}
