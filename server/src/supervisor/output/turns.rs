//! The order in which searches are done: fair by the time that they take, for each client and each task.
//!
//! The one that has had the least time is next, and has one turn at a time. A search that takes long
//! therefore delays its own client or task, and every other one by no more than a turn.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    time::Duration,
};

/// The jobs that wait, by the party that they are for.
#[derive(Debug)]
pub(super) struct Turns<K, J> {
    parties: HashMap<K, Party<J>>,
    /// The time that the party of the latest turn had had before it. A new party begins with it.
    now: Duration,
}

#[derive(Debug)]
struct Party<J> {
    waiting: VecDeque<J>,
    used: Duration,
    has_turn: bool,
}

impl<K, J> Default for Turns<K, J> {
    fn default() -> Self {
        Self {
            parties: HashMap::new(),
            now: Duration::ZERO,
        }
    }
}

impl<K: Copy + Eq + Hash, J> Turns<K, J> {
    /// Adds a job for a party, behind its others.
    pub(super) fn add(&mut self, key: K, job: J) {
        let party = self.parties.entry(key).or_insert_with(|| Party {
            waiting: VecDeque::new(),
            used: self.now,
            has_turn: false,
        });
        party.waiting.push_back(job);
    }

    /// Takes the next job, which is then in its turn.
    pub(super) fn begin(&mut self) -> Option<(K, J)> {
        let ready = self.parties.iter_mut().filter(|(_, party)| !party.has_turn);
        let (key, party) = ready.min_by_key(|(_, party)| party.used)?;
        let job = party.waiting.pop_front()?;
        party.has_turn = true;
        self.now = self.now.max(party.used);
        Some((*key, job))
    }

    /// Ends the turn of a party that took this long.
    pub(super) fn end(&mut self, key: K, took: Duration) {
        let Some(party) = self.parties.get_mut(&key) else {
            return;
        };
        party.has_turn = false;
        party.used += took;
        if party.waiting.is_empty() {
            self.parties.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Duration = Duration::from_millis(100);
    const FAST: Duration = Duration::from_millis(1);

    /// O12, O16
    #[test]
    fn a_party_with_slow_jobs_gets_no_more_time_than_one_with_fast_jobs() {
        let mut turns = Turns::default();
        for job in 0..1000 {
            turns.add("slow", job);
            turns.add("fast", job);
        }
        let (mut slow, mut fast) = (0, 0);
        for _ in 0..500 {
            let Some((key, _)) = turns.begin() else { break };
            match key {
                "slow" => {
                    slow += 1;
                    turns.end(key, SLOW);
                }
                _ => {
                    fast += 1;
                    turns.end(key, FAST);
                }
            }
        }
        assert!(slow <= 6, "{slow} slow turns, {fast} fast ones");
    }

    /// O12
    #[test]
    fn a_party_has_one_turn_at_a_time_and_its_jobs_keep_their_order() {
        let mut turns = Turns::default();
        turns.add('a', 1);
        turns.add('a', 2);
        turns.add('b', 3);
        let first = turns.begin().expect("a job");
        let second = turns.begin().expect("a job of the other party");
        assert_ne!(first.0, second.0);
        assert_eq!(turns.begin(), None, "both have their turns");
        turns.end('a', FAST);
        assert_eq!(turns.begin(), Some(('a', 2)));
        turns.end('b', FAST);
        turns.end('a', FAST);
        assert!(
            turns.parties.is_empty(),
            "a party without jobs costs nothing"
        );
    }

    /// O12
    #[test]
    fn a_new_party_comes_after_no_more_than_the_turns_that_are_under_way() {
        let mut turns = Turns::default();
        for job in 0..10 {
            turns.add("old", job);
        }
        for _ in 0..3 {
            turns.begin();
            turns.end("old", SLOW);
        }
        turns.add("new", 0);
        assert_eq!(turns.begin(), Some(("new", 0)));
    }
}
