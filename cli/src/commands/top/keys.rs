//! The keys of `top`, and the requests to the loop that they make.

use heeler_client::v1::BackgroundTask;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::{Mode, Model};
use crate::render::status;

/// The lines of the help.
pub(super) const HELP: [&str; 14] = [
    "up, k    select the task above",
    "down, j  select the task below",
    "g, G     select the first or the last task",
    "s        change the order: session, newest, state, name",
    "/        filter by a part of any column; enter keeps it",
    "esc      clear the filter",
    "o        hide or show the output",
    "pgup     scroll the output back, pgdn forward",
    "end      follow the output again",
    "c        cancel the task with its whole tree",
    "d        move the task to the background",
    "a        attach to the task; ctrl-b comes back",
    "ctrl-l   draw the screen again",
    "q        quit; the tasks keep running",
];

/// Lines of output that a page key moves.
const PAGE: isize = 8;

/// A request to the loop.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    None,
    Quit,
    Suspend,
    Redraw,
    Cancel(String),
    Detach(String),
    Attach(Box<BackgroundTask>),
}

/// Applies a key.
pub(super) fn press(model: &mut Model, key: KeyEvent) -> Effect {
    model.message.clear();
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match (key.code, ()) {
            (KeyCode::Char('c'), ()) => Effect::Quit,
            (KeyCode::Char('z'), ()) => Effect::Suspend,
            (KeyCode::Char('l'), ()) => Effect::Redraw,
            _ => Effect::None,
        };
    }
    match model.mode.clone() {
        Mode::Select => select(model, key.code),
        Mode::Filter => {
            filter(model, key.code);
            Effect::None
        }
        Mode::Confirm(id) => {
            model.mode = Mode::Select;
            match key.code == KeyCode::Char('y') {
                true => {
                    model.message = format!("{id}: stopping");
                    Effect::Cancel(id)
                }
                false => {
                    model.message = format!("{id}: not cancelled");
                    Effect::None
                }
            }
        }
        Mode::Help => {
            model.mode = Mode::Select;
            Effect::None
        }
    }
}

fn select(model: &mut Model, code: KeyCode) -> Effect {
    // A pair, since not every key is named.
    match (code, ()) {
        (KeyCode::Char('q'), ()) => return Effect::Quit,
        (KeyCode::Up | KeyCode::Char('k'), ()) => model.step(-1),
        (KeyCode::Down | KeyCode::Char('j'), ()) => model.step(1),
        (KeyCode::Home | KeyCode::Char('g'), ()) => model.select(0),
        (KeyCode::Char('G'), ()) => model.select(usize::MAX),
        (KeyCode::Char('s'), ()) => model.sort = model.sort.next(),
        (KeyCode::Char('/'), ()) => model.mode = Mode::Filter,
        (KeyCode::Esc, ()) => model.set_filter(String::new()),
        (KeyCode::Char('o') | KeyCode::Enter, ()) => model.toggle_output(),
        (KeyCode::PageUp, ()) => scroll(model, -PAGE),
        (KeyCode::PageDown, ()) => scroll(model, PAGE),
        (KeyCode::End, ()) => scroll(model, isize::MAX),
        (KeyCode::Char('?' | 'h'), ()) => model.mode = Mode::Help,
        (KeyCode::Char('c' | 'x'), ()) => confirm(model),
        (KeyCode::Char('d'), ()) => {
            let id = model.selected().map(|task| task.id.clone());
            return id.map_or(Effect::None, Effect::Detach);
        }
        (KeyCode::Char('a'), ()) => {
            let task = live(model).map(|task| Box::new(task.clone()));
            return task.map_or(Effect::None, Effect::Attach);
        }
        _ => {}
    }
    Effect::None
}

fn confirm(model: &mut Model) {
    if let Some(id) = live(model).map(|task| task.id.clone()) {
        model.mode = Mode::Confirm(id);
    }
}

/// The selected task, if it is live; a message says that it is not.
fn live(model: &mut Model) -> Option<&BackgroundTask> {
    let task = model.selected()?;
    if status::is_finished(task) {
        model.message = format!("{}: already finished", task.id);
        return None;
    }
    model.selected()
}

fn filter(model: &mut Model, code: KeyCode) {
    let mut filter = model.filter.clone();
    match (code, ()) {
        (KeyCode::Enter, ()) => model.mode = Mode::Select,
        (KeyCode::Esc, ()) => {
            model.mode = Mode::Select;
            filter.clear();
        }
        (KeyCode::Backspace, ()) => drop(filter.pop()),
        (KeyCode::Char(typed), ()) => filter.push(typed),
        _ => {}
    }
    model.set_filter(filter);
}

fn scroll(model: &mut Model, lines: isize) {
    if let Some(pane) = &mut model.pane {
        pane.scroll(lines);
    }
}
