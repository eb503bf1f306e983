//! The rights of a caller: those of the user, or those of the task that it is inside of.

use serde::{Deserialize, Serialize};

use super::{Task, TaskId};

/// The calls that the processes of a task may make, from the fewest to the most.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Rights {
    None,
    /// Report on the task itself.
    Report,
    /// Also spawn children, and see and act on descendants.
    #[default]
    Children,
    /// Everything that the user may do.
    All,
}

impl Rights {
    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The party that makes a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Authority {
    /// The user of the server: a process that is in no task, or a client with the server's token.
    User,
    /// A process of a task, or a client with a task's token.
    Task { id: TaskId, rights: Rights },
}

impl Authority {
    pub(crate) fn rights(&self) -> Rights {
        match self {
            Self::User => Rights::All,
            Self::Task { rights, .. } => *rights,
        }
    }

    /// The task beyond whose descendants the caller sees nothing; `None` if it sees everything.
    pub(crate) fn bound(&self) -> Option<&TaskId> {
        match self {
            Self::User
            | Self::Task {
                rights: Rights::All,
                ..
            } => None,
            Self::Task {
                id,
                rights: Rights::None | Rights::Report | Rights::Children,
            } => Some(id),
        }
    }

    /// Reports whether the caller may see a task: its own, or a descendant.
    pub(crate) fn sees(&self, task: &Task) -> bool {
        self.bound()
            .is_none_or(|own| task.id == *own || task.descends_from(own))
    }

    /// Reports whether the caller may act on a task: a descendant of its own.
    pub(crate) fn acts_on(&self, task: &Task) -> bool {
        self.bound().is_none_or(|own| task.descends_from(own))
    }
}

/// A part of the tree of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// This task and its descendants.
    From(TaskId),
    /// The descendants of this task.
    Below(TaskId),
}

impl Scope {
    pub(crate) fn contains(&self, task: &Task) -> bool {
        match self {
            Self::From(root) => task.id == *root || task.descends_from(root),
            Self::Below(root) => task.descends_from(root),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Command, IdKey, Seq, Spec, Timestamp};

    fn task(seq: u64, ancestors: &[&Task]) -> Task {
        let spec = Spec::new(Command::Argv(vec!["/bin/true".into()]));
        let id = IdKey(1).task_id(spec.kind, Seq(seq));
        Task {
            ancestors: ancestors.iter().map(|task| task.id.clone()).collect(),
            ..Task::new(Seq(seq), id, spec, Timestamp(1))
        }
    }

    /// K2
    #[test]
    fn a_task_sees_itself_and_acts_on_its_descendants() {
        let parent = task(1, &[]);
        let own = task(2, &[&parent]);
        let sibling = task(3, &[&parent]);
        let child = task(4, &[&parent, &own]);
        let grandchild = task(5, &[&parent, &own, &child]);
        let caller = Authority::Task {
            id: own.id.clone(),
            rights: Rights::Children,
        };
        for (other, sees, acts) in [
            (&parent, false, false),
            (&own, true, false),
            (&sibling, false, false),
            (&child, true, true),
            (&grandchild, true, true),
        ] {
            assert_eq!((caller.sees(other), caller.acts_on(other)), (sees, acts));
        }
        let wide = Authority::Task {
            id: own.id.clone(),
            rights: Rights::All,
        };
        assert!(wide.acts_on(&parent) && Authority::User.acts_on(&parent));
    }

    /// K3
    #[test]
    fn the_narrower_of_two_rights_is_their_minimum() {
        assert_eq!(Rights::All.min(Rights::Children), Rights::Children);
        assert_eq!(Rights::Children.min(Rights::Report), Rights::Report);
        assert_eq!(Rights::None.min(Rights::All), Rights::None);
        assert_eq!(Rights::default(), Rights::Children);
    }
}
