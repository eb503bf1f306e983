//! Query plans: no statement becomes slower with the number of finished tasks.

use super::*;
use crate::{
    journal::{
        read::{Search, SearchSlice as Slice},
        sql,
    },
    task::{Filter, State},
};

fn plan(file: &rusqlite::Connection, statement: &str) -> Vec<String> {
    let mut explain = file
        .prepare(&format!("EXPLAIN QUERY PLAN {statement}"))
        .expect(statement);
    let nulls = vec![rusqlite::types::Value::Null; explain.parameter_count()];
    let steps = explain
        .query_map(rusqlite::params_from_iter(nulls), |row| row.get(3))
        .unwrap();
    steps.collect::<Result<_, _>>().unwrap()
}

/// Reports whether a step reads a whole table or index that grows. `tasks_live` has live tasks only.
fn reads_all(step: &str) -> bool {
    let bounded = ["journal", "sqlite_master", "json_each", "CONSTANT"];
    step.strip_prefix("SCAN ").is_some_and(|rest| {
        let bounded = bounded.iter().any(|name| rest.starts_with(name));
        !bounded && !rest.contains("INDEX tasks_live")
    })
}

fn sorts(step: &str) -> bool {
    step.contains("TEMP B-TREE")
}

#[test]
fn no_fixed_statement_reads_a_whole_table_or_sorts() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let file = raw(dir.path());
    for statement in sql::ALL {
        let plan = plan(&file, statement);
        assert!(
            !plan.iter().any(|step| reads_all(step) || sorts(step)),
            "{statement}: {plan:#?}"
        );
    }
}

/// One filter for each set of fields.
fn filters() -> impl Iterator<Item = Filter> {
    let id = || "shell-aaaaaaaaaa".parse().unwrap();
    let ends = || vec![State::Ended(EndState::Lost), State::Ended(EndState::Failed)];
    (0..128u32).map(move |set| {
        let has = |bit: u32| set & (1 << bit) != 0;
        Filter {
            ids: has(0).then(id).into_iter().collect(),
            session_id: has(1).then(|| "s1".into()),
            kinds: if has(2) {
                vec![Kind::Agent, Kind::Shell]
            } else {
                Vec::new()
            },
            states: if has(3) { ends() } else { Vec::new() },
            labels: (0..2u32)
                .filter(|_| has(4))
                .map(|n| (n.to_string(), "v".into()))
                .collect(),
            parent: has(5).then(id),
            id_prefix: has(6).then(|| "shell-a".parse().unwrap()),
            ..Filter::default()
        }
    })
}

#[test]
fn no_search_for_finished_tasks_reads_a_whole_table_or_sorts_one() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let file = raw(dir.path());
    for filter in filters() {
        let search = |slice| {
            Search::new(IdKey(1), &filter, slice, Some(Seq(9)), 50)
                .unwrap()
                .text
        };
        let text = search(Slice::EndedBy(Revision(9)));
        let steps = plan(&file, &text);
        // With ids all rows are read and then sorted; their number is limited.
        let sorted = filter.ids.is_empty() && steps.iter().any(|step| sorts(step));
        assert!(
            !sorted && !steps.iter().any(|step| reads_all(step)),
            "{text}: {steps:#?}"
        );

        for slice in [Slice::EndedBetween, Slice::Within] {
            let text = search(slice(Revision(3), Revision(9)));
            let steps = plan(&file, &text);
            let by_end =
                |step: &String| step.contains("tasks_ended (end_revision>? AND end_revision<?)");
            assert!(
                steps.iter().any(by_end) && !steps.iter().any(|step| reads_all(step)),
                "{text}: {steps:#?}"
            );
        }
    }
}

/// The index of sessions has no empty session.
#[test]
fn tasks_without_a_session_are_found_by_walking_the_newest_tasks() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let filter = Filter {
        session_id: Some(String::new()),
        ..Default::default()
    };
    let search = Search::new(IdKey(1), &filter, Slice::EndedBy(Revision(9)), None, 50).unwrap();
    let steps = plan(&raw(dir.path()), &search.text);
    assert!(
        !steps.iter().any(|step| reads_all(step) || sorts(step)),
        "{steps:#?}"
    );
}
