//! Refusals of a filter name the path of the field.

use super::*;

const UNKNOWN: &str = "shell-aaaaaaaaaa";

fn with_ids(ids: &[&str]) -> Option<v1::TaskFilter> {
    Some(v1::TaskFilter {
        task_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..v1::TaskFilter::default()
    })
}

fn field(refused: Result<Filter, Refusal>) -> Option<String> {
    let refusal = refused.expect_err("it is refused");
    refusal.bad_field().map(str::to_owned)
}

/// L1
#[test]
fn a_malformed_id_is_a_bad_argument_where_tasks_are_read() {
    let refused = reading(with_ids(&[UNKNOWN, "x"]));
    assert_eq!(field(refused).as_deref(), Some("filter.task_ids[1]"));
    let status = tonic::Status::from(reading(with_ids(&["x"])).expect_err("it is refused"));
    let text = "filter.task_ids[0] is not a valid task id: ";
    assert!(status.message().starts_with(text), "{status:?}");
    assert_eq!(reading(None).expect("it selects all"), Filter::default());
}

/// C9
#[test]
fn a_malformed_id_is_that_of_no_task_where_tasks_are_acted_on() {
    let refusal = acting(with_ids(&["x"])).expect_err("it is refused");
    assert_eq!(tonic::Status::from(refusal).code(), tonic::Code::NotFound);
    let empty = acting(with_ids(&[UNKNOWN, ""]));
    assert_eq!(field(empty).as_deref(), Some("filter.task_ids[1]"));
    let twice = acting(with_ids(&[UNKNOWN, UNKNOWN]));
    assert_eq!(field(twice).as_deref(), Some("filter.task_ids[1]"));
}

/// C9
#[test]
fn a_call_that_acts_needs_a_filter_that_sets_something() {
    assert_eq!(field(acting(None)).as_deref(), Some("filter"));
    let all = || Some(v1::TaskFilter::default());
    assert_eq!(field(selecting(all())).as_deref(), Some("filter"));
    assert!(acting(all()).is_ok(), "Remove takes all finished tasks");
    let stale = v1::TaskFilter {
        stale: Some(false),
        ..v1::TaskFilter::default()
    };
    assert!(selecting(Some(stale)).is_ok());
}

/// L1
#[test]
fn bad_values_are_named() {
    let refused = |change: fn(&mut v1::TaskFilter)| {
        let mut filter = v1::TaskFilter::default();
        change(&mut filter);
        field(reading(Some(filter)))
    };
    let relative = refused(|filter| filter.directory = "src".to_owned());
    assert_eq!(relative.as_deref(), Some("filter.directory"));
    let placement = refused(|filter| filter.placement = 9);
    assert_eq!(placement.as_deref(), Some("filter.placement"));
    let kind = refused(|filter| filter.kinds = vec![1, 4]);
    assert_eq!(kind.as_deref(), Some("filter.kinds[1]"));
    let state = refused(|filter| filter.states = vec![0]);
    assert_eq!(state.as_deref(), Some("filter.states[0]"));
    let parent = refused(|filter| filter.parent_id = "x".to_owned());
    assert_eq!(parent.as_deref(), Some("filter.parent_id"));
    let queue = refused(|filter| filter.queue = "q".repeat(257));
    assert_eq!(queue.as_deref(), Some("filter.queue"));
    let name = refused(|filter| filter.name = "n".repeat(16 * 1024 + 1));
    assert_eq!(name.as_deref(), Some("filter.name"));
    let prefix = refused(|filter| filter.id_prefix = "4k*".to_owned());
    assert_eq!(prefix.as_deref(), Some("filter.id_prefix"));
}

/// E9
#[test]
fn session_idle_is_refused_with_a_filter_that_never_matches_it() {
    let idle = [i32::from(v1::TaskEventType::SessionIdle)];
    let session = Filter {
        session_id: Some("s".to_owned()),
        ..Filter::default()
    };
    assert!(event_kinds(&idle, &session).is_ok());
    let stale = Filter {
        stale: Some(true),
        ..session
    };
    let refusal = event_kinds(&idle, &stale).expect_err("it is refused");
    assert_eq!(refusal.bad_field(), Some("types[0]"));
}
