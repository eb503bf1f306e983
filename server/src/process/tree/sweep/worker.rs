//! The thread that does all searches.

use std::{iter, thread, time::Duration};

use tokio::sync::mpsc::Receiver;

use super::{
    SearchedMarks, Work,
    look::{Ahead, Look, NewestPids},
    search::{Progress, Search},
};

/// The shortest and the longest pause between two looks while killed processes die.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

/// Serves searches until no more can come.
pub(super) fn run(mut queue: Receiver<Work>) {
    let newest = NewestPids::of_kernel();
    let mut open = Vec::new();
    let mut ahead: Option<Ahead> = None;
    let mut pause = FIRST_PAUSE;
    loop {
        let mut first = None;
        if open.is_empty() {
            first = queue.blocking_recv();
            if first.is_none() {
                return;
            }
            pause = FIRST_PAUSE;
        }
        // Any number of requests to look ahead are one.
        let mut wanted_ahead = None;
        let waiting = iter::from_fn(|| queue.try_recv().ok());
        for work in first.into_iter().chain(waiting) {
            match work {
                Work::Search(search) => open.push(*search),
                Work::LookAhead(marks) => wanted_ahead = Some(marks),
            }
        }
        if open.is_empty() {
            ahead = wanted_ahead.and_then(|marks| Ahead::take(marks, &newest));
            continue;
        }
        match advance(&mut open, ahead.take(), &newest) {
            Progress::LookAgain => pause = FIRST_PAUSE,
            Progress::Wait => {
                thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Advances all searches by one look, and keeps those that are not done.
fn advance(open: &mut Vec<Search>, ahead: Option<Ahead>, newest: &NewestPids) -> Progress {
    let needs_both = |search: &Search| search.searched == SearchedMarks::Both;
    let marks = match open.iter().any(needs_both) {
        true => SearchedMarks::Both,
        false => SearchedMarks::LimitTag,
    };
    let is_by_marks_alone = open.iter().all(Search::is_by_marks_alone);
    let ahead = ahead.filter(|_| is_by_marks_alone);
    let look = ahead.and_then(|ahead| ahead.continued(marks, newest));
    let look = look.unwrap_or_else(|| Look::take(marks, newest));
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
