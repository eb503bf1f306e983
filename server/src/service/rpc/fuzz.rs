//! The edge under arbitrary bytes: what a client may send, into every check before the supervisor.

use heeler_proto::v1::{self, output_chunk::Content};
use prost::Message;
use tonic::{Code, Status};

use super::{bookmarks, cancel, follow_output, list, read_output, update_task, wait, write_input};
use crate::{
    fuzz::Input,
    output::select::Escapes,
    service::wire::{check, filter, page_token, refusal::Refusal, spec, task, text as text_view},
    supervisor::Piece,
    task::{
        Chunk, Command, IdKey, Item, Kind, Seq, SpawnRequest, Stream, Task, Timestamp, ampersand,
    },
};

/// Clients limit the headers that an error comes in to 8 KiB by default; base64 takes a third more.
const LONGEST_DETAILS: usize = 5 * 1024;

/// A request of the RPC that the first byte chooses: it is refused with a field, or accepted as it is.
pub fn request(bytes: &[u8]) {
    let Some((rpc, body)) = bytes.split_first() else {
        return;
    };
    let refused = match rpc % 11 {
        0 => decoded(body, |request| spec::request(request).map(accepted)),
        1 => decoded(body, |request: v1::ListRequest| {
            page_token::read(&request.page_token, list::fingerprint(&request))?;
            filter::reading(request.filter).map(drop)
        }),
        2 => decoded(body, |request: v1::WatchEventsRequest| {
            bookmarks::interval(request.bookmark_interval)?;
            let filter = filter::reading(request.filter)?;
            filter::event_kinds(&request.types, &filter).map(drop)
        }),
        3 => decoded(body, |request: v1::WaitRequest| {
            check::enumerated::<v1::WaitCondition>("until", request.until)?;
            check::optional_duration("timeout", request.timeout)?;
            if request.r#match.is_some() {
                wait::matched::check(request.r#match.clone())?;
            }
            wait::goal(request).map(drop)
        }),
        4 => decoded(body, |request: v1::CancelRequest| {
            cancel::mode(request.how)?;
            check::reason(request.reason)?;
            filter::selecting(request.filter).map(drop)
        }),
        5 => decoded(body, |request: v1::DetachRequest| {
            check::reason(request.reason)?;
            check::timeout("timeout", request.timeout)?;
            filter::selecting(request.filter).map(drop)
        }),
        6 => decoded(body, |request: v1::ReadOutputRequest| {
            read_output::check(request).map(drop)
        }),
        7 => decoded(body, |request: v1::RemoveRequest| {
            filter::acting(request.filter).map(drop)
        }),
        8 => decoded(body, |request: v1::FollowOutputRequest| {
            follow_output::check(request).map(drop)
        }),
        9 => decoded(body, |request: v1::WriteInputRequest| {
            write_input::check(request).map(drop)
        }),
        _ => decoded(body, |request: v1::UpdateTaskRequest| {
            update_task::check(request).map(drop)
        }),
    };
    if let Some(refusal) = refused {
        is_for_the_client(refusal.into());
    }
}

fn decoded<M: Message + Default>(
    body: &[u8],
    check: impl FnOnce(M) -> Result<(), Refusal>,
) -> Option<Refusal> {
    check(M::decode(body).ok()?).err()
}

/// A refusal blames the request, has its details, and fits in a header.
fn is_for_the_client(status: Status) {
    let codes = [
        Code::InvalidArgument,
        Code::NotFound,
        Code::FailedPrecondition,
    ];
    assert!(codes.contains(&status.code()), "{status:?}");
    let size = status.details().len();
    assert!((1..LONGEST_DETAILS).contains(&size), "{size} bytes");
}

/// An accepted request survives the journal and is shown as it came.
fn accepted(request: SpawnRequest) {
    let json = serde_json::to_vec(&request).expect("a request can be recorded");
    let read: SpawnRequest = serde_json::from_slice(&json).expect("a recorded request can be read");
    assert!(read == request, "recorded as another request: {request:?}");
    let mut shown = spec::show(&request.spec);
    if let Some(environment) = &mut shown.environment {
        environment.variable_names.clear();
        environment.variables = request.variables.clone();
    }
    let again = spec::request(v1::SpawnRequest {
        request_id: request.request_id.clone().unwrap_or_default(),
        spec: Some(shown),
    });
    assert!(again.expect("a shown spec is accepted") == request);
    if let Command::Shell { script, program } = &request.spec.command {
        ampersand::trailing(script, program.as_deref());
    }
    let id = IdKey(7).task_id(Kind::Shell, Seq(1));
    show(&Task::new(Seq(1), id, request.spec, Timestamp(1)));
}

/// Shows a task, whatever its facts are.
pub(crate) fn show(task: &Task) {
    task::show(task).encode_to_vec();
}

/// Output of two streams, read as text in pieces: each read advances, and all pieces together are the
/// text of each stream.
pub fn text(bytes: &[u8]) {
    let mut input = Input(bytes);
    let piece = usize::from(input.byte()) + 4;
    let chunks = chunks(&mut input);
    let end = chunks.last().map_or(0, Chunk::end);
    let mut offset = 0;
    let mut texts = [String::new(), String::new()];
    while offset < end {
        let items: Vec<_> = read(&chunks, offset, piece)
            .into_iter()
            .map(Item::Chunk)
            .collect();
        let piece = Piece {
            offset,
            next: items.last().map_or(offset, Item::end),
            items,
            end,
            ..Piece::default()
        };
        let (shown, next) = text_view::view(piece, Escapes::Kept, true);
        assert!(
            next > offset && next <= end,
            "from {offset} to {next} of {end}"
        );
        for chunk in shown {
            let stream = usize::from(chunk.stream() == v1::OutputStream::Stderr);
            match chunk.content {
                Some(Content::Text(text)) => texts[stream] += &text,
                Some(Content::Data(_) | Content::Gap(_)) | None => panic!("not text"),
            }
        }
        offset = next;
    }
    // Only a stream alone is decoded as a whole: an interrupted character may be cut for the other one.
    for (stream, text) in [Stream::Stdout, Stream::Stderr].into_iter().zip(&texts) {
        if chunks.iter().all(|chunk| chunk.stream == stream) {
            let all: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.data.clone()).collect();
            assert_eq!(*text, String::from_utf8_lossy(&all));
        }
    }
}

fn chunks(input: &mut Input<'_>) -> Vec<Chunk> {
    let (mut chunks, mut offset) = (Vec::new(), 0);
    while !input.is_empty() && chunks.len() < 64 {
        let head = input.byte();
        let data = input.bytes(usize::from(head >> 1) + 1).to_vec();
        if data.is_empty() {
            break;
        }
        let stream = match head & 1 {
            0 => Stream::Stdout,
            _ => Stream::Stderr,
        };
        let len = data.len() as u64;
        chunks.push(Chunk {
            offset,
            stream,
            at: Timestamp(offset),
            data,
        });
        offset += len;
    }
    chunks
}

/// The chunks from an offset on, cut to a size.
fn read(chunks: &[Chunk], from: u64, mut size: usize) -> Vec<Chunk> {
    let mut read = Vec::new();
    for chunk in chunks {
        let skip = from
            .saturating_sub(chunk.offset)
            .min(chunk.data.len() as u64);
        let data = &chunk.data[skip as usize..];
        let data = data[..data.len().min(size)].to_vec();
        size -= data.len();
        if !data.is_empty() {
            read.push(Chunk {
                offset: chunk.offset + skip,
                data,
                ..chunk.clone()
            });
        }
    }
    read
}
