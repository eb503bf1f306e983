//! The `&` at the end of a script: whoever writes it wants what a task is anyway, so it can go.
//!
//! With it, the shell that is the task's leader would end at once, with an exit code that says
//! nothing of the command. Only the last `&` of the whole script is meant; what is put into the
//! background before it, or inside of a compound command, stays as it is and stays in the task.
//!
//! A grammar decides (tree-sitter's, of bash). It is more lenient than the shells are, so a script
//! has to pass a few checks of ours besides, and whatever is in doubt is left alone: then the
//! shell does with it what it would have done without us. Scripts come from outside: how long one
//! may be, and how long the grammar may take, is bounded here; its parser does not recurse.

mod doubt;
#[cfg(test)]
mod tests;

use std::{
    ops::ControlFlow,
    path::Path,
    time::{Duration, Instant},
};

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

/// The longest script that is looked at, in bytes. The grammar's time and memory grow with the
/// square of the length where a script is made for that; at this length they are 0.1 s and 20 MB.
const LONGEST: usize = 4096;

/// How long the grammar may take, for the machine on which that bound is not what it is here. Wall
/// time will do: a usual script is done before the first look at the clock.
const PATIENCE: Duration = Duration::from_millis(250);

/// The shells whose grammar, as to this, is the one that is used here.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

const BLANK: [char; 2] = [' ', '\t'];

/// The script without the `&` that it ends in, if it ends in one: the operator, not quoted and not
/// part of anything else. The blanks before it go with it; all else, a comment behind it included,
/// stays. `shell` is the program that will read the script, if one was chosen.
pub fn trailing(script: &str, shell: Option<&Path>) -> Option<String> {
    let worth_parsing = script.len() <= LONGEST
        && may_end_in_one(script)
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

/// Whether the last line that says something could end in the operator. Most scripts do not, and
/// cost no more than this.
fn may_end_in_one(script: &str) -> bool {
    script
        .split('\n')
        .rev()
        .map(|line| line.trim_start_matches(BLANK))
        .find(|line| !line.is_empty() && !line.starts_with('#'))
        .is_some_and(|line| {
            line.match_indices('&')
                .any(|(at, _)| says_nothing(&line[at + 1..]))
        })
}

/// Whether there is nothing but blanks and comments, given that a word could begin here.
fn says_nothing(text: &str) -> bool {
    text.split('\n')
        .map(|line| line.trim_start_matches(BLANK))
        .all(|line| line.is_empty() || line.starts_with('#'))
}

/// No choice means bash, or `sh` where there is none.
fn is_known(shell: Option<&Path>) -> bool {
    shell.is_none_or(|program| {
        program
            .file_name()
            .is_some_and(|name| SHELLS.iter().any(|known| name == *known))
    })
}

/// The tree of a script that is free of errors.
fn parse(script: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .ok()?;
    let began = Instant::now();
    let mut on_the_way = |state: &ParseState| {
        if state.has_error() || began.elapsed() > PATIENCE {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let tree = parser.parse_with_options(
        &mut |at, _| script.as_bytes().get(at..).unwrap_or_default(),
        None,
        Some(ParseOptions::new().progress_callback(&mut on_the_way)),
    )?;
    (!tree.root_node().has_error()).then_some(tree)
}

/// Where the operator is that ends the script's last command.
fn last_operator(script: &str, tree: &Tree) -> Option<usize> {
    let root = tree.root_node();
    let parts: Vec<Node> = root.children(&mut root.walk()).collect();
    let last = parts.iter().rposition(|part| part.kind() != "comment")?;
    let (operator, command) = (parts[last], parts.get(last.checked_sub(1)?)?);
    let between = script.get(command.end_byte()..operator.start_byte())?;
    let ends_it = operator.kind() == "&"
        && command.is_named()
        && command.kind() != "comment"
        && between.replace("\\\n", "").trim_matches(BLANK).is_empty()
        && says_nothing(script.get(operator.end_byte()..)?);
    ends_it.then_some(operator.start_byte())
}

fn without(script: &str, at: usize) -> String {
    let (before, after) = (&script[..at], &script[at + 1..]);
    let command = before.trim_end_matches(BLANK);
    // A backslash may make the blank behind it part of a word.
    let command = if command.ends_with('\\') {
        before
    } else {
        command
    };
    // A comment has to begin a word.
    let gap = if after.starts_with('#') { " " } else { "" };
    format!("{command}{gap}{after}")
}
