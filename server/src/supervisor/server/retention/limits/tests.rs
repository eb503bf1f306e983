//! The choice, for generated candidates.

use proptest::prelude::*;

use super::*;
use crate::task::{IdKey, Kind, Seq};

const NOW: Timestamp = Timestamp(1_000_000_000_000);

/// Tasks that ended this many seconds before now, at consecutive revisions.
fn candidates(mut ages: Vec<u64>) -> Vec<Candidate> {
    ages.sort_unstable_by(|a, b| b.cmp(a));
    let candidate = |(age, end): (u64, u64)| Candidate {
        id: IdKey(7).task_id(Kind::Shell, Seq(end)),
        end: Revision(end),
        ended: Timestamp(NOW.0 - age * 1_000_000),
        stored_bytes: 0,
    };
    ages.into_iter().zip(1..).map(candidate).collect()
}

fn ages() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0..1200u64, 0..40)
}

fn ids(candidates: &[Candidate]) -> Vec<TaskId> {
    candidates
        .iter()
        .map(|candidate| candidate.id.clone())
        .collect()
}

proptest! {
    /// F12: exactly the tasks that ended more than ten minutes ago, or before the latest ones.
    #[test]
    fn foreground_tasks_expire_by_age_and_by_number(ages in ages(), kept in 0..40usize) {
        let candidates = candidates(ages);
        let excess = candidates.len().saturating_sub(kept);
        let beyond = excess.checked_sub(1).map(|last| candidates[last].end);
        let expired = expired_foreground(&candidates, beyond, NOW);
        let old = candidates
            .iter()
            .filter(|candidate| candidate.ended.0 + 600_000_000 < NOW.0)
            .count();
        prop_assert_eq!(expired, ids(&candidates[..excess.max(old)]));
    }

    /// F12: the oldest tasks with bytes in memory, as few as make up the shortage.
    #[test]
    fn as_few_tasks_as_necessary_make_room(
        bytes in prop::collection::vec(0..5u64, 0..40),
        shortage in 0..60u64,
    ) {
        let candidates = candidates(vec![0; bytes.len()]);
        let size = |id: &TaskId| {
            let index = candidates.iter().position(|candidate| candidate.id == *id);
            bytes[index.expect("a candidate")]
        };
        let chosen = covering(shortage, &candidates, size);
        let in_memory: Vec<TaskId> = ids(&candidates)
            .into_iter()
            .filter(|id| size(id) > 0)
            .collect();
        prop_assert_eq!(&chosen[..], &in_memory[..chosen.len()]);
        let freed = |chosen: &[TaskId]| chosen.iter().map(size).sum::<u64>();
        prop_assert!(freed(&chosen) >= shortage || chosen.len() == in_memory.len());
        if let Some((_, others)) = chosen.split_last() {
            prop_assert!(freed(others) < shortage);
        }
    }
}
