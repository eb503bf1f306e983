//! The process tree of a task as a table, with branches drawn in the COMMAND column.

use std::collections::BTreeMap;

use heeler_client::{time, v1::ProcessInfo};

use super::{
    table::{Column, Table},
    units,
};

const COLUMNS: [Column; 5] = [
    Column::whole("PID"),
    Column::whole("STATE"),
    Column::whole("CPU"),
    Column::whole("MEMORY"),
    Column::between("COMMAND", 16, usize::MAX),
];

/// The table, each process below its parent.
pub(crate) fn table(processes: &[ProcessInfo]) -> Table {
    let mut table = Table::new(&COLUMNS);
    for (index, branch) in branches(processes) {
        let process = &processes[index];
        let cpu = process.cpu_time.map(time::from_proto).unwrap_or_default();
        table.row([
            &process.pid.to_string(),
            &process.state,
            &units::duration(cpu),
            &units::size(process.memory_bytes),
            &format!("{branch}{}", process.command),
        ]);
    }
    table
}

/// The indices of the processes in drawing order, each with the lines to its left.
///
/// A process without a parent in the list is a root. Without recursion, since a task decides how deep its
/// tree is.
fn branches(processes: &[ProcessInfo]) -> Vec<(usize, String)> {
    let indices: BTreeMap<i32, usize> = processes
        .iter()
        .enumerate()
        .map(|(index, process)| (process.pid, index))
        .collect();
    let mut children = vec![Vec::new(); processes.len()];
    let mut roots = Vec::new();
    for (index, process) in processes.iter().enumerate() {
        match indices.get(&process.parent_pid) {
            // A parent comes before its children in the list; any other match is a reused pid.
            Some(&parent) if parent < index => children[parent].push(index),
            Some(_) | None => roots.push(index),
        }
    }
    let mut drawn = Vec::with_capacity(processes.len());
    let mut open: Vec<_> = roots
        .into_iter()
        .rev()
        .map(|root| (root, "", String::new()))
        .collect();
    while let Some((index, branch, left)) = open.pop() {
        drawn.push((index, format!("{left}{branch}")));
        let left = match branch {
            "├─ " => format!("{left}│  "),
            "└─ " => format!("{left}   "),
            _ => left,
        };
        for (nth, &child) in children[index].iter().rev().enumerate() {
            let branch = if nth == 0 { "└─ " } else { "├─ " };
            open.push((child, branch, left.clone()));
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(processes: &[(i32, i32)]) -> Vec<String> {
        let processes: Vec<_> = processes
            .iter()
            .map(|&(pid, parent_pid)| ProcessInfo {
                pid,
                parent_pid,
                ..ProcessInfo::default()
            })
            .collect();
        let draw = |(index, branch): (usize, String)| format!("{branch}{}", processes[index].pid);
        branches(&processes).into_iter().map(draw).collect()
    }

    /// L3
    #[test]
    fn children_are_drawn_below_their_parents_and_orphans_as_roots() {
        let drawn = draw(&[(10, 1), (11, 10), (12, 11), (13, 10), (20, 1)]);
        assert_eq!(drawn, ["10", "├─ 11", "│  └─ 12", "└─ 13", "20"]);
    }

    #[test]
    fn reused_pids_and_loops_lose_no_process() {
        assert_eq!(draw(&[(1, 2), (2, 1)]), ["1", "└─ 2"]);
        assert_eq!(draw(&[(1, 1)]), ["1"]);
    }

    #[test]
    fn a_chain_of_thousands_is_drawn() {
        let chain: Vec<_> = (1..3000).map(|pid| (pid, pid - 1)).collect();
        assert_eq!(draw(&chain).len(), chain.len());
    }
}
