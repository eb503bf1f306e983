//! Removal of the `&` at the end of a script, which asks for what a task is anyway.
//!
//! With it, the shell that is the task's leader would exit at once, with an exit code that says nothing
//! about the command. Only the last `&` of the whole script is removed. Commands that are put into the
//! background before it, or inside a compound command, are left as they are and stay in the task.
//!
//! A grammar decides (tree-sitter's grammar of bash). It is more lenient than the shells, so a script
//! must also pass the checks in `doubt`, and a script in doubt is left alone. Scripts are untrusted
//! input: their length and the parsing time are bounded, and the parser does not recurse.

mod doubt;
#[cfg(test)]
mod tests;

use std::{
    ops::ControlFlow,
    path::Path,
    time::{Duration, Instant},
};

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

/// Maximum length of a script that is parsed, in bytes. For a hostile script, time and memory grow with
/// the square of the length; at this length they are 0.1 s and 20 MB.
const LONGEST: usize = 4096;

/// Maximum parsing time, for machines that are slower. Wall-clock time is good enough: an ordinary
/// script is parsed before the first check.
const TIME_LIMIT: Duration = Duration::from_millis(250);

/// The shells that treat a trailing `&` as the grammar does.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

const BLANK: [char; 2] = [' ', '\t'];

/// Returns the script without its trailing `&`, if it has one: the operator, not quoted and not part of
/// anything else. The blanks before it are removed too; everything else, including a comment after it,
/// stays. `shell` is the program that will run the script, if one was chosen.
pub(crate) fn trailing(script: &str, shell: Option<&Path>) -> Option<String> {
    let worth_parsing = script.len() <= LONGEST
        && may_end_in_operator(script)
        && is_known(shell)
        && !doubt::shells_disagree(script);
    if !worth_parsing {
        return None;
    }
    let tree = parse(script)?;
    if doubt::is_misread(script, &tree) {
        return None;
    }
    let at = last_operator(script, &tree)?;
    Some(without(script, at))
}

/// True if the last line with content could end in the operator. Most scripts fail this cheap check.
fn may_end_in_operator(script: &str) -> bool {
    script
        .split('\n')
        .rev()
        .map(|line| line.trim_start_matches(BLANK))
        .find(|line| !line.is_empty() && !line.starts_with('#'))
        .is_some_and(|line| {
            line.match_indices('&')
                .any(|(at, _)| is_blank_or_comment(&line[at + 1..]))
        })
}

/// True if there are only blanks and comments, given that a word could begin here.
fn is_blank_or_comment(text: &str) -> bool {
    text.split('\n')
        .map(|line| line.trim_start_matches(BLANK))
        .all(|line| line.is_empty() || line.starts_with('#'))
}

/// No choice means bash, or `sh` if there is no bash.
fn is_known(shell: Option<&Path>) -> bool {
    shell.is_none_or(|program| {
        program
            .file_name()
            .is_some_and(|name| SHELLS.iter().any(|known| name == *known))
    })
}

/// Returns the syntax tree of a script without errors.
fn parse(script: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .ok()?;
    let began = Instant::now();
    let mut progress = |state: &ParseState| {
        if state.has_error() || began.elapsed() > TIME_LIMIT {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let tree = parser.parse_with_options(
        &mut |at, _| script.as_bytes().get(at..).unwrap_or_default(),
        None,
        Some(ParseOptions::new().progress_callback(&mut progress)),
    )?;
    (!tree.root_node().has_error()).then_some(tree)
}

/// The position of the operator that ends the script's last command.
fn last_operator(script: &str, tree: &Tree) -> Option<usize> {
    let root = tree.root_node();
    let parts: Vec<Node> = root.children(&mut root.walk()).collect();
    let last = parts.iter().rposition(|part| part.kind() != "comment")?;
    let (operator, command) = (parts[last], parts.get(last.checked_sub(1)?)?);
    let between = script.get(command.end_byte()..operator.start_byte())?;
    // The operator of a continued line may span the end of the line before it.
    let ends_it = operator.kind() == "&"
        && script.get(operator.byte_range())? == "&"
        && command.is_named()
        && command.kind() != "comment"
        && between.replace("\\\n", "").trim_matches(BLANK).is_empty()
        && is_blank_or_comment(script.get(operator.end_byte()..)?);
    ends_it.then_some(operator.start_byte())
}

fn without(script: &str, at: usize) -> String {
    let (before, after) = (&script[..at], &script[at + 1..]);
    let command = before.trim_end_matches(BLANK);
    // A backslash may make the blank after it part of a word.
    let command = if command.ends_with('\\') {
        before
    } else {
        command
    };
    // A comment must begin a word.
    let gap = if after.starts_with('#') { " " } else { "" };
    format!("{command}{gap}{after}")
}
