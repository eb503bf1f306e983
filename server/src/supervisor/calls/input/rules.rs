//! The rules of a write: pure.

use super::{ClosedBy, InputEnd, InputError, InputHold, InputStanding, InputWrite, Writers};
use crate::{
    process::shim::InputState,
    task::{TaskId, TerminalSize},
};

/// The input as its shim has reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) struct Given {
    /// The number of bytes that the task was given.
    pub(in crate::supervisor) bytes: u64,
    pub(in crate::supervisor) room: u64,
    pub(in crate::supervisor) state: InputState,
    pub(in crate::supervisor) size: Option<TerminalSize>,
    /// A client gives the task its input by a relay: there may be more bytes by now.
    pub(in crate::supervisor) is_relayed: bool,
}

/// The next step of a write.
#[derive(Debug)]
pub(in crate::supervisor) enum Decision {
    /// The answer, the writers if they change, and the room to wait for if the write is not complete.
    Answer {
        standing: InputStanding,
        writers: Option<Writers>,
        missing_room: Option<u64>,
    },
    /// Give a part of the data to the shim, then decide again.
    Give {
        from: usize,
        to: usize,
        end: InputEnd,
        writers: Option<Writers>,
    },
}

/// Decides on a write. Its offset is known: [`Given::bytes`], if the request had none.
pub(in crate::supervisor) fn decide(
    id: &TaskId,
    write: &InputWrite,
    given: &Given,
    writers: &Writers,
) -> Result<Decision, InputError> {
    let standing = |taken, writers: &Writers| InputStanding {
        offset: given.bytes,
        taken,
        is_closed: matches!(given.state, InputState::Closed | InputState::Broken),
        writer: writers.present.clone(),
        size: given.size,
    };
    if write.changes_nothing() {
        return Ok(Decision::Answer {
            standing: standing(0, writers),
            writers: None,
            missing_room: None,
        });
    }
    let claimed = claim(id, write, writers)?;
    let offset = write.offset.unwrap_or(given.bytes);
    let Some(known) = given.bytes.checked_sub(offset) else {
        let (id, expected) = (id.clone(), given.bytes);
        return Err(InputError::Gap { id, expected });
    };
    let from = usize::try_from(known).map_or(write.data.len(), |known| known.min(write.data.len()));
    let rest = (write.data.len() - from) as u64;
    if let Some(by) = closed_by(given.state)
        && rest > 0
    {
        let (id, offset) = (id.clone(), given.bytes);
        return Err(InputError::Closed { id, offset, by });
    }
    let changed = (claimed != *writers).then(|| claimed.clone());
    let now = rest.min(given.room);
    let closes = write.end == InputEnd::Close && now == rest && given.state == InputState::Open;
    Ok(match now > 0 || closes {
        true => Decision::Give {
            from,
            to: from + now as usize,
            end: if closes {
                InputEnd::Close
            } else {
                InputEnd::Open
            },
            writers: changed,
        },
        false => Decision::Answer {
            standing: standing(from, &claimed),
            writers: changed,
            missing_room: (rest > 0).then_some(rest),
        },
    })
}

fn closed_by(state: InputState) -> Option<ClosedBy> {
    match state {
        InputState::Closed => Some(ClosedBy::Writer),
        InputState::Broken => Some(ClosedBy::Task),
        InputState::Open | InputState::Missing => None,
    }
}

/// The writers after a write, or the reason why its writer may not write.
fn claim(id: &TaskId, write: &InputWrite, writers: &Writers) -> Result<Writers, InputError> {
    let Writers { present, former } = writers;
    let own = &write.writer;
    if own == present {
        return Ok(writers.clone());
    }
    let is_former = !own.is_empty() && own == former;
    let (id, writer) = (id.clone(), present.clone());
    match write.hold {
        InputHold::TakeOver => Ok(Writers {
            present: own.clone(),
            former: match present.is_empty() {
                true => former.clone(),
                false => present.clone(),
            },
        }),
        InputHold::IfFree if is_former => Err(InputError::TakenOver { id, writer }),
        InputHold::IfFree if present.is_empty() => Ok(Writers {
            present: own.clone(),
            former: former.clone(),
        }),
        InputHold::IfFree => Err(InputError::Held { id, writer }),
    }
}

#[cfg(test)]
mod tests;
