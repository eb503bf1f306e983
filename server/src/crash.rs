//! Named points at which a test lets the server die: `crash::point("spawn.recorded")`.
//!
//! They are there only where the feature `crash-points` is on and the build is a debug one: the tests
//! ask for the feature, nothing else does, and a release has none whoever asks. Elsewhere a point is
//! nothing at all. `HEELER_CRASH_AT` says where to die: `NAME` or `NAME:NTH`, where `*` is any point.
//!
//! The death is that of `kill -9`: nothing is flushed, nothing is closed, nobody is told but the log.

#[cfg(all(feature = "crash-points", debug_assertions))]
pub(crate) use armed::point;

/// Here a test may let the server die.
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

    /// Where to die, and how often that must still be passed.
    struct Target {
        name: String,
        left: AtomicU64,
    }

    static TARGET: LazyLock<Option<Target>> =
        LazyLock::new(|| parse(&std::env::var(VARIABLE).ok()?));

    /// Here a test may let the server die.
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
        fn a_point_is_named_alone_or_with_how_often_it_is_passed() {
            let parsed = |text| parse(text).map(|t| (t.name, t.left.into_inner()));
            assert_eq!(parsed("a.b"), Some(("a.b".to_owned(), 1)));
            assert_eq!(parsed("*:12"), Some(("*".to_owned(), 12)));
            assert_eq!(parsed("a.b:0"), None);
            assert_eq!(parsed("a.b:x"), None);
        }
    }
}
