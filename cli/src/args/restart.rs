//! The flags that say whether a task is started again after a failure.

use std::time::Duration;

use clap::Args;
use heeler_client::Spawn;

use super::value::duration;

#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    /// Start the task again when it fails: on-failure, or on-failure:MAX for at most MAX times in a row, 0 for no
    /// limit [default of MAX: 5]
    #[arg(long, value_name = "RULE", value_parser = parse)]
    restart: Option<RestartRule>,

    /// Time before the first restart; it doubles with every failure in a row, up to 30s [default: 1s]
    #[arg(long, value_name = "T", value_parser = duration::parse, requires = "restart")]
    restart_delay: Option<Duration>,
}

/// The rule of `--restart`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RestartRule {
    max: Option<u32>,
}

fn parse(text: &str) -> Result<RestartRule, String> {
    let refused = || format!("'{text}' is not on-failure or on-failure:MAX");
    let max = match text.split_once(':') {
        None if text == "on-failure" => None,
        Some(("on-failure", max)) => Some(max.parse().map_err(|_| refused())?),
        Some(_) | None => return Err(refused()),
    };
    Ok(RestartRule { max })
}

impl RestartArgs {
    /// Adds the rule to a task, if there is one.
    pub(super) fn add_to(&self, spawn: Spawn) -> Spawn {
        let Some(rule) = self.restart else {
            return spawn;
        };
        let spawn = spawn.restart_on_failure();
        let spawn = rule.max.into_iter().fold(spawn, Spawn::max_restarts);
        let delay = self.restart_delay.into_iter();
        delay.fold(spawn, Spawn::restart_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_on_failure_with_or_without_a_number() {
        assert_eq!(parse("on-failure"), Ok(RestartRule { max: None }));
        assert_eq!(parse("on-failure:0"), Ok(RestartRule { max: Some(0) }));
        assert_eq!(parse("on-failure:7"), Ok(RestartRule { max: Some(7) }));
        for bad in [
            "",
            "always",
            "on-failure:",
            "on-failure:x",
            "on-failure:-1",
            "no:3",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
