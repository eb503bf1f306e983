//! The environment of a task, in and out. Its values are never shown.

use std::collections::BTreeMap;

use heeler_proto::v1;

use super::ARGUMENT;
use crate::{
    service::wire::{check, refusal::Refusal},
    supervisor::RESERVED_PREFIX,
    task::{Environment, EnvironmentDefaults},
};

/// The environment without values, and the values by name. `defaults` is used where the request names none.
pub(super) fn read(
    message: v1::TaskEnvironment,
    defaults: EnvironmentDefaults,
) -> Result<(Environment, BTreeMap<String, String>), Refusal> {
    if !message.variable_names.is_empty() {
        return Err(Refusal::field(
            "spec.environment.variable_names",
            "is output only: set spec.environment.variables",
        ));
    }
    for (name, value) in &message.variables {
        let field = check::entry("spec.environment.variables", name);
        variable(&field, name)?;
        let limit = ARGUMENT - name.len().min(ARGUMENT - 1) - 1;
        check::os_text(&field, value.clone(), limit)?;
    }
    for (at, name) in message.remove.iter().enumerate() {
        variable(&format!("spec.environment.remove[{at}]"), name)?;
    }
    let defaults = match check::enumerated("spec.environment.defaults", message.defaults)? {
        v1::EnvironmentDefaults::Unspecified => defaults,
        v1::EnvironmentDefaults::NonInteractive => EnvironmentDefaults::NonInteractive,
        v1::EnvironmentDefaults::None => EnvironmentDefaults::None,
    };
    let environment = Environment {
        remove: message.remove,
        defaults,
        variable_names: message.variables.keys().cloned().collect(),
    };
    Ok((environment, message.variables))
}

fn variable(field: &str, name: &str) -> Result<(), Refusal> {
    if name.is_empty() || name.contains(['=', '\0']) || name.len() > check::LONG_TEXT {
        return Err(Refusal::field(field, "is not a valid variable name"));
    }
    match name.starts_with(RESERVED_PREFIX) {
        true => Err(Refusal::field(
            field,
            "is reserved: variables that begin with HEELER_ are set by Heeler",
        )),
        false => Ok(()),
    }
}

pub(super) fn show(environment: &Environment) -> v1::TaskEnvironment {
    v1::TaskEnvironment {
        variables: BTreeMap::new(),
        remove: environment.remove.clone(),
        defaults: match environment.defaults {
            EnvironmentDefaults::NonInteractive => v1::EnvironmentDefaults::NonInteractive,
            EnvironmentDefaults::None => v1::EnvironmentDefaults::None,
        }
        .into(),
        variable_names: environment.variable_names.clone(),
    }
}
