//! Crash points: named places at which a test lets the server die, `crash::point("spawn.intent-recorded")`.
//!
//! They exist only in debug builds with the feature `crash-points`, which the tests enable; everywhere
//! else a point compiles to nothing. `HEELER_CRASH_AT` names the point: `NAME` or `NAME:NTH`, where `*`
//! is any point.
//!
//! The server dies as by `kill -9`: nothing is flushed, nothing is closed. At a point that
//! `HEELER_PANIC_AT` names in the same way, only the thread of execution panics.

#[cfg(all(feature = "crash-points", debug_assertions))]
pub(crate) use armed::point;

/// A place at which a test may let the server die.
#[cfg(not(all(feature = "crash-points", debug_assertions)))]
#[inline(always)]
pub(crate) const fn point(_name: &'static str) {}

#[cfg(all(feature = "crash-points", debug_assertions))]
mod armed {
    use std::sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    };

    use crate::process;

    const DEATH: &str = "HEELER_CRASH_AT";
    const PANIC: &str = "HEELER_PANIC_AT";
    const ANY: &str = "*";

    /// The point to fail at, and the number of passes left.
    struct Target {
        name: String,
        left: AtomicU64,
    }

    static DEATH_TARGET: LazyLock<Option<Target>> =
        LazyLock::new(|| parse(&std::env::var(DEATH).ok()?));
    static PANIC_TARGET: LazyLock<Option<Target>> =
        LazyLock::new(|| parse(&std::env::var(PANIC).ok()?));

    /// A place at which a test may let the server die.
    #[allow(clippy::panic, reason = "a test asks for it")]
    pub(crate) fn point(name: &'static str) {
        if is_hit(&DEATH_TARGET, name) {
            eprintln!("heeler: dies at {name}");
            process::die_at_once();
        }
        if is_hit(&PANIC_TARGET, name) {
            panic!("at {name}, as the test asks");
        }
    }

    fn is_hit(target: &Option<Target>, name: &str) -> bool {
        let Some(target) = target else { return false };
        (target.name == ANY || target.name == name)
            && target.left.fetch_sub(1, Ordering::SeqCst) == 1
    }

    fn parse(text: &str) -> Option<Target> {
        let (name, nth) = match text.split_once(':') {
            Some((name, nth)) => (name, nth.parse().ok().filter(|nth| *nth > 0)?),
            None => (text, 1),
        };
        Some(Target {
            name: name.to_owned(),
            left: AtomicU64::new(nth),
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_target_is_a_name_with_an_optional_count() {
            let parsed = |text| parse(text).map(|t| (t.name, t.left.into_inner()));
            assert_eq!(parsed("a.b"), Some(("a.b".to_owned(), 1)));
            assert_eq!(parsed("*:12"), Some(("*".to_owned(), 12)));
            assert_eq!(parsed("a.b:0"), None);
            assert_eq!(parsed("a.b:x"), None);
        }
    }
}
