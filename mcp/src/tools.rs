//! The tools, a file each. This file has their common shape, and the one list of them.
//!
//! Every name begins with `heeler_`: some hosts show the tools of all servers in one list, and `run`, `list`
//! or `output` alone would stand beside the host's own tools of that name.

mod cancel;
mod detach;
mod ensure;
mod inspect;
mod list;
mod output;
mod run;
mod send;
mod spawn;
mod wait;

use rmcp::{
    model::{CallToolResult, ContentBlock, JsonObject, Tool as ToolInfo, ToolAnnotations},
    schemars::JsonSchema,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    connection::Call,
    input::{input_schema, longest, output_schema, parse},
    problem::Problem,
};

pub(crate) use run::{Finished, Run, RunArgs};

/// The most tasks in the answer of a tool that acts on several.
pub(crate) const MOST_ROWS: usize = 50;

/// A tool.
pub(crate) trait Tool {
    const NAME: &'static str;
    const TITLE: &'static str;
    /// When to use it and when not, for the model.
    const DESCRIPTION: &'static str;
    const EFFECT: Effect;
    type Input: DeserializeOwned + JsonSchema + Send;
    type Output: Answer + JsonSchema;

    fn call(
        input: Self::Input,
        call: &Call<'_>,
    ) -> impl Future<Output = Result<Self::Output, Problem>> + Send;
}

/// The result of a tool: structured data, and the same as text.
pub(crate) trait Answer: Serialize {
    /// The id of the task first.
    fn text(&self) -> String;

    /// True if the work itself has failed, such as a command that exits with 1.
    fn is_failure(&self) -> bool {
        false
    }
}

/// The effect of a tool, from which clients decide whether to ask their user.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Effect {
    /// Reads only.
    Reads,
    /// Changes a task without loss; a repeated call changes nothing.
    Settles,
    /// Stops tasks; a repeated call changes nothing.
    Stops,
    /// Runs what the caller says.
    Runs,
    /// Runs what the caller says, once.
    RunsOnce,
}

impl Effect {
    fn annotations(self) -> ToolAnnotations {
        let (read_only, destructive, idempotent, open_world) = match self {
            Self::Reads => (true, false, true, false),
            Self::Settles => (false, false, true, false),
            Self::Stops => (false, true, true, false),
            Self::Runs => (false, true, false, true),
            Self::RunsOnce => (false, true, true, true),
        };
        ToolAnnotations::new()
            .read_only(read_only)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(open_world)
    }
}

/// Makes the list of tools, and the call of one by its name, from the types.
macro_rules! tools {
    ($($tool:ty),* $(,)?) => {
        /// Every tool, as clients see it.
        pub(crate) fn all() -> Vec<ToolInfo> {
            vec![$(info::<$tool>()),*]
        }

        pub(crate) fn names() -> Vec<&'static str> {
            vec![$(<$tool>::NAME),*]
        }

        /// Calls a tool.
        pub(crate) async fn call(
            name: &str,
            arguments: JsonObject,
            call: &Call<'_>,
        ) -> Result<CallToolResult, Problem> {
            match name {
                $(<$tool>::NAME => answer::<$tool>(arguments, call).await,)*
                unknown => Err(Problem::NoTool(unknown.chars().take(60).collect())),
            }
        }
    };
}

tools![
    spawn::Spawn,
    run::Run,
    ensure::Ensure,
    list::List,
    inspect::Inspect,
    output::Output,
    wait::Wait,
    send::Send,
    detach::Detach,
    cancel::Cancel,
];

fn info<T: Tool>() -> ToolInfo {
    ToolInfo::new(T::NAME, T::DESCRIPTION, input_schema::<T::Input>())
        .with_title(T::TITLE)
        .with_raw_output_schema(output_schema::<T::Output>().into())
        .with_annotations(T::EFFECT.annotations())
}

async fn answer<T: Tool>(
    arguments: JsonObject,
    call: &Call<'_>,
) -> Result<CallToolResult, Problem> {
    let longest = longest(&arguments);
    let input = parse::<T::Input>(arguments)?;
    let answer = T::call(input, call).await;
    answer
        .map(|answer| result(&answer))
        .map_err(|problem| problem.with_longest(longest))
}

/// The result of a call.
pub(crate) fn result(answer: &impl Answer) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text())]);
    result.structured_content = serde_json::to_value(answer).ok();
    result.is_error = Some(answer.is_failure());
    result
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// M1
    #[test]
    fn every_tool_has_a_description_plain_schemas_and_annotations() {
        let all = all();
        assert_eq!(all.len(), names().len());
        for tool in all {
            let description = tool.description.clone().unwrap_or_default();
            assert!(description.contains("Use"), "{}: {description}", tool.name);
            assert!(
                description.len() < 900,
                "{}: {}",
                tool.name,
                description.len()
            );
            let annotations = tool.annotations.clone().unwrap();
            assert!(annotations.read_only_hint.is_some() && annotations.destructive_hint.is_some());
            let output = tool.output_schema.clone().unwrap();
            for schema in [&tool.input_schema, &output] {
                assert_eq!(
                    schema.get("type"),
                    Some(&Value::from("object")),
                    "{}",
                    tool.name
                );
                let text = Value::Object((**schema).clone()).to_string();
                for unwanted in ["$ref", "$defs", "\"null\"", "anyOf", "format"] {
                    assert!(!text.contains(unwanted), "{} {unwanted}: {text}", tool.name);
                }
            }
            let inputs = tool
                .input_schema
                .get("properties")
                .and_then(Value::as_object)
                .unwrap();
            for (name, rule) in inputs {
                assert!(
                    rule.get("description").is_some(),
                    "{}.{name} {rule}",
                    tool.name
                );
                assert!(rule.get("type").is_some(), "{}.{name} {rule}", tool.name);
            }
        }
    }
}
