//! Output as plain text: without terminal escape sequences, wherever a read begins and ends.

use heeler_tests::{Daemon, output::text, request::read, shell, v1::*};

/// O5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn escape_sequences_are_removed_whatever_the_size_of_the_reads() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = r"for i in 1 2 3; do
        printf '\033[1;3%sm%s\033[0m é\033]8;;https://heeler.dev/%s\033\\link\033]8;;\033\\\n' $i $i $i
        printf '\033[33mwarn\033[0m\n' >&2
    done; printf '\033[2Klast\a'";
    let id = api.start(shell(script)).await.id;
    api.ended(&id).await;
    for max_bytes in [4, 5, 7, 13, 50, 0] {
        let mut shown = [String::new(), String::new()];
        let mut offset = 0;
        loop {
            let request = ReadOutputRequest {
                view: OutputView::Plain.into(),
                max_bytes,
                ..read(&id, offset)
            };
            let answer = api.read(request).await.unwrap();
            for chunk in &answer.chunks {
                let stream = usize::from(chunk.stream() == OutputStream::Stderr);
                shown[stream] += text(chunk);
            }
            offset = answer.next_offset;
            if offset >= answer.end_offset {
                break;
            }
        }
        let [stdout, stderr] = shown;
        assert_eq!(stdout, "1 élink\n2 élink\n3 élink\nlast", "{max_bytes}");
        assert_eq!(stderr, "warn\n".repeat(3), "{max_bytes}");
    }
}
