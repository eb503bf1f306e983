//! A regular expression for a line. The engine takes time in proportion to the line and to the compiled
//! expression, and both are bounded.

use regex::bytes::{Regex, RegexBuilder};

use super::plain::without_line_end;

/// Maximum length of an expression.
const LONGEST: usize = 4096;
/// Maximum size of a compiled expression, and of the states that the engine keeps while it searches.
const LARGEST: usize = 1 << 20;
/// Maximum depth of groups within groups.
const DEEPEST: u32 = 100;

#[derive(Debug, Clone)]
pub(crate) struct LinePattern(Regex);

/// The reason why an expression is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    #[error("is longer than {LONGEST} bytes")]
    TooLong,
    #[error(
        "is too large when it is compiled: use shorter counted repetitions, or (?-u) for classes of ASCII \
         characters"
    )]
    TooLarge,
    #[error("is not a regular expression: {0}")]
    Syntax(String),
}

impl LinePattern {
    pub(crate) fn compile(expression: &str) -> Result<Self, PatternError> {
        if expression.len() > LONGEST {
            return Err(PatternError::TooLong);
        }
        let compiled = RegexBuilder::new(expression)
            .size_limit(LARGEST)
            .dfa_size_limit(LARGEST)
            .nest_limit(DEEPEST)
            .build();
        compiled.map(Self).map_err(|error| {
            if matches!(error, regex::Error::CompiledTooBig(_)) {
                return PatternError::TooLarge;
            }
            PatternError::Syntax(last_line(&error))
        })
    }

    /// Reports whether a line matches, without its line end.
    pub(crate) fn matches(&self, line: &[u8]) -> bool {
        self.0.is_match(without_line_end(line))
    }
}

/// The engine shows the expression with marks below it, and says what is wrong last.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// O12
    #[test]
    fn a_line_is_matched_without_its_line_end() {
        let pattern = LinePattern::compile("^ready$").unwrap();
        for line in ["ready", "ready\n", "ready\r\n"] {
            assert!(pattern.matches(line.as_bytes()), "{line:?}");
        }
        assert!(!pattern.matches(b"not ready\n"));
        let bytes = LinePattern::compile(r"(?-u)\xFF").unwrap();
        assert!(bytes.matches(b"a\xFFb\n"));
    }

    /// O12
    #[test]
    fn a_bad_or_oversized_expression_is_refused_with_the_reason() {
        let refused = |expression: &str| LinePattern::compile(expression).unwrap_err().to_string();
        assert_eq!(refused("(a"), "is not a regular expression: unclosed group");
        assert!(refused(r"(\w)\1").contains("backreferences are not supported"));
        assert!(refused(r"\w{1000}").starts_with("is too large"));
        assert!(refused("((((a{100}){100}){100}){100})").starts_with("is too large"));
        assert!(refused(&"(".repeat(3000)).starts_with("is not a regular expression"));
        assert_eq!(refused(&"a".repeat(4097)), "is longer than 4096 bytes");
    }
}
