//! Patterns: MATCHED events, their cool-down and their maximum, UpdateTask, and waits for a line.

use std::time::{Duration, Instant};

use heeler_tests::{
    Api, Daemon, Refusal, SpawnRequestExt as _, argv, foreground, micros, millis, request, secs,
    shell,
    v1::*,
    watch::{count, task_of},
    within,
};
use tonic::Code;

fn pattern(name: &str, regex: &str) -> OutputPattern {
    OutputPattern {
        name: name.into(),
        regex: regex.into(),
        ..OutputPattern::default()
    }
}

fn with_patterns(mut request: SpawnRequest, patterns: Vec<OutputPattern>) -> SpawnRequest {
    let spec = request.spec.as_mut().unwrap();
    spec.output = Some(OutputPolicy {
        patterns,
        ..OutputPolicy::default()
    });
    request
}

/// The lines of the MATCHED events of a task, as pattern, offset and text.
fn told(events: &[TaskEvent]) -> Vec<(String, u64, String)> {
    let matches = events.iter().filter_map(|event| event.r#match.as_ref());
    let lines = matches.flat_map(|of| of.lines.iter().map(|line| (of.pattern.clone(), line)));
    lines
        .map(|(pattern, line)| (pattern, line.offset, line.text.clone().unwrap()))
        .collect()
}

fn line(pattern: &str, offset: u64, text: &str) -> (String, u64, String) {
    (pattern.to_owned(), offset, text.to_owned())
}

/// O16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn lines_that_match_are_told_before_the_end_with_their_offsets() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = r"printf 'one\n\033[31mListening\033[0m on 80\n'; echo 'error: no' >&2; printf 'last error'";
    let error = OutputPattern {
        cooldown: Some(millis(0)),
        ..pattern("error", "error")
    };
    let stdout_error = OutputPattern {
        stream: OutputStream::Stdout.into(),
        ..pattern("stdout error", "error")
    };
    let patterns = vec![error, pattern("ready", "^Listening on"), stdout_error];
    let mut watch = api.watch_after(0).await;
    let id = api.start(with_patterns(shell(script), patterns)).await.id;
    let events = watch.until_of(&id, TaskEventType::Ended).await;
    let mut told = told(&events);
    told.sort();
    // The two streams may arrive in either order.
    let output = String::from_utf8(api.output(&id).await).unwrap();
    let at = |text: &str| output.find(text).unwrap() as u64;
    let mut expected = [
        line("error", at("error: no"), "error: no"),
        line("error", at("last error"), "last error"),
        line("ready", 4, "Listening on 80"),
        line("stdout error", at("last error"), "last error"),
    ];
    expected.sort();
    assert_eq!(told, expected);
    let end = task_of(events.last().unwrap());
    let counts: Vec<_> = end.matches.iter().map(|of| (&*of.name, of.count)).collect();
    assert_eq!(counts, [("error", 2), ("ready", 1), ("stdout error", 1)]);
    let last = end.matches[0].last_offset;
    assert!(last.is_some_and(|last| [at("error: no"), at("last error")].contains(&last)));
    assert!(
        end.matches
            .iter()
            .all(|of| of.searched_offset >= end.output_bytes)
    );
    assert_eq!(
        end.spec
            .as_ref()
            .unwrap()
            .output
            .as_ref()
            .unwrap()
            .patterns
            .len(),
        3
    );
}

/// O16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn lines_within_a_cool_down_are_told_together_at_its_end() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let hits = "print hit ".repeat(30);
    let script = format!("print hit gate {} {hits} forever", daemon.file("gate"));
    let cooled = OutputPattern {
        cooldown: Some(millis(1500)),
        ..pattern("hit", "hit")
    };
    let mut watch = api.watch_after(0).await;
    let request = with_patterns(daemon.script(&script), vec![cooled]);
    let id = api.start(request).await.id;
    let is_match = |event: &TaskEvent| event.r#type() == TaskEventType::Matched;
    let first = watch.until(is_match).await.pop().unwrap();
    gate.open();
    let (mut last_time, mut told) = (first.event_time, first.r#match.unwrap().count);
    assert_eq!(told, 1);
    while told < 31 {
        let event = watch.until(is_match).await.pop().unwrap();
        let pause = micros(&event.event_time) - micros(&last_time);
        assert!(pause >= 1_500_000, "told {pause} µs after the last time");
        let matched = event.r#match.unwrap();
        assert_eq!(matched.lines.len() as u64, matched.count.min(16));
        assert_eq!(
            matched.suppressed,
            matched.count - matched.lines.len() as u64
        );
        (last_time, told) = (event.event_time, told + matched.count);
    }
    let task = api.task(&id).await;
    assert_eq!(task.matches[0].count, 31);
    api.kill(&id).await;
}

/// O16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_pattern_has_no_more_events_than_its_maximum() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut script = String::new();
    for step in 0..5 {
        script += &format!("print hit gate {} ", daemon.file(&format!("gate-{step}")));
    }
    let gates: Vec<_> = (0..5)
        .map(|step| daemon.gate(&format!("gate-{step}")))
        .collect();
    let limited = OutputPattern {
        cooldown: Some(millis(0)),
        max_events: 2,
        ..pattern("hit", "hit")
    };
    let every = OutputPattern {
        cooldown: Some(millis(0)),
        ..pattern("every", "hit")
    };
    let request = with_patterns(daemon.script(&script), vec![limited, every]);
    let mut watch = api.watch_after(0).await;
    let id = api.start(request).await.id;
    let mut events = Vec::new();
    for gate in gates {
        let is_of_every = |event: &TaskEvent| {
            event
                .r#match
                .as_ref()
                .is_some_and(|of| of.pattern == "every")
        };
        events.extend(watch.until(is_of_every).await);
        gate.open();
    }
    events.extend(watch.until_of(&id, TaskEventType::Ended).await);
    let of = |name: &str| {
        let matches = events.iter().filter_map(|event| event.r#match.as_ref());
        matches.filter(|of| of.pattern == name).count()
    };
    assert_eq!((of("hit"), of("every")), (2, 5));
}

/// O16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn patterns_of_a_live_task_are_added_replaced_and_removed() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!(
        "print early gate {} print late forever",
        daemon.file("gate")
    );
    let fixture = daemon.run(&api, &script).await;
    api.output_reaches(&fixture.id, 6).await;
    let mut watch = api.watch_after(api.revision().await).await;
    let update = |set: Vec<OutputPattern>, remove: &[&str]| {
        let request = UpdateTaskRequest {
            task_id: fixture.id.clone(),
            set_patterns: set,
            remove_patterns: remove.iter().map(|name| (*name).to_owned()).collect(),
        };
        let mut raw = api.raw();
        async move {
            raw.update_task(request)
                .await
                .map(tonic::Response::into_inner)
        }
    };
    // One that is there already is found, unless it is before the requested offset.
    let later = OutputPattern {
        from_offset: 6,
        ..pattern("later", "early|late")
    };
    let set = vec![pattern("any", "early"), later, pattern("gone", "late")];
    let task = update(set.clone(), &[]).await.unwrap().task.unwrap();
    assert_eq!(task.matches.len(), 3);
    let events = watch.until_of(&fixture.id, TaskEventType::Matched).await;
    assert_eq!(told(&events), [line("any", 0, "early")]);
    assert_eq!(count(&events, TaskEventType::Updated), 1);

    // The same again changes nothing, and forgets nothing.
    let before = api.revision().await;
    let same = update(set, &["unknown"]).await.unwrap().task.unwrap();
    assert_eq!(api.revision().await, before);
    assert_eq!(same.matches[0].count, 1);

    update(vec![pattern("any", "l.te")], &["gone"])
        .await
        .unwrap();
    gate.open();
    let mut events = Vec::new();
    while told(&events).len() < 2 {
        events.extend(watch.until_of(&fixture.id, TaskEventType::Matched).await);
    }
    let mut told = told(&events);
    told.sort();
    assert_eq!(told, [line("any", 6, "late"), line("later", 6, "late")]);

    let many = (0..16).map(|n| pattern(&n.to_string(), "x")).collect();
    let refusal = Refusal::expect(
        update(many, &[]).await,
        Code::InvalidArgument,
        "INVALID_FIELD",
    );
    assert_eq!(refusal.fields, ["set_patterns"]);
    api.kill(&fixture.id).await;
    let refused = update(vec![pattern("a", "b")], &[]).await;
    Refusal::expect(refused, Code::FailedPrecondition, "TASK_FINISHED");
}

/// O16, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn each_line_is_counted_once_across_crashes_of_the_server() {
    let mut daemon = Daemon::start().await;
    let mut api = daemon.api().await;
    const STEPS: usize = 5;
    let mut script = String::new();
    for step in 0..STEPS {
        script += &format!(
            "bytes 10000 print hit-{step} gate {} ",
            daemon.file(&format!("gate-{step}"))
        );
    }
    let gates: Vec<_> = (0..STEPS)
        .map(|step| daemon.gate(&format!("gate-{step}")))
        .collect();
    let every = OutputPattern {
        cooldown: Some(millis(0)),
        ..pattern("hit", "^hit-")
    };
    let id = api
        .start(with_patterns(daemon.script(&script), vec![every]))
        .await
        .id;
    for (step, gate) in gates.into_iter().enumerate() {
        if step % 2 == 0 {
            api.output_reaches(&id, (step as u64 + 1) * 10_006).await;
        }
        daemon.kill9();
        gate.open();
        daemon.restart().await;
        api = daemon.api().await;
    }
    let task = api.ended(&id).await;
    let history = api.history_of(&id).await;
    let expected: Vec<_> = (0..STEPS)
        .map(|step| line("hit", step as u64 * 10_006 + 10_000, &format!("hit-{step}")))
        .collect();
    assert_eq!(told(&history), expected);
    assert_eq!(task.matches[0].count, STEPS as u64);
    assert_eq!(history.last().unwrap().r#type(), TaskEventType::Ended);
}

/// O16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_hostile_pattern_delays_neither_its_task_nor_the_patterns_of_others() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let noise = "head -c 2000000 /dev/urandom | od -An -v -tx1 | tr -d ' ' | tr 'a-f' '01' | tr 2-9 01 | head -c 4000000";
    let hostile = || vec![pattern("hostile", "[01]*1[01]{900}2$")];
    let mut slow = Vec::new();
    for _ in 0..4 {
        slow.push(api.start(with_patterns(shell(noise), hostile())).await.id);
    }
    let began = Instant::now();
    for _ in 0..5 {
        let script = shell("seq 1000; echo needle");
        let request = with_patterns(script, vec![pattern("needle", "^needle$")]);
        let id = api.start(request).await.id;
        let task = api.ended(&id).await;
        assert_eq!(task.matches[0].count, 1);
    }
    for id in &slow {
        let task = api.ended(id).await;
        assert_eq!(task.state(), TaskState::Completed);
        assert_eq!(task.matches[0].count, 0);
    }
    let took = began.elapsed();
    assert!(took < Duration::from_secs(60), "it took {took:?}");
}

/// L9, F12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_matched_line_is_on_no_disk_and_gone_with_its_task() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    // The command and the pattern have it in two halves, so only the output contains it whole.
    let written = "hush-5c2f";
    let script = "printf '%s%s\\n' hus h-5c2f; exit 1";
    let request = foreground().with_command_of(shell(script));
    let request = with_patterns(request, vec![pattern("secret", "^hus[h]-")]);
    let id = api.start(request).await.id;
    api.ended(&id).await;
    assert_eq!(
        told(&api.history_of(&id).await),
        [line("secret", 0, written)]
    );
    daemon.kill9();
    let output = std::process::Command::new("grep")
        .args(["-rlF", written])
        .arg(daemon.path(""))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(
        told(&api.history_of(&id).await),
        [line("secret", 0, written)]
    );
    api.remove([&id]).await.unwrap();
    let history = api.history_of(&id).await;
    let matched = history
        .iter()
        .find_map(|event| event.r#match.as_ref())
        .unwrap();
    assert_eq!((matched.count, matched.lines[0].text.as_deref()), (1, None));
}

fn wait_for_line(ids: &[&str], regex: &str) -> WaitRequest {
    WaitRequest {
        until: WaitCondition::Matched.into(),
        r#match: Some(OutputSearch {
            regex: regex.into(),
            ..OutputSearch::default()
        }),
        timeout: Some(secs(60)),
        ..request::wait(ids.iter().copied())
    }
}

async fn waited(api: &Api, request: WaitRequest) -> WaitResponse {
    within("the end of a wait", api.wait(request))
        .await
        .unwrap()
}

/// L4, O16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wait_returns_at_a_line_of_the_past_at_one_of_the_future_and_at_the_end_without_one() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!(
        "print starting bytes 100000 gate {} print ready-on-80 forever",
        daemon.file("gate")
    );
    let server = daemon.run(&api, &script).await;
    api.output_reaches(&server.id, 100_000).await;
    let past = waited(&api, wait_for_line(&[&server.id], "^start")).await;
    assert!(past.satisfied);
    let line = past.matches[0].line.as_ref().unwrap();
    assert_eq!((line.offset, line.text.as_deref()), (0, Some("starting")));

    let future = {
        let (api, request) = (api.clone(), wait_for_line(&[&server.id], "^ready-on-"));
        tokio::spawn(async move { waited(&api, request).await })
    };
    let ended = api.start(shell("echo not it")).await.id;
    let both = {
        let request = WaitRequest {
            count: Some(1),
            ..wait_for_line(&[&ended, &server.id], "^ready-on-")
        };
        let api = api.clone();
        tokio::spawn(async move { waited(&api, request).await })
    };
    let never = waited(&api, wait_for_line(&[&ended], "^ready-on-")).await;
    assert!(!never.satisfied && never.met.is_empty() && never.pending.len() == 1);
    let all = waited(&api, wait_for_line(&[&ended, &server.id], "^ready-on-")).await;
    assert!(!all.satisfied, "one of them can have no such line any more");
    gate.open();
    for wait in [future, both] {
        let answer = wait.await.unwrap();
        assert!(answer.satisfied);
        assert_eq!(answer.matches[0].task_id, server.id);
        assert_eq!(answer.met[0].id, server.id);
    }
    let request = WaitRequest {
        timeout: Some(millis(200)),
        ..wait_for_line(&[&server.id], "never")
    };
    assert!(!waited(&api, request).await.satisfied);
    api.kill(&server.id).await;
}

/// L4, O16: each look at the output races with the arrival of the line.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_line_that_arrives_as_a_wait_begins_is_missed() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(argv(["cat"]).with_input()).await.id;
    let mut offset = 0;
    for number in 0..20 {
        let (line, regex) = (format!("line {number}\n"), format!("^line {number}$"));
        let wait = waited(&api, wait_for_line(&[&id], &regex));
        let (answer, written) = tokio::join!(wait, api.write(&id, offset, &line));
        written.unwrap();
        assert!(answer.satisfied, "{line}");
        offset += line.len() as u64;
    }
    api.kill(&id).await;
}
