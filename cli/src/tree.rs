//! A process tree, drawn.

use std::collections::BTreeMap;

use heeler_client::{time, v1::ProcessInfo};

use crate::{
    duration,
    table::{Column, Fit, Table},
    words,
};

const COLUMNS: [Column; 5] = [
    Column {
        title: "PID",
        fit: Fit::Whole,
    },
    Column {
        title: "STATE",
        fit: Fit::Whole,
    },
    Column {
        title: "CPU",
        fit: Fit::Whole,
    },
    Column {
        title: "MEMORY",
        fit: Fit::Whole,
    },
    Column {
        title: "COMMAND",
        fit: Fit::Between {
            least: 16,
            most: usize::MAX,
        },
    },
];

/// The processes as a table, each under its parent.
pub(crate) fn table(processes: &[ProcessInfo]) -> Table {
    let mut table = Table::new(&COLUMNS);
    for (place, branch) in branches(processes) {
        let process = &processes[place];
        let cpu = process.cpu_time.map(time::from_proto).unwrap_or_default();
        table.row([
            &process.pid.to_string(),
            &process.state,
            &duration::precise(cpu),
            &words::size(process.memory_bytes),
            &format!("{branch}{}", process.command),
        ]);
    }
    table
}

/// Each process by its place in the list, in the order to draw them, with the lines to its left.
///
/// No recursion: a task may nest as deeply as it likes. Whoever has no parent in the list is a root.
fn branches(processes: &[ProcessInfo]) -> Vec<(usize, String)> {
    let places: BTreeMap<i32, usize> = processes
        .iter()
        .enumerate()
        .map(|(place, process)| (process.pid, place))
        .collect();
    let mut children = vec![Vec::new(); processes.len()];
    let mut roots = Vec::new();
    for (place, process) in processes.iter().enumerate() {
        match places.get(&process.parent_pid) {
            // A parent comes before its children; anything else is a number that was reused.
            Some(&parent) if parent < place => children[parent].push(place),
            Some(_) | None => roots.push(place),
        }
    }
    let mut drawn = Vec::with_capacity(processes.len());
    let mut open: Vec<_> = roots
        .into_iter()
        .rev()
        .map(|root| (root, "", String::new()))
        .collect();
    while let Some((place, knot, left)) = open.pop() {
        drawn.push((place, format!("{left}{knot}")));
        let left = match knot {
            "├─ " => format!("{left}│  "),
            "└─ " => format!("{left}   "),
            _ => left,
        };
        for (nth, &child) in children[place].iter().rev().enumerate() {
            let knot = if nth == 0 { "└─ " } else { "├─ " };
            open.push((child, knot, left.clone()));
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
        let draw = |(place, branch): (usize, String)| format!("{branch}{}", processes[place].pid);
        branches(&processes).into_iter().map(draw).collect()
    }

    /// L3
    #[test]
    fn children_hang_under_their_parents_and_orphans_stand_alone() {
        let drawn = draw(&[(10, 1), (11, 10), (12, 11), (13, 10), (20, 1)]);
        assert_eq!(drawn, ["10", "├─ 11", "│  └─ 12", "└─ 13", "20"]);
    }

    #[test]
    fn reused_numbers_and_loops_lose_nobody() {
        assert_eq!(draw(&[(1, 2), (2, 1)]), ["1", "└─ 2"]);
        assert_eq!(draw(&[(1, 1)]), ["1"]);
    }

    #[test]
    fn a_chain_of_thousands_is_drawn() {
        let chain: Vec<_> = (1..3000).map(|pid| (pid, pid - 1)).collect();
        assert_eq!(draw(&chain).len(), chain.len());
    }
}
