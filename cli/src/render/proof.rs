//! The proof that a tree is empty, or its survivors by name.

use heeler_client::v1::{ProcessInfo, Proof, ProofMethod};

/// Returns whether processes of the tree are left.
pub(crate) fn has_survivors(proof: &Proof) -> bool {
    !proof.survivors.is_empty()
}

pub(crate) fn clause(proof: &Proof) -> String {
    if has_survivors(proof) {
        let names: Vec<_> = proof.survivors.iter().map(survivor).collect();
        return format!("NOT gone, {} left: {}", names.len(), names.join("; "));
    }
    let evidence = match proof.method() {
        ProofMethod::Unspecified => "by a method that this version of heeler does not know",
        ProofMethod::CgroupEmpty => "its cgroup is empty and its shim has no child",
        ProofMethod::NoChildren => "its shim has no child and no process has its environment tag",
        ProofMethod::Sweep => "no process is in its cgroup or has its environment tag",
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
            survivors: vec![survivor],
            ..Proof::default()
        });
        assert_eq!(text, "NOT gone, 1 left: 7 sleep 9");
    }
}
