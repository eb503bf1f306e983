//! `KEY=VALUE` arguments: labels, environment variables and patterns.

use std::env;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyValue {
    pub(crate) key: String,
    pub(crate) value: String,
}

/// Parses `KEY=VALUE`. The value may be empty and may contain `=`.
pub(crate) fn parse(text: &str) -> Result<KeyValue, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok(KeyValue {
            key: key.to_owned(),
            value: value.to_owned(),
        }),
        Some(_) | None => Err("expected KEY=VALUE".to_owned()),
    }
}

/// Parses `NAME=RE`: a pattern to look for in the output.
pub(crate) fn parse_pattern(text: &str) -> Result<KeyValue, String> {
    parse(text).map_err(|_| "expected NAME=RE, e.g. ready='Listening on'".to_owned())
}

/// A variable for tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Variable {
    Given(KeyValue),
    /// The value is that in the environment of the command.
    PassedOn(String),
}

impl Variable {
    /// The variable with its value.
    pub(crate) fn resolved(self) -> Result<KeyValue, String> {
        match self {
            Self::Given(variable) => Ok(variable),
            Self::PassedOn(key) => parse_env(&key).map_err(|error| format!("--env {key}: {error}")),
        }
    }

    /// The argument that it was parsed from.
    pub(crate) fn to_argument(&self) -> String {
        match self {
            Self::Given(KeyValue { key, value }) => format!("{key}={value}"),
            Self::PassedOn(key) => key.clone(),
        }
    }
}

/// Parses `KEY=VALUE`, or `KEY`, without looking for its value.
pub(crate) fn parse_variable(text: &str) -> Result<Variable, String> {
    match text.contains('=') {
        true => parse(text).map(Variable::Given),
        false if text.is_empty() => Err("expected KEY or KEY=VALUE".to_owned()),
        false => Ok(Variable::PassedOn(text.to_owned())),
    }
}

/// Parses `KEY=VALUE`, or `KEY` for the value in the caller's environment.
pub(crate) fn parse_env(text: &str) -> Result<KeyValue, String> {
    if text.contains('=') {
        return parse(text);
    }
    match env::var(text) {
        Ok(value) => Ok(KeyValue {
            key: text.to_owned(),
            value,
        }),
        Err(env::VarError::NotPresent) => {
            Err("this variable is not set in your environment; use KEY=VALUE".to_owned())
        }
        Err(env::VarError::NotUnicode(_)) => {
            Err("the value of this variable is not valid UTF-8".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_equals_sign_separates_key_and_value() {
        let found = parse("a=b=c").unwrap();
        assert_eq!((found.key.as_str(), found.value.as_str()), ("a", "b=c"));
        assert_eq!(parse("a=").unwrap().value, "");
        assert!(parse("a").is_err() && parse("=b").is_err());
    }

    #[test]
    fn a_variable_without_a_value_has_the_callers_value() {
        let path = env::var("PATH").unwrap();
        assert_eq!(parse_env("PATH").unwrap().value, path);
        assert!(parse_env("HEELER_TEST_NEVER_SET").is_err());
    }
}
