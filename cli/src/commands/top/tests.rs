use heeler_client::{
    Bytes, Chunk, WatchItem,
    v1::{BackgroundTask, OutputStream, TaskEvent, TaskEventType, TaskSpec, TaskState},
};
use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
};

use super::{
    keys::{self, Effect},
    model::{Mode, Model},
    pane::Pane,
    view::{self, Colours},
};

/// A running task. A later `second` is a newer task.
fn task(id: &str, session: &str, parent: &str, second: i64) -> BackgroundTask {
    BackgroundTask {
        id: id.to_owned(),
        spec: Some(TaskSpec {
            name: format!("name-{id}"),
            session_id: session.to_owned(),
            parent_id: parent.to_owned(),
            ..TaskSpec::default()
        }),
        state: TaskState::Running.into(),
        create_time: Some(prost_types::Timestamp {
            seconds: second,
            nanos: 0,
        }),
        ..BackgroundTask::default()
    }
}

fn model(tasks: &[BackgroundTask]) -> Model {
    let mut model = Model::new();
    for task in tasks {
        model.apply(WatchItem::Initial(task.clone()));
    }
    model.apply(WatchItem::Bookmark(Default::default()));
    model
}

fn event(kind: TaskEventType, task: BackgroundTask) -> WatchItem {
    WatchItem::Event(TaskEvent {
        r#type: kind.into(),
        task: Some(task),
        ..TaskEvent::default()
    })
}

fn ended(task: &BackgroundTask) -> WatchItem {
    let task = BackgroundTask {
        state: TaskState::Completed.into(),
        ..task.clone()
    };
    event(TaskEventType::Ended, task)
}

fn ids(model: &Model) -> Vec<String> {
    let rows = model.rows();
    rows.iter()
        .map(|row| format!("{}{}", "-".repeat(row.depth), row.task.id))
        .collect()
}

fn selected(model: &Model) -> &str {
    model.selected().map_or("", |task| &task.id)
}

fn press(model: &mut Model, keys: &str) -> Effect {
    let mut effect = Effect::None;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '\u{7f}' => KeyCode::Backspace,
            key => KeyCode::Char(key),
        };
        effect = keys::press(model, KeyEvent::new(code, KeyModifiers::NONE));
    }
    effect
}

fn chunk(data: &str) -> Chunk {
    Chunk {
        offset: 0,
        stream: OutputStream::Stdout,
        read_time: std::time::SystemTime::UNIX_EPOCH,
        data: Bytes::from(data.to_owned()),
        gap: None,
        begins_group: false,
    }
}

fn screen(model: &Model, columns: u16, lines: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    terminal
        .draw(|frame| view::draw(frame, model, Colours::Shown))
        .unwrap();
    terminal.backend().to_string()
}

/// H6
#[test]
fn a_task_is_below_its_parent_and_siblings_are_in_the_chosen_order() {
    let mut model = model(&[
        task("b", "s2", "", 1),
        task("a", "s1", "", 2),
        task("child", "s1", "b", 3),
        task("grandchild", "s1", "child", 4),
        task("c", "s1", "", 5),
    ]);
    assert_eq!(ids(&model), ["c", "a", "b", "-child", "--grandchild"]);
    press(&mut model, "s");
    assert_eq!(ids(&model), ["c", "a", "b", "-child", "--grandchild"]);
    press(&mut model, "ss");
    assert_eq!(ids(&model), ["a", "b", "-child", "--grandchild", "c"]);
    model.apply(event(TaskEventType::Removed, task("b", "s2", "", 1)));
    assert_eq!(ids(&model), ["a", "c", "child", "-grandchild"]);
}

/// H6
#[test]
fn a_finished_task_stays_only_while_it_is_selected() {
    let tasks = ["a", "b", "c"].map(|id| task(id, "s", "", 1));
    let mut model = model(&tasks);
    assert_eq!(selected(&model), "a");
    model.apply(ended(&tasks[1]));
    model.apply(ended(&tasks[0]));
    assert_eq!(ids(&model), ["a", "c"]);
    press(&mut model, "j");
    assert_eq!((selected(&model), ids(&model)), ("c", vec!["c".to_owned()]));
    model.apply(event(TaskEventType::Removed, tasks[2].clone()));
    assert_eq!(selected(&model), "");
    model.apply(event(TaskEventType::Created, task("d", "s", "", 2)));
    assert_eq!(selected(&model), "d");
}

/// H6
#[test]
fn the_filter_hides_rows_and_moves_the_selection() {
    let mut model = model(&["aa", "ab", "bb"].map(|id| task(id, "s", "", 1)));
    press(&mut model, "/BB");
    assert_eq!(
        (ids(&model), selected(&model)),
        (vec!["bb".to_owned()], "bb")
    );
    press(&mut model, "\u{7f}\n");
    assert_eq!(ids(&model), ["ab", "bb"]);
    press(&mut model, "\u{1b}");
    assert_eq!(ids(&model).len(), 3);
    press(&mut model, "/nothing\n");
    assert_eq!((ids(&model).len(), selected(&model)), (0, ""));
    assert_eq!(press(&mut model, "c"), Effect::None);
    assert_eq!(model.mode, Mode::Select);
}

/// H6
#[test]
fn a_cancel_needs_a_yes() {
    let mut model = model(&[task("a", "s", "", 1)]);
    assert_eq!(press(&mut model, "cn"), Effect::None);
    assert_eq!(press(&mut model, "cq"), Effect::None);
    assert_eq!(press(&mut model, "cy"), Effect::Cancel("a".to_owned()));
    assert_eq!(press(&mut model, "d"), Effect::Detach("a".to_owned()));
    assert_eq!(press(&mut model, "?q"), Effect::None);
    assert_eq!(press(&mut model, "q"), Effect::Quit);
}

/// H6
#[test]
fn a_live_task_can_be_attached_to_and_a_finished_one_cannot() {
    let one = task("a", "s", "", 1);
    let mut model = model(std::slice::from_ref(&one));
    assert_eq!(
        press(&mut model, "a"),
        Effect::Attach(Box::new(one.clone()))
    );
    model.apply(ended(&one));
    assert_eq!(press(&mut model, "a"), Effect::None);
    assert_eq!(model.message, "a: already finished");
}

/// H6, S10
#[test]
fn hostile_names_and_output_are_shown_harmlessly() {
    let mut hostile = task("a", "s\u{1b}[2J", "", 1);
    hostile.spec.as_mut().unwrap().name = "\u{202e}\u{7}\n".to_owned();
    let mut model = model(&[hostile]);
    model.output("a", &chunk("\u{1b}[31mred\u{9b}\n\u{8}x\n"));
    model.message = "\u{1b}]0;title\u{7}".to_owned();
    let shown = screen(&model, 80, 24);
    let is_harmless = |c: char| c == '\n' || !(c.is_control() || c == '\u{202e}');
    assert!(shown.chars().all(is_harmless), "{shown:?}");
    assert!(shown.contains("\\u{1b}[31mred\\u{9b}"), "{shown}");
}

/// H6
#[test]
fn the_screen_has_counts_rows_output_and_keys_and_fits_any_size() {
    let mut stale = task("shell-aaaaaaaaaa", "s1", "", 1);
    (stale.stale, stale.needs_input) = (true, true);
    let child = task("shell-bbbbbbbbbb", "s1", "shell-aaaaaaaaaa", 2);
    let mut model = model(&[stale, child]);
    model.output("shell-aaaaaaaaaa", &chunk("one\ntwo"));
    model.output("shell-bbbbbbbbbb", &chunk("of another task"));
    let shown = screen(&model, 80, 24);
    for part in [
        "heeler top: 2 live, 1 stale, 1 need input, by session",
        "RUNNING  shell-aaaaaaaaaa",
        "RUNNING  └ shell-bbbbbbbbbb",
        "output of shell-aaaaaaaaaa",
        "one",
        "two",
        "q quit",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("of another task"), "{shown}");
    press(&mut model, "?");
    assert!(screen(&model, 80, 24).contains("keys; any key goes back"));
    for (columns, lines) in [(1, 1), (10, 3), (30, 8), (300, 100)] {
        screen(&model, columns, lines);
    }
}

/// H6
#[test]
fn the_selected_row_is_in_view_among_five_thousand() {
    let tasks: Vec<_> = (0..5000)
        .map(|index| task(&format!("shell-{index:04}"), "s", "", 1))
        .collect();
    let mut model = model(&tasks);
    assert!(screen(&model, 80, 24).contains("shell-0000"));
    model.select(2500);
    assert!(screen(&model, 80, 24).contains("shell-2500"));
    press(&mut model, "G");
    assert!(screen(&model, 80, 24).contains("shell-4999"));
}

/// H6
#[test]
fn the_output_follows_and_can_be_scrolled_back() {
    let texts = |pane: &Pane| -> Vec<String> {
        let lines = pane.last(2).into_iter();
        lines.map(|line| line.text).collect()
    };
    let mut pane = Pane::default();
    pane.push(&chunk("1\n2\n3\n10%\r20%"));
    assert_eq!(texts(&pane), ["3", "20%"]);
    pane.push(&chunk("\r\n"));
    pane.scroll(-1);
    assert_eq!(texts(&pane), ["2", "3"]);
    pane.push(&chunk("5\n6\n"));
    assert_eq!(texts(&pane), ["2", "3"], "the lines stay in place");
    pane.scroll(isize::MAX);
    assert_eq!(texts(&pane), ["5", "6"]);
    pane.push(&chunk(&"x".repeat(1 << 20)));
    assert!(texts(&pane).iter().all(|line| line.len() <= 4096));
    for _ in 0..5000 {
        pane.push(&chunk("line\n"));
    }
    assert!(pane.last(usize::MAX).len() <= 2000);
}

/// H6
#[test]
fn a_place_that_was_scrolled_to_keeps_its_lines_until_they_are_dropped() {
    let mut pane = Pane::default();
    pane.push(&chunk("1\n2\n3\n"));
    pane.scroll(-1);
    for _ in 0..5000 {
        pane.push(&chunk("line\n"));
    }
    assert_eq!(pane.last(2).len(), 1, "the oldest line");
    pane.scroll(8);
    assert_eq!(pane.last(2).len(), 2);
}

/// H6: a row that an event hides is not acted on.
#[test]
fn the_selection_leaves_a_row_that_the_filter_comes_to_hide() {
    let tasks = ["a", "b", "c"].map(|id| task(id, "s", "", 1));
    let mut model = model(&tasks);
    press(&mut model, "/running\nj");
    assert_eq!(selected(&model), "b");
    let stopping = BackgroundTask {
        state: TaskState::Stopping.into(),
        ..tasks[1].clone()
    };
    model.apply(event(TaskEventType::Stopping, stopping));
    assert_eq!(ids(&model), ["a", "c"]);
    assert_eq!(selected(&model), "c");
    assert_eq!(press(&mut model, "d"), Effect::Detach("c".to_owned()));
}
