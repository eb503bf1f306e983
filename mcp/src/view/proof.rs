//! The proof that nothing of a task is left, or the processes that are.

use heeler_client::v1::{BackgroundTask, ProofMethod, proof::Result as Found};

use super::cut;

/// The most survivors that are named.
const MOST_SURVIVORS: usize = 10;

/// The proof in words. Absent if the task was not stopped, or is not known to be gone.
pub(crate) fn proof(task: &BackgroundTask) -> Option<String> {
    let proof = task.stop.as_ref()?.proof.as_ref()?;
    Some(match proof.result.as_ref()? {
        Found::Proven(method) => {
            let evidence = match ProofMethod::try_from(*method).unwrap_or_default() {
                ProofMethod::Unspecified => "checked by a newer daemon",
                ProofMethod::CgroupEmpty => "its cgroup is empty and no marked process is left",
                ProofMethod::NoChildren => "its shim has no child and no marked process is left",
                ProofMethod::Sweep => "no process in its cgroup or with its marks is left",
                ProofMethod::NeverStarted => "no process was started",
                ProofMethod::Reboot => "the machine has rebooted since",
            };
            format!("proven gone: {evidence}")
        }
        Found::Survivors(left) => {
            let named = left.processes.iter().take(MOST_SURVIVORS);
            let named: Vec<_> = named
                .map(|process| format!("{} {}", process.pid, cut(&process.command, 80)))
                .collect();
            let count = left.processes.len();
            format!(
                "NOT gone, {count} processes left and still being killed: {}",
                named.join("; ")
            )
        }
        Found::Unproven(unproven) => format!("not provable: {}", unproven.reason),
    })
}
