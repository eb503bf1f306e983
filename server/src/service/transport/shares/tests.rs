use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use super::*;

const ONE: Caller = Caller::Process(1);
const TWO: Caller = Caller::Process(2);
const THREE: Caller = Caller::Connection(3);

/// Takes places until the caller has its part.
fn fill(shares: &Shares, caller: Caller) -> Vec<Share> {
    std::iter::from_fn(|| shares.try_take(caller, 1)).collect()
}

type Taking<'a> = Pin<Box<dyn Future<Output = Share> + 'a>>;

fn ask(shares: &Shares, caller: Caller, amount: usize) -> Taking<'_> {
    let mut taking: Taking<'_> = Box::pin(shares.take(caller, amount));
    assert!(poll(&mut taking).is_none(), "granted at once");
    taking
}

fn poll(taking: &mut Taking<'_>) -> Option<Share> {
    match taking
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(share) => Some(share),
        Poll::Pending => None,
    }
}

/// N3
#[test]
fn one_caller_gets_half_and_each_further_one_an_equal_part_of_the_rest() {
    let shares = Shares::new(120, First::IfFree);
    let one = fill(&shares, ONE);
    assert_eq!(one.len(), 60);
    let two = fill(&shares, TWO);
    assert_eq!(two.len(), 30);
    assert_eq!(fill(&shares, THREE).len(), 15);
    drop((one, two));
    assert_eq!(shares.supply().taken, 0);
    assert!(shares.supply().callers.is_empty());
}

/// N3
#[test]
fn the_first_request_of_a_caller_is_granted_though_nothing_is_free() {
    let shares = Shares::new(4, First::Granted);
    let _all = shares.take_regardless(ONE, 10);
    assert!(shares.try_take(ONE, 1).is_none());
    let first = shares.try_take(TWO, 1);
    assert!(first.is_some());
    assert!(shares.try_take(TWO, 1).is_none());
    let strict = Shares::new(4, First::IfFree);
    let _all = strict.take_regardless(ONE, 10);
    assert!(strict.try_take(TWO, 1).is_none());
}

/// N3
#[test]
fn a_caller_that_waits_delays_no_other_caller() {
    let shares = Shares::new(8, First::Granted);
    let mut one = fill(&shares, ONE);
    let mut waiting = ask(&shares, ONE, 1);
    let two = shares.try_take(TWO, 1);
    assert!(two.is_some());
    drop(two);
    assert!(poll(&mut waiting).is_none(), "it still has its part");
    one.pop();
    assert!(poll(&mut waiting).is_some());
}

#[test]
fn requests_of_a_caller_are_granted_in_order_and_callers_in_turn() {
    let shares = Shares::new(2, First::IfFree);
    let held = shares.take_regardless(THREE, 2);
    let mut first = ask(&shares, ONE, 1);
    let mut second = ask(&shares, ONE, 1);
    let mut other = ask(&shares, TWO, 1);
    drop(held);
    let granted = poll(&mut first);
    assert!(granted.is_some());
    assert!(poll(&mut second).is_none());
    let others = poll(&mut other);
    assert!(others.is_some());
    drop(granted);
    assert!(poll(&mut second).is_some());
}

#[test]
fn a_request_whose_caller_has_left_costs_nothing() {
    let shares = Shares::new(2, First::IfFree);
    let held = shares.take_regardless(THREE, 2);
    drop(ask(&shares, ONE, 1));
    let granted_and_left = ask(&shares, ONE, 1);
    let mut other = ask(&shares, TWO, 1);
    drop(held);
    drop(granted_and_left);
    assert!(poll(&mut other).is_some());
    drop(other);
    let supply = shares.supply();
    assert_eq!((supply.taken, supply.callers.len()), (0, 0));
}

#[test]
fn a_share_that_shrinks_serves_the_next() {
    let shares = Shares::new(16, First::IfFree);
    let mut share = shares.try_take(ONE, 8).unwrap();
    let mut waiting = ask(&shares, ONE, 8);
    assert!(share.resize(0), "it may take as much again");
    assert!(poll(&mut waiting).is_some());
}
