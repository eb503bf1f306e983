//! The specification of a hosted task, which has no process.

use std::time::Duration;

use heeler_proto::v1;

use super::{check, read};
use crate::{
    service::wire::refusal::Refusal,
    task::{Command, Kind, SpawnRequest},
};

const DEFAULT_LEASE: Duration = Duration::from_secs(30);
const SHORTEST_LEASE: Duration = Duration::from_secs(1);
const LONGEST_LEASE: Duration = Duration::from_secs(3600);

/// Reads the registration of a hosted task.
pub(crate) fn register(register: v1::WorkRegister) -> Result<SpawnRequest, Refusal> {
    let v1::WorkRegister {
        request_id,
        spec,
        lease,
    } = register;
    let spec = spec.ok_or_else(|| Refusal::field("spec", "is required"))?;
    match check::enumerated("spec.kind", spec.kind)? {
        v1::TaskKind::Unspecified | v1::TaskKind::Hosted => {}
        v1::TaskKind::Shell | v1::TaskKind::Agent => {
            let problem = "is not HOSTED: Spawn starts such a task";
            return Err(Refusal::field("spec.kind", problem));
        }
    }
    check_no_process(&spec)?;
    let lease = lease_of(lease)?;
    read(request_id, spec, Kind::Hosted, Command::Hosted { lease })
}

/// Refuses the options of a task with processes or output.
fn check_no_process(spec: &v1::TaskSpec) -> Result<(), Refusal> {
    let signal = spec.stop.as_ref().map_or("", |stop| stop.signal.as_str());
    let refused = [
        ("spec.command", spec.command.is_some()),
        ("spec.environment", spec.environment.is_some()),
        ("spec.foreground", spec.foreground.is_some()),
        ("spec.orphan_policy", spec.orphan_policy != 0),
        ("spec.rights", spec.rights != 0),
        ("spec.output", spec.output.is_some()),
        ("spec.input", spec.input.is_some()),
        ("spec.terminal", spec.terminal.is_some()),
        ("spec.ready", spec.ready.is_some()),
        ("spec.restart", spec.restart.is_some()),
        ("spec.stop.signal", !signal.is_empty()),
    ];
    match refused.iter().find(|(_, is_set)| *is_set) {
        Some((field, _)) => Err(Refusal::field(
            *field,
            "is not for a HOSTED task, which has no process and no output",
        )),
        None => Ok(()),
    }
}

fn lease_of(lease: Option<prost_types::Duration>) -> Result<Duration, Refusal> {
    let lease = check::optional_duration("lease", lease)?.unwrap_or(DEFAULT_LEASE);
    match (SHORTEST_LEASE..=LONGEST_LEASE).contains(&lease) {
        true => Ok(lease),
        false => Err(Refusal::field("lease", "is not from 1 s to 1 h")),
    }
}
