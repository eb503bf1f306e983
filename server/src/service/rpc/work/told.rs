//! The knowledge of a worker about its task, and what it has to be told.

use heeler_proto::v1::{self, work_response::Item as Out};

use crate::{
    service::wire::{task, work},
    task::Task,
};

/// The latest that a worker was told.
#[derive(Debug)]
pub(super) struct Told {
    admission: Admission,
    cancel: Option<v1::WorkCancelMode>,
}

/// The worker's knowledge of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admission {
    Awaited,
    Known,
}

impl Told {
    /// The knowledge of a worker that was shown the task.
    pub(super) fn of(task: &Task) -> Self {
        Self {
            admission: match task.started {
                Some(_) => Admission::Known,
                None => Admission::Awaited,
            },
            cancel: None,
        }
    }

    /// The messages after which the worker knows this state.
    pub(super) fn news(&mut self, task: &Task) -> Vec<Out> {
        if !task.is_live() {
            return vec![ended(task)];
        }
        let mut news = Vec::new();
        // A task that has not started has no work to stop.
        if task.started.is_none() {
            return news;
        }
        if self.admission == Admission::Awaited {
            self.admission = Admission::Known;
            let task = Some(task::show(task));
            news.push(Out::Admitted(v1::WorkAdmitted { task }));
        }
        let mode = task.stop.as_ref().map(work::cancel_mode);
        if mode != self.cancel {
            self.cancel = mode;
            news.extend(work::cancel(task).map(Out::Cancel));
        }
        news
    }
}

pub(super) fn ended(task: &Task) -> Out {
    Out::Ended(v1::WorkEnded {
        task: Some(task::show(task)),
    })
}
