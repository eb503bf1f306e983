//! The options that set the fields which an error of the daemon names.

/// The fields whose option has another name. Any other option has the name of its field.
const OWN: [(&str, &str); 53] = [
    ("spec.command", "shell or argv"),
    ("spec.shell.script", "shell"),
    ("spec.shell.program", "shell_program"),
    ("spec.argv.args", "argv"),
    ("spec.session_id", "session"),
    ("spec.parent_id", "parent"),
    ("spec.labels", "label"),
    ("spec.environment.variables", "env"),
    ("spec.environment.remove", "env_remove"),
    ("spec.environment.defaults", "env_defaults"),
    ("spec.stop.grace", "grace"),
    ("spec.stop.signal", "stop_signal"),
    ("spec.stop.soft_grace", "soft_grace"),
    ("spec.foreground.timeout", "foreground_timeout"),
    ("spec.foreground.on_timeout", "on_foreground_timeout"),
    ("spec.foreground.on_disconnect", "on_disconnect"),
    ("spec.foreground.reattach_window", "reattach_window"),
    ("spec.silence.stale_after", "stale_after"),
    ("spec.silence.on_stale", "on_stale"),
    ("spec.exclusive.key", "exclusive"),
    ("spec.exclusive.mode", "exclusive"),
    ("spec.output.max_bytes", "max_output"),
    ("spec.output.head_bytes", "output_head"),
    ("spec.output.on_limit", "on_output_limit"),
    ("spec.output.patterns", "pattern"),
    ("spec.input.notify_after", "notify_input_after"),
    ("spec.terminal.columns", "terminal"),
    ("spec.terminal.rows", "terminal"),
    ("spec.terminal.term", "terminal_type"),
    ("spec.ready.port", "ready_when_listening"),
    ("spec.ready.http_url", "ready_when_answered"),
    ("spec.ready.command.args", "ready_when_succeeds"),
    ("spec.ready.pattern", "ready_when_matched"),
    ("spec.restart.delay", "restart_delay"),
    ("spec.restart.max_delay", "max_restart_delay"),
    ("spec.restart.max_restarts", "max_restarts"),
    ("spec.restart.reset_after", "restart_reset_after"),
    ("spec.ready.interval", "ready_interval"),
    ("spec.ready.timeout", "ready_timeout"),
    ("spec.ready.on_timeout", "on_ready_timeout"),
    ("filter.task_ids", "tasks"),
    ("filter.session_id", "session"),
    ("filter.kinds", "kind"),
    ("filter.states", "state"),
    ("filter.labels", "label"),
    ("filter.parent_id", "parent"),
    ("own_session.session_id", "own_session"),
    ("own_session.reattach_window", "own_session"),
    ("graceful.grace", "grace"),
    ("graceful.signal", "signal"),
    ("after_revision", "after"),
    ("epoch", "after_bookmark"),
    ("types", "event_type"),
];

/// The option of a field: `grace` for `spec.stop.grace`. An index or a key at the end stays.
pub(crate) fn option_of(field: &str) -> String {
    let (path, index) = field.split_at(field.find('[').unwrap_or(field.len()));
    let own = OWN.iter().find(|(known, _)| *known == path);
    let option = own.map_or_else(|| without_group(path), |(_, option)| option);
    format!("{option}{index}")
}

/// The options of a spec or a filter are those of its builder.
fn without_group(path: &str) -> &str {
    let stripped = ["spec.", "filter."]
        .iter()
        .find_map(|group| path.strip_prefix(group));
    stripped.unwrap_or(path)
}

/// A text of the daemon, with the option beside the field that it begins with.
pub(crate) fn beside(field: &str, text: &str) -> String {
    let option = option_of(field);
    match text.strip_prefix(field) {
        Some(rest) if option != field => format!("{option} ({field}){rest}"),
        Some(_) | None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use prost_types::{
        DescriptorProto, FileDescriptorSet,
        field_descriptor_proto::{Label, Type},
    };

    use super::*;

    const SPAWN: &str = concat!(
        include_str!("request/spawn.rs"),
        include_str!("request/spawn/input.rs"),
        include_str!("request/spawn/ready.rs"),
        include_str!("request/spawn/restart.rs"),
    );
    const BUILDERS: [(&str, &str, &str); 2] = [
        ("TaskSpec", "spec", SPAWN),
        ("TaskFilter", "filter", include_str!("request/filter.rs")),
    ];

    /// The paths of a message's fields, those of its groups included.
    fn paths(all: &[DescriptorProto], name: &str, prefix: &str) -> Vec<String> {
        let is_wanted = |message: &&DescriptorProto| message.name() == name;
        let Some(message) = all.iter().find(is_wanted) else {
            return vec![prefix.to_owned()];
        };
        let below = message.field.iter().flat_map(|field| {
            let path = format!("{prefix}.{}", field.name());
            let (_, group) = field.type_name().rsplit_once('.').unwrap_or_default();
            match field.r#type() == Type::Message && field.label() != Label::Repeated {
                true => paths(all, group, &path),
                false => vec![path],
            }
        });
        below.collect()
    }

    /// U5, S2: fails for a new field of the contract that no builder sets.
    #[test]
    fn every_field_of_a_spec_and_of_a_filter_has_an_option() {
        let set = FileDescriptorSet::decode(heeler_proto::FILE_DESCRIPTOR_SET).unwrap();
        let own = set
            .file
            .into_iter()
            .filter(|file| file.package() == "heeler.v1");
        let all: Vec<DescriptorProto> = own.flat_map(|file| file.message_type).collect();
        for (message, prefix, source) in BUILDERS {
            let paths = paths(&all, message, prefix);
            assert!(paths.len() > 10, "{paths:?}");
            // Output only: refused in a request.
            for path in paths
                .iter()
                .filter(|path| !path.ends_with("variable_names"))
            {
                let option = option_of(path);
                let method = format!("pub fn {option}");
                assert!(source.contains(&method), "{path} has no option {option}");
            }
        }
    }

    #[test]
    fn an_option_keeps_the_index_or_the_key() {
        assert_eq!(option_of("spec.argv.args[0]"), "argv[0]");
        assert_eq!(option_of("spec.labels[\"a.b\"]"), "label[\"a.b\"]");
        assert_eq!(option_of("spec.timeout"), "timeout");
        assert_eq!(option_of("page_token"), "page_token");
        let text = beside("spec.stop.grace", "spec.stop.grace is negative");
        assert_eq!(text, "grace (spec.stop.grace) is negative");
        assert_eq!(beside("slots", "slots is zero"), "slots is zero");
    }
}
