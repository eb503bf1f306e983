//! Draws the model: a head line, the tasks, the output of the selected one, and a foot line.

use heeler_client::v1::{BackgroundTask, TaskState};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Clear, Paragraph, Wrap},
};

use super::{
    keys,
    model::{Daemon, Mode, Model},
    pane::{Pane, Source},
    tree::Row,
};
use crate::render::{
    progress, spec, status,
    table::{Column, Table},
    text, units,
};

const COLUMNS: [Column; 8] = [
    Column::whole("STATE"),
    Column::between("ID", 16, 28),
    Column::whole("AGE"),
    Column::between("NOTE", 5, 20),
    Column::between("SESSION", 7, 20),
    Column::between("NAME", 6, 24),
    Column::between("INTENT", 6, 40),
    Column::between("COMMAND", 8, usize::MAX),
];
/// The column that is left out where no task has an intent.
const INTENT: usize = 6;
/// Deeper tasks are not indented further.
const DEEPEST: usize = 5;
/// The most lines of a message.
const MESSAGE_LINES: u16 = 3;

const FOOT: &str = "q quit  ? help  / filter  s sort  c cancel  d detach  a attach  o output";

/// The use of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colours {
    Shown,
    None,
}

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, colours: Colours) {
    let foot = foot(model);
    let columns = usize::from(frame.area().width).max(1);
    // A line that is broken between words may need one more.
    let lines = text::width(&foot).div_ceil(columns.saturating_sub(12).max(1));
    let lines = match foot == FOOT {
        true => 1,
        false => u16::try_from(lines).unwrap_or(1).clamp(1, MESSAGE_LINES),
    };
    let output = match model.pane {
        Some(_) => Constraint::Fill(1),
        None => Constraint::Length(0),
    };
    let rows = [
        Constraint::Length(1),
        Constraint::Fill(1),
        output,
        Constraint::Length(lines),
    ];
    let [head, tasks, output, bottom] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(self::head(model), head);
    draw_tasks(frame, tasks, model, colours);
    if let Some(pane) = &model.pane {
        draw_output(frame, output, model, pane, colours);
    }
    let foot = Paragraph::new(foot).wrap(Wrap { trim: true });
    let is_question = matches!(model.mode, Mode::Confirm(_));
    let style = match is_question || !model.message.is_empty() {
        true => Style::new().add_modifier(Modifier::BOLD),
        false => Style::new().add_modifier(Modifier::DIM),
    };
    frame.render_widget(foot.style(style), bottom);
    if model.mode == Mode::Help {
        draw_help(frame);
    }
}

/// The number of tasks and the order of the rows.
fn head(model: &Model) -> Line<'static> {
    let count = |is_counted: fn(&BackgroundTask) -> bool| {
        let live = model.live();
        live.filter(|task| is_counted(task)).count()
    };
    let mut facts = vec![format!("heeler top: {} live", count(|_| true))];
    let counts = [
        (count(|task| task.state() == TaskState::Queued), "queued"),
        (count(|task| task.stale), "stale"),
        (count(|task| task.needs_input), "need input"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    facts.extend(counts.map(|(count, word)| format!("{count} {word}")));
    facts.push(format!("by {}", model.sort.word()));
    if !model.filter.is_empty() || model.mode == Mode::Filter {
        facts.push(format!("filter: {}", text::visible(&model.filter)));
    }
    if model.daemon == Daemon::Unavailable {
        facts.push("the daemon is unavailable; waiting for it".to_owned());
    }
    Line::from(facts.join(", ")).style(Modifier::BOLD)
}

fn draw_tasks(frame: &mut Frame<'_>, area: Rect, model: &Model, colours: Colours) {
    let rows = model.rows();
    // One line has the titles.
    let height = usize::from(area.height.saturating_sub(1));
    let at = model.position();
    let last_start = rows.len().saturating_sub(height);
    let start = at.saturating_sub(height / 2).min(last_start);
    let shown = &rows[start..rows.len().min(start + height)];
    let mut table = Table::new(&COLUMNS);
    for row in shown {
        add(&mut table, row);
    }
    if shown
        .iter()
        .all(|row| progress::intent(row.task).is_empty())
    {
        table.leave_out(INTENT);
    }
    let lines = table.lines(Some(usize::from(area.width)));
    let mut lines = lines.into_iter();
    let titles = lines.next().unwrap_or_default();
    let mut drawn = vec![Line::from(titles).style(Modifier::UNDERLINED)];
    let selected = model.selected().map(|task| task.id.as_str());
    drawn.extend(lines.zip(shown).map(|(line, row)| {
        let line = coloured(line, row.task, colours);
        match selected == Some(row.task.id.as_str()) {
            true => line.style(Modifier::REVERSED),
            false => line,
        }
    }));
    frame.render_widget(Paragraph::new(drawn), area);
}

fn add(table: &mut Table, row: &Row<'_>) {
    let task = row.task;
    let id = match row.depth.min(DEEPEST) {
        0 => task.id.clone(),
        depth => format!("{}└ {}", " ".repeat(2 * (depth - 1)), task.id),
    };
    table.row([
        status::state(task),
        &id,
        &units::age(task.create_time),
        &status::note(task),
        spec::session(task),
        spec::name(task),
        progress::intent(task),
        &spec::command(task),
    ]);
}

/// Colours the state, which begins the line.
fn coloured(line: String, task: &BackgroundTask, colours: Colours) -> Line<'static> {
    let state = status::state(task);
    match (line.strip_prefix(state), colours) {
        (Some(rest), Colours::Shown) => Line::from(vec![
            Span::styled(state, colour(task)),
            Span::raw(rest.to_owned()),
        ]),
        (Some(_) | None, Colours::Shown | Colours::None) => Line::from(line),
    }
}

fn colour(task: &BackgroundTask) -> Color {
    match task.state() {
        TaskState::Running | TaskState::Completed => Color::Green,
        TaskState::Queued | TaskState::Starting | TaskState::Stopping => Color::Yellow,
        TaskState::Failed | TaskState::TimedOut | TaskState::Lost => Color::Red,
        TaskState::Cancelled => Color::Magenta,
        TaskState::Unspecified => Color::Reset,
    }
}

fn draw_output(frame: &mut Frame<'_>, area: Rect, model: &Model, pane: &Pane, colours: Colours) {
    let columns = usize::from(area.width);
    let title = text::cut(&title(model, pane), columns).into_owned();
    let mut lines = vec![Line::from(title).style(Modifier::UNDERLINED)];
    let height = usize::from(area.height.saturating_sub(1));
    lines.extend(pane.last(height).into_iter().map(|line| {
        let style = match (line.source, colours) {
            (Source::Stderr, Colours::Shown) => Style::new().fg(Color::Red),
            (Source::Gap, Colours::Shown | Colours::None) => {
                Style::new().add_modifier(Modifier::DIM)
            }
            (Source::Stdout, Colours::Shown | Colours::None) | (Source::Stderr, Colours::None) => {
                Style::new()
            }
        };
        Line::styled(text::cut(&line.text, columns).into_owned(), style)
    }));
    frame.render_widget(Paragraph::new(lines), area);
}

/// The task whose output is shown, with its outcome or its resources.
fn title(model: &Model, pane: &Pane) -> String {
    let Some(task) = model.selected() else {
        return "no task".to_owned();
    };
    let mut facts = vec![format!("output of {}", task.id)];
    if status::is_finished(task) {
        facts.push(status::state_and_outcome(task));
    } else if !model.resources.is_empty() {
        facts.push(model.resources.clone());
    }
    if !pane.follows() {
        facts.push("scrolled back; end follows".to_owned());
    }
    text::visible(&facts.join(", ")).into_owned()
}

/// The question, the message or the keys.
fn foot(model: &Model) -> String {
    let foot = match &model.mode {
        Mode::Confirm(id) => format!("cancel {id} with its whole tree? y/n"),
        Mode::Filter => {
            "type a part of any column; enter keeps the filter, esc clears it".to_owned()
        }
        Mode::Select | Mode::Help => match model.message.as_str() {
            "" => FOOT.to_owned(),
            message => message.to_owned(),
        },
    };
    text::visible(&foot).into_owned()
}

fn draw_help(frame: &mut Frame<'_>) {
    let widest = keys::HELP.iter().map(|line| text::width(line)).max();
    let width = u16::try_from(widest.unwrap_or(0) + 4).unwrap_or(u16::MAX);
    let height = u16::try_from(keys::HELP.len() + 2).unwrap_or(u16::MAX);
    let area = frame
        .area()
        .centered(Constraint::Length(width), Constraint::Length(height));
    let lines: Vec<Line<'_>> = keys::HELP
        .iter()
        .map(|line| Line::from(format!(" {line}")))
        .collect();
    let block = Block::bordered().title(" keys; any key goes back ");
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}
