//! The task's stdin and terminal.

use std::time::Duration;

use heeler_proto::v1::TerminalPolicy;

use super::Spawn;
use crate::time;

/// ```
/// use heeler_client::Spawn;
///
/// let sort = Spawn::argv(["sort", "-n"]).input();
/// let shell = Spawn::argv(["bash", "-i"]).terminal(80, 24);
/// ```
impl Spawn {
    /// Gives the task a stdin to write to: see [`Task::input`](crate::Task::input). It stays open until it is
    /// closed.
    pub fn input(mut self) -> Self {
        self.spec.input.get_or_insert_default();
        self
    }

    /// Gives the task a stdin, and looks for NEEDS_INPUT after this time without output. Unless set, only when
    /// the task becomes stale.
    pub fn notify_input_after(mut self, span: Duration) -> Self {
        let input = self.spec.input.get_or_insert_default();
        input.notify_after = Some(time::to_proto(span));
        self
    }

    /// Gives the task a terminal of this size, from 1 to 1000 each. 0: 80 columns, 24 rows.
    pub fn terminal(mut self, columns: u32, rows: u32) -> Self {
        let terminal = self.terminal_policy();
        (terminal.columns, terminal.rows) = (columns, rows);
        self
    }

    /// Gives the task a terminal of this type, its TERM: `xterm-256color` unless set.
    pub fn terminal_type(mut self, term: impl Into<String>) -> Self {
        self.terminal_policy().term = term.into();
        self
    }

    fn terminal_policy(&mut self) -> &mut TerminalPolicy {
        self.spec.terminal.get_or_insert_default()
    }
}
