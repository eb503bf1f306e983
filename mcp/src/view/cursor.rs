//! Cursors: a place in the output of one task, as `shell-4k2mzq7xda@1024`.

use std::fmt;

use crate::problem::Problem;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) id: String,
    pub(crate) offset: u64,
}

impl Cursor {
    pub(crate) fn new(id: &str, offset: u64) -> Self {
        let id = id.to_owned();
        Self { id, offset }
    }

    /// The offset of a cursor, which must be one of this task.
    pub(crate) fn offset_in(text: &str, id: &str) -> Result<u64, Problem> {
        let fault = |fault: String| Problem::Cursor {
            cursor: text.chars().take(60).collect(),
            fault,
        };
        let parsed = text
            .split_once('@')
            .and_then(|(id, offset)| Some((id, offset.parse().ok()?)));
        let Some((own, offset)) = parsed else {
            return Err(fault("is not a cursor".to_owned()));
        };
        match own == id {
            true => Ok(offset),
            false => Err(fault(format!("belongs to another task than {id}"))),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.id, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M3, M5
    #[test]
    fn a_cursor_names_its_task() {
        let cursor = Cursor::new("shell-a", 7).to_string();
        assert_eq!(Cursor::offset_in(&cursor, "shell-a").unwrap(), 7);
        let foreign = Cursor::offset_in(&cursor, "shell-b").unwrap_err().text();
        assert!(foreign.contains("another task than shell-b"), "{foreign}");
        assert!(Cursor::offset_in("17", "shell-a").is_err());
    }
}
