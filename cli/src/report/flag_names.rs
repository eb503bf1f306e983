//! The flags that set the fields which an error of the daemon names.

use heeler_client::Refusal;

/// The flag or argument of each field that a person can give a bad value.
const FLAGS: [(&str, &str); 67] = [
    ("request_id", "--request-id"),
    ("spec.kind", "--kind"),
    ("spec.name", "--name"),
    ("spec.session_id", "--session"),
    ("spec.parent_id", "--parent"),
    ("spec.labels", "--label"),
    ("spec.argv.args", "ARGV"),
    ("spec.shell.script", "-c"),
    ("spec.working_directory", "--cwd"),
    ("spec.environment.variables", "--env"),
    ("spec.environment.remove", "--env-remove"),
    ("spec.environment.defaults", "--no-env-defaults"),
    ("spec.timeout", "--timeout"),
    ("spec.idle_timeout", "--idle-timeout"),
    ("spec.stop.grace", "--grace"),
    ("spec.stop.signal", "--stop-signal"),
    ("spec.stop.soft_grace", "--soft-grace"),
    ("spec.foreground.timeout", "--foreground-timeout"),
    ("spec.foreground.on_timeout", "--on-foreground-timeout"),
    ("spec.foreground.on_disconnect", "--on-disconnect"),
    ("spec.foreground.reattach_window", "--reattach-window"),
    ("own_session.session_id", "--session"),
    ("own_session.reattach_window", "--reattach-window"),
    ("spec.silence.stale_after", "--stale-after"),
    ("spec.silence.on_stale", "--stale-cancel"),
    ("spec.exclusive.key", "--exclusive"),
    ("spec.exclusive.mode", "--on-held"),
    ("spec.queue", "--queue"),
    ("spec.orphan_policy", "--orphans"),
    ("spec.rights", "--rights"),
    ("spec.ready.port", "--ready-port"),
    ("spec.ready.http_url", "--ready-url"),
    ("spec.ready.command", "--ready-command"),
    ("spec.ready.pattern", "--ready-match"),
    ("spec.restart", "--restart"),
    ("spec.restart.max_restarts", "--restart"),
    ("spec.restart.delay", "--restart-delay"),
    ("spec.ready.interval", "--ready-interval"),
    ("spec.ready.timeout", "--ready-timeout"),
    ("spec.input", "-i"),
    ("spec.input.notify_after", "--notify-input-after"),
    ("spec.terminal.columns", "--size"),
    ("spec.terminal.rows", "--size"),
    ("filter.port", "--port"),
    ("spec.output.max_bytes", "--max-output"),
    ("spec.output.patterns", "--match"),
    ("set_patterns", "--match"),
    ("remove_patterns", "--remove-match"),
    ("match.regex", "--match"),
    ("filter.include", "--grep"),
    ("filter.exclude", "--grep"),
    ("output_filter.include", "--grep"),
    ("output_filter.exclude", "--grep"),
    ("filter.lines_before", "--before-context"),
    ("filter.lines_after", "--after-context"),
    ("output_filter.lines_before", "--before-context"),
    ("output_filter.lines_after", "--after-context"),
    ("tail_lines", "--lines"),
    ("filter.session_id", "--session"),
    ("filter.labels", "--label"),
    ("filter.parent_id", "parent"),
    ("filter.directory", "dir"),
    ("graceful.grace", "--grace"),
    ("graceful.soft_grace", "--soft-grace"),
    ("reason", "--reason"),
    ("name", "NAME"),
    ("slots", "--slots"),
];

/// The text of a refusal, with the flag beside the field that it names.
pub(crate) fn message(refusal: &Refusal) -> String {
    let bad = refusal.fields.first().map(|bad| &bad.field);
    let Some(field) = bad.or_else(|| refusal.metadata.get("field")) else {
        return refusal.to_string();
    };
    let path = &field[..field.find('[').unwrap_or(field.len())];
    let known = FLAGS.iter().find(|(known, _)| *known == path);
    match (known, refusal.message.split_once(field.as_str())) {
        (Some((_, flag)), Some((before, after))) => format!("{before}{flag} ({field}){after}"),
        (Some(_) | None, Some(_) | None) => refusal.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::Code;

    use super::*;

    fn refusal(message: &str, field: &str) -> Refusal {
        Refusal {
            code: Code::InvalidArgument,
            reason: None,
            message: message.to_owned(),
            metadata: [("field".to_owned(), field.to_owned())].into(),
            fields: Vec::new(),
        }
    }

    /// U3
    #[test]
    fn every_flag_exists() {
        use crate::commands::Command;
        let cli = <Command as clap::Subcommand>::augment_subcommands(clap::Command::new("heeler"));
        let mut cli = cli;
        cli.build();
        let all = || cli.get_subcommands().flat_map(clap::Command::get_arguments);
        for (field, flag) in FLAGS {
            let long = flag.strip_prefix("--");
            let known = all().any(|arg| arg.get_long() == long);
            assert!(known || long.is_none(), "{field}: {flag}");
        }
    }

    /// U3, S2
    #[test]
    fn a_bad_field_is_named_as_the_flag_that_sets_it() {
        let named = message(&refusal("spec.queue is too long", "spec.queue"));
        assert_eq!(named, "--queue (spec.queue) is too long");
        let indexed = message(&refusal(
            "held by x, which differs in spec.argv.args[1]",
            "spec.argv.args[1]",
        ));
        assert_eq!(
            indexed,
            "held by x, which differs in ARGV (spec.argv.args[1])"
        );
        let other = message(&refusal("page_token is malformed", "page_token"));
        assert_eq!(other, "page_token is malformed");
    }
}
