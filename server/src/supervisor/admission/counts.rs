//! The bookkeeping: which claims are admitted or wait, and the limits that they count towards.

use std::{borrow::Borrow, collections::HashMap, hash::Hash};

use super::{Admission, Claim, Key, Place, Queue};
use crate::task::{QueueSettings, Seq};

impl Admission {
    pub(super) fn add_admitted(&mut self, claim: Claim) {
        if let Some(key) = claim.key() {
            let key = self.keys.entry(key.to_owned()).or_default();
            key.holders.insert(claim.seq);
        }
        if let Some(queue) = claim.queue() {
            self.queues.entry(queue.to_owned()).or_default().running += 1;
        }
        if let (Some(_), Some(session)) = (self.limits.per_session, claim.session()) {
            *self.sessions.entry(session.to_owned()).or_default() += 1;
        }
        for (label, value, _) in claim.limited_labels(&self.limits) {
            let counted = self.labels.entry((label.clone(), value.clone()));
            *counted.or_default() += 1;
        }
        self.places
            .insert(claim.id.clone(), Place::Admitted(claim.seq));
        self.admitted.insert(claim.seq, claim);
    }

    pub(super) fn remove_admitted(&mut self, seq: Seq) -> Option<Claim> {
        let claim = self.admitted.remove(&seq)?;
        self.places.remove(&claim.id);
        if let Some(key) = claim.key().and_then(|key| self.keys.get_mut(key)) {
            key.holders.remove(&claim.seq);
        }
        if let Some(queue) = claim.queue().and_then(|queue| self.queues.get_mut(queue)) {
            queue.running = queue.running.saturating_sub(1);
        }
        if let Some(session) = claim.session() {
            count_down(&mut self.sessions, session);
        }
        for (label, value, _) in claim.limited_labels(&self.limits) {
            count_down(&mut self.labels, &(label.clone(), value.clone()));
        }
        self.drop_if_unused(&claim);
        Some(claim)
    }

    pub(super) fn add_waiting(&mut self, claim: Claim) {
        let position = claim.position();
        if let Some(key) = claim.key() {
            let key = self.keys.entry(key.to_owned()).or_default();
            key.waiting.insert(position);
        }
        if let Some(queue) = claim.queue() {
            let queue = self.queues.entry(queue.to_owned()).or_default();
            queue.waiting.insert(position);
        }
        self.places
            .insert(claim.id.clone(), Place::Waiting(position));
        self.waiting.insert(position, claim);
    }

    /// Removes a claim from the lines of its key and its queue.
    pub(super) fn remove_from_lines(&mut self, claim: &Claim) {
        let position = claim.position();
        if let Some(key) = claim.key().and_then(|key| self.keys.get_mut(key)) {
            key.waiting.remove(&position);
        }
        if let Some(queue) = claim.queue().and_then(|queue| self.queues.get_mut(queue)) {
            queue.waiting.remove(&position);
        }
    }

    /// Drops the key and the queue of a claim if no other claim uses them.
    pub(super) fn drop_if_unused(&mut self, claim: &Claim) {
        if let Some(key) = claim.key() {
            let is_unused = |key: &Key| key.holders.is_empty() && key.waiting.is_empty();
            if self.keys.get(key).is_some_and(is_unused) {
                self.keys.remove(key);
            }
        }
        if let Some(queue) = claim.queue() {
            self.drop_queue_if_unused(queue);
        }
    }

    pub(super) fn drop_queue_if_unused(&mut self, name: &str) {
        let is_unused = |queue: &Queue| {
            queue.settings == QueueSettings::default()
                && queue.running == 0
                && queue.waiting.is_empty()
        };
        if self.queues.get(name).is_some_and(is_unused) {
            self.queues.remove(name);
        }
    }
}

fn count_down<K, Q>(counts: &mut HashMap<K, usize>, key: &Q)
where
    K: Borrow<Q> + Hash + Eq,
    Q: Hash + Eq + ?Sized,
{
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
