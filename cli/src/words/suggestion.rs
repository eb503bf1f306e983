//! The answer to a command that does not exist: the one that was probably meant.
//!
//! clap would suggest `cancel` for `clean` and `run` for `prune`. Here a command that ends or deletes
//! something is suggested for a single slip only, and only if no harmless command is as near.

use clap::CommandFactory;

use crate::Cli;

/// Commands that end or delete something, with their aliases.
const DESTRUCTIVE: [&str; 6] = ["cancel", "stop", "kill", "rm", "restart", "shutdown"];

/// The largest distance of a harmless suggestion.
const MOST_SLIPS: usize = 2;

/// Words of other tools, and what heeler has instead.
const WORDS: [(&[&str], &str); 9] = [
    (
        &[
            "prune", "clean", "gc", "purge", "cleanup", "remove", "delete", "del",
        ],
        "finished tasks are deleted by the limits of `heeler serve`; see `heeler rm --help` to delete some now",
    ),
    (
        &["exec", "start-task", "create", "submit", "queue-add"],
        "try `heeler run` or `heeler spawn`",
    ),
    (
        &["tail", "output", "cat"],
        "try `heeler logs`, or `heeler logs -f`",
    ),
    (
        &["top", "watch", "jobs"],
        "try `heeler ps`, or `heeler ps --watch`",
    ),
    (&["history"], "try `heeler events`, or `heeler ps -a`"),
    (&["fg", "attach-session", "a"], "try `heeler attach`"),
    (&["bg"], "try `heeler detach`"),
    (
        &["pause", "resume", "parallel", "group"],
        "try `heeler queue NAME --pause`, --resume or --slots N",
    ),
    (
        &["daemon", "pueued", "up"],
        "try `heeler start`, or `heeler serve`",
    ),
];

/// The message for an unknown command.
pub(crate) fn message(word: &str) -> String {
    let hint = known(word).or_else(|| nearest(word));
    let hint = hint.unwrap_or_else(|| "`heeler --help` lists the commands".to_owned());
    format!("no such command: {word}; {hint}")
}

fn known(word: &str) -> Option<String> {
    let found = WORDS.iter().find(|(words, _)| words.contains(&word));
    found.map(|(_, hint)| (*hint).to_owned())
}

fn nearest(word: &str) -> Option<String> {
    let heeler = Cli::command();
    let names: Vec<&str> = heeler
        .get_subcommands()
        .flat_map(|one| std::iter::once(one.get_name()).chain(one.get_all_aliases()))
        .collect();
    let (harmful, harmless): (Vec<&str>, Vec<&str>) = names
        .into_iter()
        .partition(|name| DESTRUCTIVE.contains(name));
    let closest = |names: &[&str]| {
        let measured = names
            .iter()
            .map(|name| (distance(word, name), (*name).to_owned()));
        measured.min()
    };
    let harmless = closest(&harmless).filter(|(slips, _)| *slips <= MOST_SLIPS);
    let harmful = closest(&harmful).filter(|(slips, _)| *slips <= 1);
    let chosen = match (harmless, harmful) {
        (Some((near, _)), Some((nearer, name))) if nearer < near => name,
        (Some((_, name)), _) | (None, Some((_, name))) => name,
        (None, None) => return None,
    };
    // A word that is mostly wrong is another word.
    let is_slip = distance(word, &chosen) * 2 <= word.chars().count();
    is_slip.then(|| format!("did you mean `heeler {chosen}`?"))
}

/// The number of slips between two words: a character too many, missing, wrong, or swapped with the next.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let wrong = usize::from(a[i - 1] != b[j - 1]);
                let mut least = (rows[i - 1][j] + 1)
                    .min(rows[i][j - 1] + 1)
                    .min(rows[i - 1][j - 1] + wrong);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(rows[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// U3
    #[test]
    fn a_slip_is_recognised() {
        for (word, meant) in [
            ("spwan", "spawn"),
            ("inspct", "inspect"),
            ("cancle", "cancel"),
            ("evnets", "events"),
            ("ru", "run"),
        ] {
            let text = message(word);
            assert!(text.contains(&format!("`heeler {meant}`?")), "{text}");
        }
        assert!(message("frobnicate").contains("--help"));
    }

    /// U3
    #[test]
    fn a_harmless_word_never_suggests_a_destructive_command() {
        for word in [
            "prune", "clean", "rn", "remove", "ls-all", "show", "pus", "rum", "stat", "lost",
        ] {
            let text = message(word);
            for command in DESTRUCTIVE {
                assert!(
                    !text.contains(&format!("`heeler {command}`")),
                    "{word}: {text}"
                );
            }
        }
    }

    #[test]
    fn a_swap_is_one_slip() {
        assert_eq!(distance("cancle", "cancel"), 1);
        assert_eq!(distance("", "rm"), 2);
        assert_eq!(distance("stop", "shop"), 1);
    }
}
