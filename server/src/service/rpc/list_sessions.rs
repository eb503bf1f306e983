//! ListSessions: the sessions that have live tasks.

use heeler_proto::v1;

use crate::{
    journal::{LiveSession, SessionQuery},
    service::{
        Service,
        transport::Call,
        wire::{check, convert, page_token, refusal::Refusal},
    },
    task::{Filter, IdKey, Timestamp},
};

const DEFAULT_PAGE: usize = 100;
const LARGEST_PAGE: usize = 500;
/// The expected size of a session in an answer.
const SESSION_BYTES: usize = 512;

pub(super) async fn list_sessions(
    service: &Service,
    request: v1::ListSessionsRequest,
    call: &Call,
) -> Result<v1::ListSessionsResponse, Refusal> {
    let page_size = match usize::try_from(request.page_size) {
        Ok(0) => DEFAULT_PAGE,
        Ok(size) => size.min(LARGEST_PAGE),
        Err(_) => return Err(Refusal::field("page_size", "is negative")),
    };
    let session_id = check::optional_text("session_id", request.session_id, check::SHORT_TEXT)?;
    let query = SessionQuery {
        filter: service.seen(Filter {
            session_id,
            ..Filter::default()
        }),
        after: page_token::read_text(&request.page_token)?,
        // One more means a next page.
        limit: page_size + 1,
    };
    call.reserve(page_size * SESSION_BYTES).await;
    let (revision, mut sessions) = service.journal.sessions(&query);
    let has_next = sessions.len() > page_size;
    sessions.truncate(page_size);
    let last = sessions.last().filter(|_| has_next);
    let next_page_token = last.map(|last| page_token::write_text(&last.session_id));
    let signs = service.supervisor.signs_of_life(&sessions).await;
    let key = service.journal.id_key();
    let shown = sessions.iter().zip(signs).map(|(session, sign)| {
        let owners = match service.authority.bound() {
            None => service.supervisor.owners(&session.session_id),
            Some(_) => None,
        };
        v1::SessionInfo {
            owners: owners.map(|owners| u32::try_from(owners).unwrap_or(u32::MAX)),
            ..show(session, sign, key)
        }
    });
    Ok(v1::ListSessionsResponse {
        sessions: shown.collect(),
        next_page_token: next_page_token.unwrap_or_default(),
        revision: revision.0,
    })
}

fn show(session: &LiveSession, sign: Option<Timestamp>, key: IdKey) -> v1::SessionInfo {
    let LiveSession {
        session_id,
        activity,
        since,
        changed,
        tasks: _,
    } = session;
    v1::SessionInfo {
        activity: Some(convert::activity(session_id, activity, key)),
        since_time: Some(convert::timestamp(*since)),
        activity_time: Some(convert::timestamp(
            sign.map_or(*changed, |at| at.max(*changed)),
        )),
        only_stale: activity.is_only_stale(),
        owners: None,
    }
}
