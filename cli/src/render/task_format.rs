//! The template of `ps --format`: text with fields in braces, such as `{id} {state}`.

use heeler_client::v1::BackgroundTask;

use super::{outcome, progress, spec, status, text, units};

/// The fields, as the help names them.
const FIELDS: &str = "id, uid, state, exit, age, note, session, name, intent, command, pid, queue, parent, labels, dir, revision";

#[derive(Debug, Clone)]
pub(crate) struct TaskFormat {
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
enum Part {
    Text(String),
    Field(fn(&BackgroundTask) -> String),
}

/// Parses a template. `\t` and `\n` stand for a tab and a new line; `{{.Name}}` of docker is `{name}`.
pub(crate) fn parse(template: &str) -> Result<TaskFormat, String> {
    let template = template.replace("{{.", "{").replace("}}", "}");
    let template = template.replace("\\t", "\t").replace("\\n", "\n");
    let mut parts = Vec::new();
    let mut rest = template.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| "a { without a }".to_owned())?;
        parts.push(Part::Text(before.to_owned()));
        parts.push(field(&name.to_ascii_lowercase())?);
        rest = after;
    }
    parts.push(Part::Text(rest.to_owned()));
    match parts.len() {
        1 => Err(format!(
            "expected fields in braces, such as '{{id}} {{state}}'; the fields are {FIELDS}"
        )),
        _ => Ok(TaskFormat { parts }),
    }
}

fn field(name: &str) -> Result<Part, String> {
    let value: fn(&BackgroundTask) -> String = match name {
        "id" => |task| task.id.clone(),
        "uid" => |task| task.uid.clone(),
        "state" | "status" => |task| status::state(task).to_owned(),
        "exit" => outcome::word,
        "age" => |task| units::age(task.create_time),
        "note" => status::note,
        "session" => |task| spec::session(task).to_owned(),
        "name" | "names" => |task| spec::name(task).to_owned(),
        "intent" => |task| progress::intent(task).to_owned(),
        "command" => spec::command,
        "pid" => |task| {
            task.leader
                .map_or_else(String::new, |one| one.pid.to_string())
        },
        "queue" => |task| spec::queue(task).to_owned(),
        "parent" => |task| spec::parent(task).to_owned(),
        "labels" => spec::labels,
        "dir" => |task| spec::working_directory(task).to_owned(),
        "revision" => |task| task.revision.to_string(),
        _ => return Err(format!("no such field: {name}; the fields are {FIELDS}")),
    };
    Ok(Part::Field(value))
}

impl TaskFormat {
    /// The text of a task, with hostile text escaped.
    pub(crate) fn text(&self, task: &BackgroundTask) -> String {
        let shown = self.parts.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Field(value) => text::visible(&value(task)).into_owned(),
        });
        shown.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_replaced_and_other_text_is_kept() {
        let task = BackgroundTask {
            id: "shell-a".to_owned(),
            revision: 7,
            ..BackgroundTask::default()
        };
        let shown = |template: &str| parse(template).unwrap().text(&task);
        assert_eq!(shown("{id}"), "shell-a");
        assert_eq!(shown("<{id}>\\t{revision}!"), "<shell-a>\t7!");
        assert_eq!(shown("{{.ID}} {{.Names}}"), "shell-a ");
    }

    #[test]
    fn an_unknown_field_names_the_known_ones() {
        for template in ["{nope}", "{id", "plain", ""] {
            let error = parse(template).unwrap_err();
            assert!(!error.is_empty(), "{template}");
        }
        assert!(parse("{nope}").unwrap_err().contains("session"));
    }
}
