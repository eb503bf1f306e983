use prost::bytes::Bytes;

use super::*;
use crate::task::{IdKey, Kind, Seq};

fn id() -> TaskId {
    IdKey(1).task_id(Kind::Shell, Seq(1))
}

fn write(offset: Option<u64>, data: &'static [u8]) -> InputWrite {
    InputWrite {
        offset,
        data: Bytes::from_static(data),
        ..InputWrite::default()
    }
}

fn given(bytes: u64, room: u64, state: InputState) -> Given {
    Given {
        bytes,
        room,
        state,
        size: None,
        is_relayed: false,
    }
}

fn held_by(present: &str, former: &str) -> Writers {
    Writers {
        present: present.to_owned(),
        former: former.to_owned(),
    }
}

/// The part of the data that the shim is given.
fn part(write: &InputWrite, given: &Given) -> Option<(usize, usize, InputEnd)> {
    match decide(&id(), write, given, &Writers::default()).expect("not refused") {
        Decision::Give { from, to, end, .. } => Some((from, to, end)),
        Decision::Answer { .. } => None,
    }
}

/// I2
#[test]
fn bytes_that_the_task_has_are_skipped_and_a_gap_is_refused() {
    let open = given(10, 100, InputState::Open);
    let (ten, all) = (Some(10), InputEnd::Open);
    assert_eq!(part(&write(ten, b"abc"), &open), Some((0, 3, all)));
    assert_eq!(part(&write(None, b"abc"), &open), Some((0, 3, all)));
    assert_eq!(part(&write(Some(8), b"abc"), &open), Some((2, 3, all)));
    for offset in [0, 7] {
        assert_eq!(part(&write(Some(offset), b"abc"), &open), None, "{offset}");
    }
    let gap = decide(&id(), &write(Some(11), b"abc"), &open, &Writers::default());
    assert!(matches!(gap, Err(InputError::Gap { expected: 10, .. })));
}

/// I3
#[test]
fn a_write_gives_as_much_as_there_is_room_for() {
    let little = given(0, 2, InputState::Open);
    assert_eq!(
        part(&write(Some(0), b"abc"), &little),
        Some((0, 2, InputEnd::Open))
    );
    let full = given(2, 0, InputState::Open);
    let answer = decide(&id(), &write(Some(0), b"abc"), &full, &Writers::default());
    let Ok(Decision::Answer {
        standing,
        missing_room,
        ..
    }) = answer
    else {
        panic!("{answer:?}");
    };
    assert_eq!((standing.taken, standing.offset), (2, 2));
    assert_eq!(missing_room, Some(1));
}

/// I1, I7
#[test]
fn an_input_is_closed_behind_its_last_byte_and_takes_no_more() {
    let closing = InputWrite {
        end: InputEnd::Close,
        ..write(Some(0), b"abc")
    };
    let (open, little) = (given(0, 9, InputState::Open), given(0, 2, InputState::Open));
    assert_eq!(part(&closing, &open), Some((0, 3, InputEnd::Close)));
    assert_eq!(part(&closing, &little), Some((0, 2, InputEnd::Open)));
    let rest = given(3, 0, InputState::Open);
    assert_eq!(part(&closing, &rest), Some((3, 3, InputEnd::Close)));
    for (state, closer) in [
        (InputState::Closed, ClosedBy::Writer),
        (InputState::Broken, ClosedBy::Task),
    ] {
        let closed = given(3, 0, state);
        assert_eq!(part(&closing, &closed), None, "a repetition");
        let more = decide(&id(), &write(Some(1), b"abc"), &closed, &Writers::default());
        let Err(InputError::Closed { by, offset: 3, .. }) = more else {
            panic!("{more:?}");
        };
        assert_eq!(by, closer);
    }
}

/// I6
#[test]
fn the_first_writer_has_the_input_until_another_one_takes_it_over() {
    let by = |writer: &str, hold| InputWrite {
        writer: writer.to_owned(),
        hold,
        ..write(None, b"abc")
    };
    let claimed = |writer: &str, hold, writers: &Writers| {
        claim(&id(), &by(writer, hold), writers).map_err(|error| match &error {
            InputError::Held { writer, .. } => format!("held by {writer}"),
            InputError::TakenOver { writer, .. } => format!("taken by {writer}"),
            InputError::Finished(_)
            | InputError::Missing(_)
            | InputError::Closed { .. }
            | InputError::Gap { .. }
            | InputError::NoTerminal(_)
            | InputError::NotAnswered(_)
            | InputError::Journal(_)
            | InputError::ShuttingDown => panic!("{error}"),
        })
    };
    let (free, a) = (Writers::default(), held_by("a", ""));
    assert_eq!(claimed("", InputHold::IfFree, &free), Ok(free.clone()));
    assert_eq!(claimed("a", InputHold::IfFree, &free), Ok(a.clone()));
    assert_eq!(claimed("a", InputHold::IfFree, &a), Ok(a.clone()));
    for other in ["b", ""] {
        let refused = claimed(other, InputHold::IfFree, &a);
        assert_eq!(refused, Err("held by a".to_owned()), "{other:?}");
    }
    let b = claimed("b", InputHold::TakeOver, &a).expect("taken");
    assert_eq!(b, held_by("b", "a"));
    let refused = claimed("a", InputHold::IfFree, &b);
    assert_eq!(refused, Err("taken by b".to_owned()));
    assert_eq!(claimed("a", InputHold::TakeOver, &b), Ok(held_by("a", "b")));
    let released = claimed("", InputHold::TakeOver, &b).expect("taken");
    assert_eq!(released, held_by("", "b"));
    assert_eq!(
        claimed("c", InputHold::IfFree, &released),
        Ok(held_by("c", "b"))
    );
    let refused = claimed("b", InputHold::IfFree, &released);
    assert_eq!(refused, Err("taken by ".to_owned()));
}
