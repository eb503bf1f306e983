//! The loop of `top`: one event at a time changes the model, and the screen is drawn after it.
//!
//! The streams of the SDK resume after a restart of the daemon. Nothing is asked for repeatedly but the
//! resources of the selected task, which no event tells.

use std::{future, time::Duration};

use heeler_client::{
    CancelOptions, Client, DetachOptions, Error, Filter, Follow, FollowItem, StreamExt, Watch,
    WatchItem, WatchOptions,
    v1::{
        BackgroundTask, CancelResult, DetachResult, ErrorReason, FollowOutputRequest,
        InspectResponse, OutputView, follow_output_request::Start,
    },
};
use nix::sys::signal::Signal;
use ratatui::crossterm::event::Event;
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

use super::{
    attach::{self, Ended},
    keyboard::Keyboard,
    keys::{self, Effect},
    model::{Daemon, Model},
    screen::Screen,
};
use crate::{
    commands::tasks::{cancel, detach},
    context::ClientArgs,
    exit::Exit,
    failure::Failure,
    foreground::signals::{Received, Signals},
    render::status,
};

/// The least time between two frames: a thousand events a second make no more frames than this.
const FRAME: Duration = Duration::from_millis(40);
/// The interval at which the ages are drawn again.
const AGES: Duration = Duration::from_secs(1);
/// The interval at which the resources of the selected task are read.
const RESOURCES: Duration = Duration::from_secs(5);
/// Lines of output that are read of a task when it is selected.
const TAIL_LINES: u64 = 500;
/// The name of this command in the records of a stop or a detach.
const ACTOR: &str = "heeler top";

/// The response to a call.
#[derive(Debug)]
enum Response {
    Cancelled(Result<CancelResult, Error>),
    Detached(Result<DetachResult, Error>),
    Inspected(Result<Box<InspectResponse>, Error>),
}

/// One of the things that the loop waits for.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one value, and it is used at once"
)]
enum Input {
    Watched(Option<Result<WatchItem, Error>>),
    Followed(Option<Result<FollowItem, Error>>),
    Typed(Option<Event>),
    Signalled(Received),
    Responded(Response),
    ReadResources,
    Aged,
    DrawFrame,
}

/// The task whose output is shown.
#[derive(Debug)]
struct Followed {
    id: String,
    /// None once the stream has ended.
    stream: Option<Follow>,
}

#[derive(Debug)]
pub(super) struct Live {
    client: Client,
    /// The flags of this command, for an attach to the same daemon.
    args: ClientArgs,
    filter: Filter,
    model: Model,
    screen: Screen,
    keyboard: Keyboard,
    signals: Signals,
    watch: Watch,
    followed: Option<Followed>,
    calls: JoinSet<Response>,
    /// Present while the model is newer than the screen: the time of the next frame.
    frame: Option<Instant>,
}

impl Live {
    /// Takes the terminal.
    pub(super) fn open(
        client: Client,
        args: ClientArgs,
        filter: Filter,
        signals: Signals,
    ) -> Result<Self, Failure> {
        let screen = Screen::open().map_err(Failure::setup)?;
        Ok(Self {
            model: Model::new(),
            screen,
            keyboard: Keyboard::open().map_err(Failure::setup)?,
            signals,
            watch: watch(&client, &filter),
            followed: None,
            calls: JoinSet::new(),
            frame: None,
            client,
            args,
            filter,
        })
    }

    /// Shows the tasks until a key, a signal or an error ends it.
    pub(super) async fn run(mut self) -> Result<Exit, Failure> {
        self.screen.draw(&self.model)?;
        let mut ages = interval(AGES);
        let mut resources = interval(RESOURCES);
        for timer in [&mut ages, &mut resources] {
            timer.set_missed_tick_behavior(MissedTickBehavior::Skip);
        }
        loop {
            let input = tokio::select! {
                item = self.watch.next() => Input::Watched(item),
                item = next(&mut self.followed) => Input::Followed(item),
                event = self.keyboard.next() => Input::Typed(event),
                signal = self.signals.next() => Input::Signalled(signal),
                Some(Ok(response)) = self.calls.join_next() => Input::Responded(response),
                () = at(self.frame) => Input::DrawFrame,
                _ = resources.tick() => Input::ReadResources,
                _ = ages.tick() => Input::Aged,
            };
            if let Some(exit) = self.handle(input).await? {
                return Ok(exit);
            }
            if self.follow_selected() {
                resources.reset_after(FRAME);
            }
        }
    }

    async fn handle(&mut self, input: Input) -> Result<Option<Exit>, Failure> {
        match input {
            Input::Watched(item) => self.watched(item)?,
            Input::Followed(item) => self.output(item),
            Input::Typed(Some(Event::Key(key))) => {
                let effect = keys::press(&mut self.model, key);
                return self.carry_out(effect).await;
            }
            // Most likely another size.
            Input::Typed(Some(_)) | Input::Signalled(Received::Resize) | Input::Aged => {}
            Input::Typed(None) | Input::Signalled(Received::HangUp) => {
                return Ok(Some(Exit::Signalled(Signal::SIGHUP)));
            }
            Input::Signalled(Received::End(signal)) => return Ok(Some(Exit::Signalled(signal))),
            Input::Signalled(Received::Suspend) => self.screen.suspend()?,
            Input::Signalled(Received::Continue) => self.screen.resume()?,
            Input::Responded(response) => self.responded(response),
            Input::ReadResources => {
                self.read_resources();
                return Ok(None);
            }
            Input::DrawFrame => {
                self.screen.draw(&self.model)?;
                self.frame = None;
                return Ok(None);
            }
        }
        self.frame.get_or_insert_with(|| Instant::now() + FRAME);
        Ok(None)
    }

    fn watched(&mut self, item: Option<Result<WatchItem, Error>>) -> Result<(), Failure> {
        match item {
            Some(Ok(item)) => self.model.apply(item),
            Some(Err(error)) if !is_outdated(&error) => return Err(error.into()),
            // The daemon has no events from here on: the state is read again.
            Some(Err(_)) | None => {
                self.model.reset();
                self.watch = watch(&self.client, &self.filter);
            }
        }
        Ok(())
    }

    fn output(&mut self, item: Option<Result<FollowItem, Error>>) {
        match item {
            Some(Ok(FollowItem::Output { task_id, chunk })) => self.model.output(&task_id, &chunk),
            Some(Ok(FollowItem::Task(_) | FollowItem::Ended(_) | FollowItem::Gone(_))) => {}
            // The output is read again.
            Some(Err(error)) if is_outdated(&error) => self.followed = None,
            Some(Err(error)) => {
                self.model.message = message(error);
                self.end_follow();
            }
            None => self.end_follow(),
        }
    }

    /// Leaves the output as it is until another task is selected.
    fn end_follow(&mut self) {
        if let Some(followed) = &mut self.followed {
            followed.stream = None;
        }
    }

    /// Follows the output of the selected task, if it is shown. Returns true if it is another task.
    fn follow_selected(&mut self) -> bool {
        let shown = self.model.pane.as_ref().and(self.model.selected());
        let wanted = shown.map(|task| task.id.as_str());
        let followed = self.followed.as_ref().map(|followed| followed.id.as_str());
        if wanted == followed {
            return false;
        }
        self.followed = wanted.map(|id| {
            let request = FollowOutputRequest {
                filter: Some(Filter::all().task(id).into()),
                start: Some(Start::TailLines(TAIL_LINES)),
                view: OutputView::Plain.into(),
                include_finished: true,
                ..FollowOutputRequest::default()
            };
            Followed {
                id: id.to_owned(),
                stream: Some(self.client.follow_output(request)),
            }
        });
        self.model.clear_output();
        true
    }

    async fn carry_out(&mut self, effect: Effect) -> Result<Option<Exit>, Failure> {
        match effect {
            Effect::None => {}
            Effect::Quit => return Ok(Some(Exit::Success)),
            Effect::Suspend => self.screen.suspend()?,
            Effect::Redraw => self.screen.clear()?,
            Effect::Cancel(id) => {
                let task = self.client.task(id);
                let options = CancelOptions::graceful().actor(ACTOR);
                self.calls
                    .spawn(async move { Response::Cancelled(task.cancel(options).await) });
            }
            Effect::Detach(id) => {
                let task = self.client.task(id);
                let options = DetachOptions::new().actor(ACTOR);
                self.calls
                    .spawn(async move { Response::Detached(task.detach(options).await) });
            }
            Effect::Attach(task) => {
                if let Some(signal) = self.attach(&task).await? {
                    return Ok(Some(Exit::Signalled(signal)));
                }
            }
        }
        // A key is answered at once.
        self.frame = Some(Instant::now());
        Ok(None)
    }

    /// Attaches to a task in the place of the screen. Returns a signal that ends this command, too.
    async fn attach(&mut self, task: &BackgroundTask) -> Result<Option<Signal>, Failure> {
        self.keyboard.close().await;
        self.screen.restore();
        let ended = attach::run(task, &self.args, &mut self.signals).await;
        let id = &task.id;
        self.model.message = match ended {
            Ok(Ended::Signalled(signal)) => return Ok(Some(signal)),
            Ok(Ended::Back(status)) if status.success() => format!("{id}: no longer attached"),
            Ok(Ended::Back(status)) => format!("{id}: no longer attached, {status}"),
            Err(error) => format!("{id}: cannot attach: {error}"),
        };
        self.screen.take()?;
        self.keyboard = Keyboard::open().map_err(Failure::setup)?;
        Ok(None)
    }

    fn read_resources(&mut self) {
        let shown = self.model.pane.as_ref().and(self.model.selected());
        if let Some(task) = shown.filter(|task| !status::is_finished(task)) {
            let task = self.client.task(&task.id);
            self.calls
                .spawn(async move { Response::Inspected(task.inspect().await.map(Box::new)) });
        }
    }

    fn responded(&mut self, response: Response) {
        let message = match response {
            Response::Cancelled(Ok(result)) => cancel::report(&result),
            Response::Detached(Ok(result)) => detach::line(&result),
            Response::Cancelled(Err(error)) | Response::Detached(Err(error)) => message(error),
            Response::Inspected(Ok(found)) => {
                self.model.daemon = Daemon::Answers;
                return self.model.inspected(&found);
            }
            Response::Inspected(Err(Error::Refused(_))) => return,
            Response::Inspected(Err(_)) => {
                self.model.daemon = Daemon::Unavailable;
                return;
            }
        };
        self.model.message = message;
    }
}

fn watch(client: &Client, filter: &Filter) -> Watch {
    client.watch(WatchOptions::with_initial_state().matching(filter.clone()))
}

/// Returns whether the daemon no longer has the events after the latest one.
fn is_outdated(error: &Error) -> bool {
    error.is(ErrorReason::RevisionOutOfRange) || error.is(ErrorReason::EpochMismatch)
}

fn message(error: Error) -> String {
    Failure::from(error).message().unwrap_or_default()
}

async fn next(followed: &mut Option<Followed>) -> Option<Result<FollowItem, Error>> {
    match followed
        .as_mut()
        .and_then(|followed| followed.stream.as_mut())
    {
        Some(stream) => stream.next().await,
        None => future::pending().await,
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => future::pending().await,
    }
}
