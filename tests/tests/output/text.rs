//! Output as text: the log keeps every byte, and no answer ends inside a character.

use heeler_tests::{Api, Daemon, output::text, request::read, secs, v1::*, within};

/// O5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_log_keeps_every_byte_and_the_text_view_replaces_invalid_utf_8() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let hex = "00ff61fe c3 28 e282 62 f0 9f 98 80 1b 5b 0d 0a".replace(' ', "");
    let id = api.start(daemon.script(&format!("raw {hex}"))).await.id;
    api.ended(&id).await;
    let all = api.output(&id).await;
    let digits: String = all.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digits, hex);
    let shown = as_text(&api, &id, 0).await;
    assert_eq!(shown, String::from_utf8_lossy(&all));
}

/// All output as text, read in steps of at most `max_bytes`.
async fn as_text(api: &Api, id: &str, max_bytes: u32) -> String {
    let (mut all, mut offset) = (String::new(), 0);
    loop {
        let view = OutputView::Text.into();
        let answer = api
            .read(ReadOutputRequest {
                view,
                max_bytes,
                ..read(id, offset)
            })
            .await
            .unwrap();
        answer.chunks.iter().for_each(|chunk| all += text(chunk));
        if answer.next_offset == offset {
            return all;
        }
        offset = answer.next_offset;
    }
}

/// O5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_text_view_never_cuts_a_character() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let written = "a\u{e9}\u{20ac}\u{1f600}b".repeat(50);
    let hex: String = written.bytes().map(|byte| format!("{byte:02x}")).collect();
    let id = api.start(daemon.script(&format!("raw {hex}"))).await.id;
    api.ended(&id).await;
    for max_bytes in [1, 3, 4, 5, 7, 16, 1000, 0] {
        assert_eq!(
            as_text(&api, &id, max_bytes).await,
            written,
            "{max_bytes} bytes at a time"
        );
    }
}

/// O5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_incomplete_character_waits_for_its_rest() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!("raw 61e282 gate {} raw ac62e2", daemon.file("gate"));
    let fixture = daemon.run(&api, &script).await;
    let id = &fixture.id;
    api.output_reaches(id, 3).await;
    let text_from = |offset| ReadOutputRequest {
        view: OutputView::Text.into(),
        ..read(id, offset)
    };
    let half = api.read(text_from(0)).await.unwrap();
    assert_eq!(
        (text(&half.chunks[0]), half.chunks.len(), half.next_offset),
        ("a", 1, 1)
    );
    let request = ReadOutputRequest {
        wait: Some(secs(30)),
        ..text_from(1)
    };
    let call = tokio::spawn({
        let api = api.clone();
        async move { api.read(request).await.unwrap() }
    });
    gate.open();
    api.ended(id).await;
    let rest = within("the rest of the character", call).await.unwrap();
    assert!(text(&rest.chunks[0]).starts_with('\u{20ac}'), "{rest:?}");
    assert_eq!(
        as_text(&api, id, 0).await,
        "a\u{20ac}b\u{fffd}",
        "the end replaces an incomplete character"
    );
}
