//! The durable position of a receiver: the revision up to which it has every event that it wants.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use ring::digest::{SHA256, digest};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::WebhookError;
use crate::{journal::Journal, service::private_file, task::Revision};

/// The directory of the cursors in the state directory.
const DIRECTORY: &str = "webhooks";
/// The bytes of the URL's digest that name a file.
const NAME_BYTES: usize = 16;

/// The directory with a file for each receiver.
#[derive(Debug)]
pub(super) struct Cursors(PathBuf);

/// A position in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) epoch: Uuid,
    pub(super) revision: Revision,
}

/// Events that a receiver did not get, and that cannot be read any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missed {
    /// They come after this position.
    pub(super) after: Position,
    /// They come before this revision; `None` if the numbers are those of an earlier epoch.
    pub(super) before: Option<Revision>,
}

/// The position of one receiver.
#[derive(Debug)]
pub(super) struct Cursor {
    file: PathBuf,
    pub(super) position: Position,
    /// To be told with the next event. As long as it is not, the file stays as it is.
    pub(super) missed: Option<Missed>,
}

impl Cursors {
    /// Removes all files.
    pub(super) fn remove(state_dir: &Path) -> Result<(), WebhookError> {
        let path = state_dir.join(DIRECTORY);
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(WebhookError::Cursors { path, source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Opens the directory, and forgets receivers that are not among these: one that is configured again later
    /// begins anew.
    pub(super) fn open<'a>(
        state_dir: &Path,
        urls: impl Iterator<Item = &'a str>,
    ) -> Result<Self, WebhookError> {
        let path = state_dir.join(DIRECTORY);
        let names: BTreeSet<String> = urls.map(file_name).collect();
        let open = || -> io::Result<()> {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&path)?;
            for entry in fs::read_dir(&path)? {
                let entry = entry?;
                let is_known = |name: &str| names.contains(name);
                if !entry.file_name().to_str().is_some_and(is_known) {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        match open() {
            Ok(()) => Ok(Self(path)),
            Err(source) => Err(WebhookError::Cursors { path, source }),
        }
    }
}

fn file_name(url: &str) -> String {
    let digest = digest(&SHA256, url.as_bytes());
    let mut name = String::with_capacity(2 * NAME_BYTES);
    for byte in &digest.as_ref()[..NAME_BYTES] {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

impl Cursor {
    /// The cursor of a receiver. A new one begins behind the newest event, which is recorded at once.
    pub(super) fn of(
        cursors: &Cursors,
        url: &str,
        journal: &Journal,
    ) -> Result<Self, WebhookError> {
        let file = cursors.0.join(file_name(url));
        let head = Position {
            epoch: journal.epoch(),
            revision: journal.head(),
        };
        let failed = |source| WebhookError::Cursors {
            path: file.clone(),
            source,
        };
        let (position, missed) = match fs::read_to_string(&file) {
            Ok(text) => resume(Position::read(&text), head),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                private_file::write(&file, &head.text()).map_err(failed)?;
                (head, None)
            }
            Err(error) => return Err(failed(error)),
        };
        Ok(Self {
            file,
            position,
            missed,
        })
    }

    /// Notes that the events up to a revision were pruned before they were delivered.
    pub(super) fn skip_to(&mut self, oldest: Revision) {
        let after = self.missed.map_or(self.position, |missed| missed.after);
        let before = match after.epoch == self.position.epoch {
            true => Some(oldest),
            false => None,
        };
        self.missed = Some(Missed { after, before });
        self.position.revision = Revision(oldest.0 - 1);
    }

    /// Moves the position, and records it unless something missed is still to be told.
    pub(super) async fn advance(&mut self, revision: Revision) {
        if revision == self.position.revision {
            return;
        }
        self.position.revision = revision;
        if self.missed.is_some() {
            return;
        }
        let (file, text) = (self.file.clone(), self.position.text());
        let written = spawn_blocking(move || private_file::write(&file, &text)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(%error, "cannot record what a webhook has delivered: after a restart it is repeated");
        }
    }
}

/// The position from which a receiver goes on, and what it has missed.
fn resume(recorded: Option<Position>, head: Position) -> (Position, Option<Missed>) {
    match recorded {
        Some(known) if known.epoch == head.epoch && known.revision <= head.revision => {
            (known, None)
        }
        // Events may have been lost with the epoch: those that it has are the same up to the lost ones.
        Some(other) => {
            let revision = other.revision.min(head.revision);
            let missed = Missed {
                after: other,
                before: None,
            };
            (Position { revision, ..head }, Some(missed))
        }
        None => {
            let after = Position {
                epoch: Uuid::nil(),
                revision: Revision(0),
            };
            (
                head,
                Some(Missed {
                    after,
                    before: None,
                }),
            )
        }
    }
}

impl Position {
    fn text(self) -> String {
        format!("{} {}", self.epoch, self.revision.0)
    }

    fn read(text: &str) -> Option<Self> {
        let (epoch, revision) = text.trim_end().split_once(' ')?;
        Some(Self {
            epoch: epoch.parse().ok()?,
            revision: Revision(revision.parse().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(epoch: u128, revision: u64) -> Position {
        Position {
            epoch: Uuid::from_u128(epoch),
            revision: Revision(revision),
        }
    }

    /// H7
    #[test]
    fn a_receiver_goes_on_where_it_was_and_is_told_of_what_it_missed() {
        let head = at(1, 50);
        assert_eq!(resume(Some(at(1, 40)), head), (at(1, 40), None));
        let lost = |after| {
            Some(Missed {
                after,
                before: None,
            })
        };
        assert_eq!(resume(Some(at(2, 40)), head), (at(1, 40), lost(at(2, 40))));
        assert_eq!(resume(Some(at(2, 60)), head), (at(1, 50), lost(at(2, 60))));
        assert_eq!(resume(Some(at(1, 60)), head), (at(1, 50), lost(at(1, 60))));
        assert_eq!(resume(None, head), (at(1, 50), lost(at(0, 0))));
    }

    /// H7
    #[test]
    fn events_that_are_pruned_twice_are_one_gap() {
        let mut cursor = Cursor {
            file: PathBuf::new(),
            position: at(1, 10),
            missed: None,
        };
        for oldest in [20, 30] {
            cursor.skip_to(Revision(oldest));
        }
        let missed = Missed {
            after: at(1, 10),
            before: Some(Revision(30)),
        };
        assert_eq!((cursor.position, cursor.missed), (at(1, 29), Some(missed)));
    }

    #[test]
    fn a_position_is_read_as_it_was_written_and_nothing_else() {
        assert_eq!(Position::read(&at(7, 9).text()), Some(at(7, 9)));
        for damaged in ["", "x 1", "00000000-0000-0000-0000-000000000007", "\0\0\0"] {
            assert_eq!(Position::read(damaged), None);
        }
    }
}
