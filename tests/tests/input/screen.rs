//! The text on a terminal's screen.

use heeler_tests::{Api, Daemon, SpawnRequestExt as _, argv, shell, v1::*};

use super::output_with;

async fn screen(api: &Api, id: &str) -> Option<Screen> {
    let request = InspectRequest {
        task_id: id.to_owned(),
        include_screen: true,
        ..InspectRequest::default()
    };
    api.raw()
        .inspect(request)
        .await
        .unwrap()
        .into_inner()
        .screen
}

/// I5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_screen_is_what_a_person_would_see() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = r"printf 'wrong\rright\n\033[31mred\033[0m\033[3;5Hthere\033[1;1H'; cat > /dev/null; printf '\033[2Jgone'";
    let id = api.start(shell(script).with_terminal(20, 4)).await.id;
    output_with(&api, &id, "there").await;
    let shown = screen(&api, &id).await.unwrap();
    assert_eq!(shown.lines, ["right", "red", "    there", ""]);
    assert_eq!((shown.columns, shown.rows), (20, 4));
    assert_eq!((shown.cursor_column, shown.cursor_row), (0, 0));
    assert!(shown.cursor_visible);
    api.resize(&id, 3, 2).await.unwrap();
    let shown = screen(&api, &id).await.unwrap();
    assert_eq!((shown.columns, shown.rows, shown.lines.len()), (3, 2, 2));
    api.close_input(&id).await;
    api.ended(&id).await;
    let shown = screen(&api, &id).await.unwrap();
    assert_eq!((shown.columns, shown.rows), (20, 4));
    assert_eq!(shown.lines[0], "gone");
    let plain = api.start(argv(["true"])).await.id;
    assert_eq!(screen(&api, &plain).await, None);
}

/// I5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_screen_of_long_output_shows_its_end() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = shell("seq 1 100000; echo last");
    let id = api.start(request.with_terminal(80, 24)).await.id;
    api.ended(&id).await;
    let shown = screen(&api, &id).await.unwrap();
    assert!(
        shown.lines.iter().any(|line| line == "last"),
        "{:?}",
        &shown.lines[..5]
    );
}
