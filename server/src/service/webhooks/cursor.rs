//! The durable position of a receiver: the revision up to which it has every event that it wants.
//!
//! A server that starts without a receiver notes that in its file, and the position stays for a while: a daemon that
//! a command has started, or a mistyped URL, costs no event.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Duration,
};

use ring::digest::{SHA256, digest};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::WebhookError;
use crate::{
    journal::Journal,
    service::private_file,
    task::{Revision, Timestamp},
};

/// The directory of the cursors in the state directory.
const DIRECTORY: &str = "webhooks";
/// The bytes of the URL's digest that name a file.
const NAME_BYTES: usize = 16;
/// The time for which the position of a receiver that is no longer configured is kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The directory with a file for each receiver.
#[derive(Debug)]
pub(super) struct Cursors(PathBuf);

/// A position in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) epoch: Uuid,
    pub(super) revision: Revision,
}

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Recorded {
    position: Position,
    /// The first start without the receiver since the last one with it.
    unused_since: Option<Timestamp>,
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
    /// Opens the directory. Receivers that are not among these are forgotten a while after the first start without
    /// them.
    pub(super) fn open<'a>(
        state_dir: &Path,
        urls: impl Iterator<Item = &'a str>,
    ) -> Result<Self, WebhookError> {
        Self::open_at(state_dir, urls, Timestamp::now())
    }

    fn open_at<'a>(
        state_dir: &Path,
        urls: impl Iterator<Item = &'a str>,
        now: Timestamp,
    ) -> Result<Self, WebhookError> {
        let path = state_dir.join(DIRECTORY);
        let names: BTreeSet<String> = urls.map(file_name).collect();
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        match created.and_then(|()| retire_all_but(&names, &path, now)) {
            Ok(()) => Ok(Self(path)),
            Err(source) => Err(WebhookError::Cursors { path, source }),
        }
    }
}

/// Notes that no receiver is configured. After a failure the files are only kept for longer.
pub(super) fn retire_all(state_dir: &Path) {
    let path = state_dir.join(DIRECTORY);
    match retire_all_but(&BTreeSet::new(), &path, Timestamp::now()) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            let path = path.display();
            tracing::warn!(%path, %error, "cannot note that no webhook is configured");
        }
    }
}

fn retire_all_but(names: &BTreeSet<String>, directory: &Path, now: Timestamp) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_name().to_str() {
            Some(name) if names.contains(name) => {}
            Some(name) if is_file_name(name) => retire(&entry.path(), now)?,
            // One that was not written to its end.
            Some(_) | None => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// Notes that the receiver of a file is not configured, or removes the file if that was noted long ago.
fn retire(file: &Path, now: Timestamp) -> io::Result<()> {
    let Some(recorded) = Recorded::read(&fs::read_to_string(file)?) else {
        return fs::remove_file(file);
    };
    match recorded.unused_since {
        Some(since) if now.since(since) > KEPT => fs::remove_file(file),
        Some(_) => Ok(()),
        None => {
            let unused_since = Some(now);
            let text = Recorded {
                unused_since,
                ..recorded
            }
            .text();
            private_file::write(file, &text)
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

fn is_file_name(name: &str) -> bool {
    name.len() == 2 * NAME_BYTES && name.bytes().all(|byte| byte.is_ascii_hexdigit())
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
            Ok(text) => {
                let recorded = Recorded::read(&text);
                if let Some(unused) = recorded.filter(|one| one.unused_since.is_some()) {
                    let text = Recorded::used(unused.position).text();
                    private_file::write(&file, &text).map_err(failed)?;
                }
                resume(recorded.map(|one| one.position), head)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                private_file::write(&file, &Recorded::used(head).text()).map_err(failed)?;
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

    /// Notes that the events before a revision can no longer be sent.
    pub(super) fn skip_to(&mut self, oldest: Revision) {
        let after = self.missed.map_or(self.position, |missed| missed.after);
        let before = match after.epoch == self.position.epoch {
            true => Some(oldest),
            false => None,
        };
        self.missed = Some(Missed { after, before });
        self.position.revision = Revision(oldest.0 - 1);
    }

    /// Notes that an event, the next one that the receiver wants, cannot be sent.
    pub(super) fn skip(&mut self, event: Revision) {
        self.skip_to(Revision(event.0 + 1));
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
        let (file, text) = (self.file.clone(), Recorded::used(self.position).text());
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

impl Recorded {
    fn used(position: Position) -> Self {
        Self {
            position,
            unused_since: None,
        }
    }

    fn text(self) -> String {
        let Position { epoch, revision } = self.position;
        match self.unused_since {
            None => format!("{epoch} {}", revision.0),
            Some(since) => format!("{epoch} {} {}", revision.0, since.0),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.trim_end().split(' ');
        let position = Position {
            epoch: parts.next()?.parse().ok()?,
            revision: Revision(parts.next()?.parse().ok()?),
        };
        let unused_since = match parts.next() {
            Some(since) => Some(Timestamp(since.parse().ok()?)),
            None => None,
        };
        Some(Self {
            position,
            unused_since,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_start_without_receivers_makes_no_directory() {
        let state = tempfile::tempdir().unwrap();
        retire_all(state.path());
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0);
    }

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

    /// H7
    #[test]
    fn an_event_that_cannot_be_sent_is_told_of_as_missed() {
        let mut cursor = Cursor {
            file: PathBuf::new(),
            position: at(1, 10),
            missed: None,
        };
        for event in [14, 15] {
            cursor.skip(Revision(event));
        }
        let missed = Missed {
            after: at(1, 10),
            before: Some(Revision(16)),
        };
        assert_eq!((cursor.position, cursor.missed), (at(1, 15), Some(missed)));
    }

    /// H7
    #[test]
    fn a_position_is_kept_for_a_while_after_a_start_without_its_receiver() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(DIRECTORY).join(file_name("http://a/"));
        let start = |urls: &[&str], seconds: u64| {
            let now = Timestamp(seconds * 1_000_000);
            Cursors::open_at(dir.path(), urls.iter().copied(), now).unwrap();
        };
        let put_back = || {
            let recorded = Recorded::read(&fs::read_to_string(&file).unwrap()).unwrap();
            assert_eq!(recorded.position, at(1, 7));
            fs::write(&file, Recorded::used(recorded.position).text()).unwrap();
        };
        start(&["http://a/"], 0);
        fs::write(&file, Recorded::used(at(1, 7)).text()).unwrap();
        // However long it was in use before, and how often the server starts without it.
        let mut now = 100 * KEPT.as_secs();
        for _ in 0..2 {
            for urls in [&["http://b/"][..], &[]] {
                start(urls, now);
                now += KEPT.as_secs();
                start(urls, now);
                put_back();
            }
        }
        start(&[], now);
        start(&[], now + KEPT.as_secs() + 1);
        assert!(!file.exists());
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_nothing_else() {
        for unused_since in [None, Some(Timestamp(5))] {
            let recorded = Recorded {
                position: at(7, 9),
                unused_since,
            };
            assert_eq!(Recorded::read(&recorded.text()), Some(recorded));
        }
        for damaged in ["", "x 1", "00000000-0000-0000-0000-000000000007", "\0\0\0"] {
            assert_eq!(Recorded::read(damaged), None);
        }
    }
}
