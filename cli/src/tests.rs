//! Tests of the definition of the command line as a whole.

use clap::CommandFactory;

use super::*;

/// The widest help.
const COLUMNS: usize = 80;

fn commands() -> Vec<clap::Command> {
    let mut cli = Cli::command();
    cli.build();
    let own = cli.clone();
    let all = cli.get_subcommands().filter(|one| one.get_name() != "help");
    all.cloned().chain([own]).collect()
}

#[test]
fn the_definition_of_the_arguments_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn the_help_of_every_command_has_an_example() {
    for command in commands().iter().filter(|one| one.get_name() != "heeler") {
        let help = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(help.contains("heeler "), "{}", command.get_name());
    }
}

/// U4
#[test]
fn every_help_fits_80_columns_and_is_wrapped_once() {
    let mut problems = Vec::new();
    for command in commands() {
        let name = command.get_name().to_owned();
        let mut command = command.term_width(COLUMNS);
        for help in [command.render_help(), command.render_long_help()] {
            let help = help.to_string();
            let lines: Vec<&str> = help.lines().collect();
            for pair in lines.windows(2) {
                let [line, next] = pair else { continue };
                if line.chars().count() > COLUMNS {
                    problems.push(format!("{name}: too wide: {line}"));
                }
                if ends_early(line, next) {
                    problems.push(format!("{name}: ends early: {line} | {next}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Returns whether the first word of the next line would have fitted on this one, in running text.
fn ends_early(line: &str, next: &str) -> bool {
    let indent = |text: &str| text.len() - text.trim_start().len();
    let is_text = |text: &str| text.trim_start().starts_with(|c: char| c.is_alphanumeric());
    let is_list = |text: &str| text.trim_start().contains("  ");
    let ends_block = line.ends_with(':') || line.trim_start().starts_with("heeler ");
    let first = next.split_whitespace().next().unwrap_or_default();
    let runs_on = indent(line) == indent(next) && is_text(line) && is_text(next);
    let is_example = next.trim_start().starts_with("heeler ") || next.contains("$(heeler");
    runs_on
        && !ends_block
        && !is_example
        && !is_list(line)
        && !is_list(next)
        && line.chars().count() + 1 + first.chars().count() <= COLUMNS
}

#[test]
fn a_line_that_was_wrapped_elsewhere_is_found() {
    let (early, orphan) = (
        "The exit code is the task's own if the signal",
        "killed it.",
    );
    assert!(ends_early(early, orphan));
    let full = "The exit code is the task's own, and 128+n if the signal n has ended the command";
    assert!(!ends_early(full, "itself"));
    assert!(!ends_early("  heeler ps", "  heeler ps -a"));
}

/// U4
#[test]
fn kill_and_follow_have_their_own_help() {
    let help = |name: &str| {
        let mut all = commands().into_iter();
        let mut command = all.find(|one| one.get_name() == name).unwrap();
        command.render_long_help().to_string()
    };
    let (kill, follow) = (help("kill"), help("follow"));
    assert!(kill.contains("heeler kill") && follow.contains("heeler follow"));
    assert!(
        !kill.contains("--grace") && !kill.contains("--force"),
        "{kill}"
    );
    assert!(!follow.contains("--follow"), "{follow}");
    assert!(help("cancel").contains("--grace") && help("logs").contains("--follow"));
}

/// U4
#[test]
fn every_command_has_a_manual_page() {
    for command in commands() {
        let name = command.get_name().to_owned();
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{name}: {page}");
        assert!(page.contains("heeler"), "{name}: {page}");
    }
}
