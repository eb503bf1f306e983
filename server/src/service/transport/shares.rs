//! Fair shares of something that runs out: places of calls, bytes of memory, connections.
//!
//! A caller gets more only while it has less than is still free. One caller alone gets half, two get a
//! third each, and so on: a part is always left for the next one, without a limit per caller that would
//! be too small for a single busy client.
//!
//! A share belongs to a future only if the server polls that future in any case, or if the client whose
//! future it is cannot take more than its own part by not reading.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// The client that a share is counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// A process that has connected to the Unix socket, over all its connections.
    Process(i32),
    /// One connection of a client whose process is unknown.
    Connection(u64),
    /// A machine, over all its connections.
    Machine(IpAddr),
}

/// The rule for a caller that has nothing yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// Its first request is granted, even if nothing is free: no number of other callers keeps it out.
    /// The limit is then exceeded by one request of each caller at most.
    Granted,
    /// The limit is never exceeded.
    IfFree,
}

/// A limited supply; its clones are the same supply.
#[derive(Debug, Clone)]
pub(super) struct Shares(Arc<Mutex<Supply>>);

/// A part of a supply, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Shares,
    caller: Caller,
    amount: usize,
}

#[derive(Debug)]
struct Supply {
    total: usize,
    taken: usize,
    first: First,
    /// The callers that have or want something.
    callers: HashMap<Caller, Use>,
    /// The callers that wait, in the order of their turns.
    turns: VecDeque<Caller>,
    next_request: u64,
}

#[derive(Debug, Default)]
struct Use {
    held: usize,
    /// In the order of arrival.
    waiting: BTreeMap<u64, Request>,
}

#[derive(Debug)]
struct Request {
    amount: usize,
    grant: oneshot::Sender<Share>,
}

/// Takes a request back that was not granted.
struct Waiting<'a> {
    shares: &'a Shares,
    caller: Caller,
    request: u64,
}

impl Shares {
    pub(super) fn new(total: usize, first: First) -> Self {
        Self(Arc::new(Mutex::new(Supply {
            total,
            taken: 0,
            first,
            callers: HashMap::new(),
            turns: VecDeque::new(),
            next_request: 0,
        })))
    }

    /// Takes a share at once; `None` if the caller has its part already.
    pub(super) fn try_take(&self, caller: Caller, amount: usize) -> Option<Share> {
        let mut supply = self.supply();
        let admitted = supply.admits(caller, amount);
        admitted.then(|| supply.grant(self, caller, amount))
    }

    /// Takes a share that is needed in any case, also beyond the caller's part.
    pub(super) fn take_regardless(&self, caller: Caller, amount: usize) -> Share {
        self.supply().grant(self, caller, amount)
    }

    /// Takes a share as soon as the caller's part allows it. Requests of one caller are granted in
    /// order, and callers in turn.
    pub(super) async fn take(&self, caller: Caller, amount: usize) -> Share {
        let (granted, request) = {
            let mut supply = self.supply();
            let is_first = supply
                .callers
                .get(&caller)
                .is_none_or(|of| of.waiting.is_empty());
            if is_first && supply.admits(caller, amount) {
                return supply.grant(self, caller, amount);
            }
            supply.enqueue(caller, amount)
        };
        let _waiting = Waiting {
            shares: self,
            caller,
            request,
        };
        granted
            .await
            .expect("a request is granted or still waiting")
    }

    /// No code that can panic runs under the lock.
    fn supply(&self) -> MutexGuard<'_, Supply> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Changes the amount to what is really needed. Returns whether the caller could take as much again.
    pub(crate) fn resize(&mut self, amount: usize) -> bool {
        let mut supply = self.shares.supply();
        supply.record(self.caller, amount);
        supply.give_back(self.caller, self.amount);
        self.amount = amount;
        let has_room = supply.admits(self.caller, amount);
        let ungranted = supply.serve(&self.shares);
        drop(supply);
        drop(ungranted);
        has_room
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut supply = self.shares.supply();
        supply.give_back(self.caller, self.amount);
        let ungranted = supply.serve(&self.shares);
        drop(supply);
        // With the lock free: each of them goes back in the same way.
        drop(ungranted);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut supply = self.shares.supply();
        if let Some(of) = supply.callers.get_mut(&self.caller) {
            of.waiting.remove(&self.request);
        }
        supply.forget_if_idle(self.caller);
    }
}

impl Supply {
    fn admits(&self, caller: Caller, amount: usize) -> bool {
        let held = self.callers.get(&caller).map_or(0, |of| of.held);
        let free = self.total.saturating_sub(self.taken);
        let is_granted = match self.first {
            First::Granted => held == 0,
            First::IfFree => false,
        };
        is_granted || held.saturating_add(amount) <= free
    }

    fn grant(&mut self, shares: &Shares, caller: Caller, amount: usize) -> Share {
        self.record(caller, amount);
        Share {
            shares: shares.clone(),
            caller,
            amount,
        }
    }

    fn record(&mut self, caller: Caller, amount: usize) {
        self.taken += amount;
        self.callers.entry(caller).or_default().held += amount;
    }

    fn give_back(&mut self, caller: Caller, amount: usize) {
        self.taken -= amount;
        if let Some(of) = self.callers.get_mut(&caller) {
            of.held -= amount;
        }
        self.forget_if_idle(caller);
    }

    fn forget_if_idle(&mut self, caller: Caller) {
        if let Some(of) = self.callers.get(&caller)
            && of.held == 0
            && of.waiting.is_empty()
        {
            self.callers.remove(&caller);
        }
    }

    fn enqueue(&mut self, caller: Caller, amount: usize) -> (oneshot::Receiver<Share>, u64) {
        let (grant, granted) = oneshot::channel();
        let request = self.next_request;
        self.next_request += 1;
        let of = self.callers.entry(caller).or_default();
        if of.waiting.is_empty() && !self.turns.contains(&caller) {
            self.turns.push_back(caller);
        }
        of.waiting.insert(request, Request { amount, grant });
        (granted, request)
    }

    /// Grants the requests that are admitted now. Returns the shares whose callers have just left.
    fn serve(&mut self, shares: &Shares) -> Vec<Share> {
        let mut ungranted = Vec::new();
        let mut refused = 0;
        while refused < self.turns.len()
            && let Some(caller) = self.turns.pop_front()
        {
            let first = self
                .callers
                .get(&caller)
                .and_then(|of| of.waiting.first_key_value());
            let Some((_, request)) = first else {
                refused = 0;
                continue;
            };
            let amount = request.amount;
            if !self.admits(caller, amount) {
                self.turns.push_back(caller);
                refused += 1;
                continue;
            }
            refused = 0;
            let share = self.grant(shares, caller, amount);
            let granted = self.callers.get_mut(&caller);
            if let Some((_, request)) = granted.and_then(|of| of.waiting.pop_first()) {
                ungranted.extend(request.grant.send(share).err());
            }
            self.turns.push_back(caller);
        }
        ungranted
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
