//! The thread that does all searches.

use std::{thread, time::Duration};

use tokio::sync::mpsc::Receiver;

use super::{
    SearchedMarks,
    look::{Look, NewestPids},
    search::{Progress, Search},
};

/// The shortest and the longest pause between two looks while killed processes die.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

/// Serves searches until no more can come.
pub(super) fn run(mut queue: Receiver<Search>) {
    let newest = NewestPids::of_kernel();
    let mut open = Vec::new();
    let mut pause = FIRST_PAUSE;
    loop {
        if open.is_empty() {
            match queue.blocking_recv() {
                Some(search) => open.push(search),
                None => return,
            }
            pause = FIRST_PAUSE;
        }
        while let Ok(search) = queue.try_recv() {
            open.push(search);
        }
        match advance(&mut open, &newest) {
            Progress::LookAgain => pause = FIRST_PAUSE,
            Progress::Wait => {
                thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Advances all searches by one look, and keeps those that are not done.
fn advance(open: &mut Vec<Search>, newest: &NewestPids) -> Progress {
    let needs_both = |search: &Search| search.searched == SearchedMarks::Both;
    let marks = match open.iter().any(needs_both) {
        true => SearchedMarks::Both,
        false => SearchedMarks::LimitTag,
    };
    let look = Look::take(marks, newest);
    let mut progress = Progress::Wait;
    let before = std::mem::take(open);
    for search in before {
        if let Some((search, next)) = search.advance(&look, newest) {
            open.push(search);
            if next == Progress::LookAgain {
                progress = Progress::LookAgain;
            }
        }
    }
    if open.is_empty() {
        progress = Progress::LookAgain;
    }
    progress
}
