//! Crash points: named places at which a test lets the server die, `crash::point("spawn.intent-recorded")`.
//!
//! They exist only in debug builds with the feature `crash-points`, which the tests enable; everywhere
//! else a point compiles to nothing. `HEELER_CRASH_AT` names the point: `NAME` or `NAME:NTH`, where `*`
//! is any point.
//!
//! The server dies as by `kill -9`: nothing is flushed, nothing is closed.

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

    const VARIABLE: &str = "HEELER_CRASH_AT";
    const ANY: &str = "*";

    /// The point to die at, and the number of passes left.
    struct Target {
        name: String,
        left: AtomicU64,
    }

    static TARGET: LazyLock<Option<Target>> =
        LazyLock::new(|| parse(&std::env::var(VARIABLE).ok()?));

    /// A place at which a test may let the server die.
    pub(crate) fn point(name: &'static str) {
        let Some(target) = &*TARGET else { return };
        if target.name != ANY && target.name != name {
            return;
        }
        if target.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            eprintln!("heeler: dies at {name}");
            process::die_at_once();
        }
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
