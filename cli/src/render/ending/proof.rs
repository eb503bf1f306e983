//! The proof that a tree is empty, or its survivors by name.

use heeler_client::v1::{
    BackgroundTask, ProcessInfo, Proof, ProofMethod, Survivors, proof::Result as Found,
};

/// The latest check of a task that was stopped.
pub(crate) fn of(task: &BackgroundTask) -> Option<&Proof> {
    task.stop.as_ref()?.proof.as_ref()
}

/// Returns whether processes of the tree are left.
pub(crate) fn has_survivors(proof: &Proof) -> bool {
    matches!(proof.result, Some(Found::Survivors(_)))
}

pub(crate) fn clause(proof: &Proof) -> String {
    let method = match &proof.result {
        Some(Found::Survivors(Survivors { processes })) => {
            let names: Vec<_> = processes.iter().map(survivor).collect();
            return format!("NOT gone, {} left: {}", names.len(), names.join("; "));
        }
        Some(Found::Unproven(unproven)) => {
            return format!("nothing can be proven: {}", unproven.reason);
        }
        Some(Found::Proven(method)) => ProofMethod::try_from(*method).unwrap_or_default(),
        None => return "a result that this version of heeler does not know".to_owned(),
    };
    let evidence = match method {
        ProofMethod::Unspecified => "by a method that this version of heeler does not know",
        ProofMethod::CgroupEmpty => {
            "its cgroup is empty, its shim has no child and no process has its limit tag"
        }
        ProofMethod::NoChildren => "its shim has no child and no process has its marks",
        ProofMethod::Sweep => "no process is in its cgroup or has its marks",
        ProofMethod::NeverStarted => "no process was started",
        ProofMethod::Reboot => "the machine has rebooted",
    };
    format!("proven gone: {evidence}")
}

fn survivor(process: &ProcessInfo) -> String {
    format!("{} {}", process.pid, process.command)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C14
    #[test]
    fn survivors_are_named() {
        let survivor = ProcessInfo {
            pid: 7,
            command: "sleep 9".to_owned(),
            ..ProcessInfo::default()
        };
        let text = clause(&Proof {
            result: Some(Found::Survivors(Survivors {
                processes: vec![survivor],
            })),
            ..Proof::default()
        });
        assert_eq!(text, "NOT gone, 1 left: 7 sleep 9");
    }
}
