//! Sends a signal, and then SIGCONT, to every process of the tree that can be found.
//!
//! First the tree is walked, to count the processes that are alive when the signal is sent. Then the
//! leader's group is signalled at once, and one by one the descendants that have left it.

use super::{
    reaper::Reaper,
    walk::{Found, Walk},
};
use crate::program::sys::signals;

/// The most processes found. The rest of a larger tree gets no signal before SIGKILL.
const LIMIT: usize = 4096;

/// Sends the signal; returns the number of live processes that got it.
pub(crate) fn send(signal: i32, tree: &Reaper, buffer: &mut [u8]) -> u32 {
    let walk = Walk::of_tree(LIMIT, buffer);
    let leader = tree.leader();
    if leader.is_some() {
        tree.signal_leader_group(signal);
        tree.signal_leader_group(signals::CONTINUE);
    }
    let Some(mut walk) = walk else {
        // No memory for a list: at least the leader was signalled.
        return u32::from(leader.is_some());
    };
    let mut count = 0;
    for index in 0..walk.len() {
        let got_it = walk
            .get(index)
            .is_some_and(|found| leader == Some(found.group) || send_to(&found, signal));
        count += u32::from(got_it);
    }
    count
}

fn send_to(found: &Found, signal: i32) -> bool {
    found.handle().is_some_and(|handle| {
        let sent = signals::send_to_handle(&handle, signal).is_ok();
        let _ = signals::send_to_handle(&handle, signals::CONTINUE);
        sent
    })
}
