use proptest::prelude::*;

use super::*;
use crate::task::{
    Chunk, Containment, EndReason, Ended, Gap, GapCause, IdKey, Kind, Leader, LeaderEnd, Moment,
    Monotonic, Seq, Spec, Started, StartedBy, Stream, Timestamp,
};

fn task(state: EndState, outcome: Outcome) -> Task {
    let moment = |micros: u64| Moment {
        wall: Timestamp(micros),
        mono: Monotonic(micros),
    };
    let command = Command::Argv(vec!["cargo".to_owned(), "test".to_owned()]);
    let id = IdKey(1).task_id(Kind::Shell, Seq(1));
    Task {
        started: Some(Started {
            at: moment(1_000_000),
            by: StartedBy::Leader(Leader {
                pid: 1,
                start_ticks: 1,
                containment: Containment::Cgroup,
            }),
        }),
        leader_end: Some(LeaderEnd {
            outcome,
            at: moment(4_200_000),
        }),
        ended: Some(Ended {
            state,
            reason: EndReason::Exited,
            at: Timestamp(4_200_000),
            cpu: Duration::ZERO,
            max_memory: 0,
        }),
        ..Task::new(Seq(1), id, Spec::new(command), Timestamp(0))
    }
}

fn chunk(offset: u64, text: &str) -> Item {
    Item::Chunk(Chunk {
        offset,
        stream: Stream::Stdout,
        at: Timestamp(0),
        data: text.as_bytes().to_vec(),
    })
}

fn summary(mut task: Task, output: &str) -> String {
    task.output_bytes = output.len() as u64;
    let ends = Ends {
        head: vec![chunk(0, output)],
        ..Ends::default()
    };
    of(&task, &ends, |number| format!("SIG{number}"))
}

/// E5
#[test]
fn a_short_output_is_there_whole() {
    let task = task(EndState::Failed, Outcome::Exited(2));
    let id = task.id.clone();
    let text = summary(task, "one\n\x1b[31mtwo\x1b[0m\n10%\r20%\rdone\n\nlast");
    let expected = format!(
        "{id} FAILED: exit code 2, after 3.2 s\ncommand: cargo test\noutput: 35 bytes\n\n\
         lines:\none\ntwo\ndone\nlast\nall output: heeler logs {id}"
    );
    assert_eq!(text, expected);
}

/// E5
#[test]
fn a_long_output_gives_its_first_errors_and_its_last_lines() {
    let mut output = String::new();
    for number in 0..500 {
        output += &format!("step {number}\n");
        if number % 100 == 50 {
            output += &format!("error: number {number}\n");
        }
    }
    output += "0 errors in the last part\n";
    let task = task(EndState::Failed, Outcome::Exited(1));
    let text = summary(task, &output);
    assert!(text.len() <= SUMMARY_BYTES);
    let errors = text.split("first errors:\n").nth(1);
    let errors = errors.and_then(|rest| rest.split("\n\nlast lines:").next());
    let expected = [50, 150, 250, 350, 450].map(|number| format!("error: number {number}"));
    assert_eq!(errors, Some(&*expected.join("\n")));
    assert!(
        text.contains("\nstep 499\n0 errors in the last part\nall output:"),
        "{text}"
    );
}

/// E5
#[test]
fn a_task_that_completed_has_no_errors_and_one_without_output_says_so() {
    let completed = || task(EndState::Completed, Outcome::Exited(0));
    let output = "error: ignored\n".repeat(500);
    assert!(!summary(completed(), &output).contains("first errors"));
    let text = summary(completed(), "");
    assert!(text.ends_with("\noutput: none"), "{text}");
}

/// E5
#[test]
fn the_cause_of_a_stop_and_the_outcome_are_both_told() {
    let outcome = Outcome::Signalled {
        signal: crate::task::Signal(9),
        core_dumped: true,
    };
    let text = summary(task(EndState::Failed, outcome), "");
    assert!(
        text.contains("FAILED: ended by SIG9 (core dumped), after 3.2 s"),
        "{text}"
    );
    let text = summary(
        task(
            EndState::Lost,
            Outcome::Unknown("its shim\nwas gone".into()),
        ),
        "",
    );
    assert!(text.contains("LOST: its shim was gone"), "{text}");
}

proptest! {
    /// E5
    #[test]
    fn a_summary_never_exceeds_its_size(
        lines in prop::collection::vec("[a-z€ ]{0,400}(error)?", 0..200),
        name in "[a-z€\n]{0,2000}",
        omitted in 0_u64..1000,
    ) {
        let mut task = task(EndState::Failed, Outcome::Unknown(name.clone()));
        let mut spec = Spec::new(Command::Argv(vec![name.clone(); 3]));
        spec.name = name;
        task.spec = spec.into();
        task.output_bytes = 1;
        let output = lines.join("\n");
        let gap = Gap { offset: 10, length: 10, cause: GapCause::Lost, lines: None };
        let ends = Ends {
            head: vec![chunk(0, &output)],
            tail: vec![Item::Gap(gap), chunk(20, &output)],
            omitted,
        };
        let text = of(&task, &ends, |_| String::new());
        prop_assert!(text.len() <= SUMMARY_BYTES, "{}", text.len());
        prop_assert!(text.chars().all(|shown| shown == '\n' || !shown.is_control()));
        prop_assert!(!output.contains("error") || text.contains("heeler logs"));
    }
}
