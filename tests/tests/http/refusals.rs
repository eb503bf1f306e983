//! Requests that an HTTP address refuses.

use std::time::Duration;

use heeler_tests::{
    DEADLINE, Daemon,
    http1::Http,
    http2::{self, Connection},
    shell,
    v1::TaskRights,
    within,
};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::Instant,
};

/// Lists with one header replaced, or removed.
async fn list(http: &Http, header: &str, value: Option<&str>) -> (StatusCode, String) {
    let mut request = http.request("List", "{}");
    let header: HeaderName = header.parse().unwrap();
    match value {
        Some(value) => drop(request.headers_mut().insert(header, value.parse().unwrap())),
        None => drop(request.headers_mut().remove(header)),
    }
    let answer = http.send(request).await;
    let text = String::from_utf8_lossy(&answer.body);
    assert!(!text.contains("secret-name"), "it gets nothing: {text}");
    (answer.status, answer.error().1)
}

/// H2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn another_host_or_origin_or_no_token_gets_nothing() {
    let daemon = Daemon::builder().http().start().await;
    let http = daemon.http().await;
    let named = json!({"spec": {"name": "secret-name", "shell": {"script": "sleep 1000"}}});
    http.call("Spawn", &named.to_string()).await;
    let port = http.host.rsplit(':').next().unwrap();
    let forbidden = (StatusCode::FORBIDDEN, "ORIGIN_REFUSED".to_owned());
    for host in [
        "evil.example",
        "localhost",
        "localhost:1",
        &format!("evil.example:{port}"),
    ] {
        assert_eq!(list(&http, "host", Some(host)).await, forbidden, "{host}");
        // The page neither: with it, a forged name would have an origin of its own.
        let page = http.get("/", &[("host", host)]).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN, "{host}");
    }
    for origin in [
        "http://evil.example",
        "null",
        "https://127.0.0.1",
        "http://localhost:1",
    ] {
        assert_eq!(
            list(&http, "origin", Some(origin)).await,
            forbidden,
            "{origin}"
        );
    }
    let refused = (StatusCode::UNAUTHORIZED, "TOKEN_REFUSED".to_owned());
    for token in [
        None,
        Some("Bearer x"),
        Some("Bearer"),
        Some("Basic x"),
        Some(""),
    ] {
        assert_eq!(
            list(&http, "authorization", token).await,
            refused,
            "{token:?}"
        );
    }
    let cookie = format!("token={}", http.token);
    let mut request = http.request("List", "{}");
    request.headers_mut().remove("authorization");
    request
        .headers_mut()
        .insert("cookie", cookie.parse().unwrap());
    assert_eq!(http.send(request).await.status, StatusCode::UNAUTHORIZED);
    let own = format!("http://{}", http.host);
    assert_eq!(
        http.call("List", "{}").await["tasks"][0]["spec"]["name"],
        "secret-name"
    );
    let mut request = http.request("List", "{}");
    request.headers_mut().insert("origin", own.parse().unwrap());
    let answer = http.send(request).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
    assert!(!answer.headers.contains_key("set-cookie"));
}

/// H2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_preflight_is_answered_for_allowed_origins_only() {
    let builder = Daemon::builder().http().arg("--http-origin");
    let daemon = builder.arg("https://ide.example").start().await;
    let http = daemon.http().await;
    for (origin, status) in [
        ("https://ide.example", StatusCode::NO_CONTENT),
        ("https://evil.example", StatusCode::FORBIDDEN),
    ] {
        let mut request = http.request("List", "");
        *request.method_mut() = Method::OPTIONS;
        for (name, value) in [
            ("origin", origin),
            ("access-control-request-method", "POST"),
        ] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        request.headers_mut().remove("authorization");
        let answer = http.send(request).await;
        assert_eq!(answer.status, status, "{origin}");
        let allowed = answer.headers.get("access-control-allow-origin");
        assert_eq!(
            allowed.is_some(),
            status == StatusCode::NO_CONTENT,
            "{origin}"
        );
        assert_ne!(allowed.map(|value| value.as_bytes()), Some(b"*".as_slice()));
    }
}

/// H1, H2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn malformed_requests_are_refused_and_the_server_goes_on() {
    let daemon = Daemon::builder().http().start().await;
    let http = daemon.http().await;
    for json in [
        "",
        "{",
        "[]",
        "7",
        "\"x\"",
        "null",
        "{} {}",
        "\u{0}",
        &"[".repeat(100_000),
    ] {
        let answer = http.send(http.request("List", json.to_owned())).await;
        assert_eq!(answer.error().1, "REQUEST_UNREADABLE", "{}", answer.json());
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    }
    let answer = http.send(http.request("Hold", "{}")).await;
    let unknown = ("unimplemented".to_owned(), "METHOD_UNKNOWN".to_owned());
    assert_eq!(
        (answer.status, answer.error()),
        (StatusCode::NOT_FOUND, unknown)
    );
    let answer = http.get("/heeler.v1.BackgroundTasks/List", &[]).await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(answer.error().1, "REQUEST_UNREADABLE");
    for kind in [
        "text/plain",
        "application/grpc",
        "application/x-www-form-urlencoded",
        "",
    ] {
        let mut request = http.request("List", "{}");
        request
            .headers_mut()
            .insert("content-type", kind.parse().unwrap());
        let answer = http.send(request).await;
        assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        assert_eq!(answer.error().1, "REQUEST_UNREADABLE");
    }
    let compressed = ("unimplemented".to_owned(), "REQUEST_UNREADABLE".to_owned());
    let mut request = http.request("List", "{}");
    let gzip: HeaderValue = "gzip".parse().unwrap();
    request
        .headers_mut()
        .insert("content-encoding", gzip.clone());
    let answer = http.send(request).await;
    assert_eq!(
        (answer.status, answer.error()),
        (StatusCode::NOT_IMPLEMENTED, compressed.clone())
    );
    let headers = [("connect-content-encoding", gzip)];
    let mut frames = http.stream_with("WatchEvents", "{}", headers).await;
    let (_, end) = frames.next().await.unwrap();
    assert_eq!(heeler_tests::http1::error(&end["error"]), compressed);
    for path in [
        "/nothing",
        "/../token",
        "//",
        "/index.html",
        "/%2e%2e/token",
    ] {
        assert_eq!(
            http.get(path, &[]).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    // Frames that lie about their length, and one that says it is compressed.
    for frame in [
        b"".as_slice(),
        b"\0\0\0\0\x09{}",
        b"\0\0\0\0\x01{}",
        b"\x01\0\0\0\x02{}",
    ] {
        let mut request = http.request("WatchEvents", frame.to_vec());
        let streaming = "application/connect+json".parse().unwrap();
        request.headers_mut().insert("content-type", streaming);
        let answer = http.send(request).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(text.contains("REQUEST_UNREADABLE"), "{frame:?}: {text}");
    }
    http.call("List", "{}").await;
}

/// H2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_huge_body_is_not_read() {
    let daemon = Daemon::builder().http().start().await;
    let http = daemon.http().await;
    let head = |length: &str, token: &str| {
        format!(
            "POST /heeler.v1.BackgroundTasks/List HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             authorization: Bearer {token}\r\n{length}\r\n\r\n",
            http.host
        )
    };
    // The length alone is enough for a refusal, and so is a wrong token.
    for (length, token, status) in [
        ("content-length: 100000000", http.token.as_str(), "400"),
        ("content-length: 1000", "wrong", "401"),
    ] {
        let mut stream = TcpStream::connect(&http.host).await.unwrap();
        stream
            .write_all(head(length, token).as_bytes())
            .await
            .unwrap();
        let mut answer = [0; 12];
        within("an answer", stream.read_exact(&mut answer))
            .await
            .unwrap();
        assert!(
            String::from_utf8_lossy(&answer).ends_with(status),
            "{answer:?}"
        );
    }
    // Without a length it is read up to the limit.
    let mut stream = TcpStream::connect(&http.host).await.unwrap();
    let chunked = head("transfer-encoding: chunked", &http.token);
    stream.write_all(chunked.as_bytes()).await.unwrap();
    let piece = vec![b' '; 1 << 20];
    for _ in 0..64 {
        let sent = async {
            stream
                .write_all(format!("{:x}\r\n", piece.len()).as_bytes())
                .await?;
            stream.write_all(&piece).await?;
            stream.write_all(b"\r\n").await
        };
        if within("a piece", sent).await.is_err() {
            break;
        }
    }
    http.call("List", "{}").await;
}

/// H2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_body_that_does_not_arrive_ends_its_call() {
    let daemon = Daemon::builder().http().start().await;
    let http = daemon.http().await;
    let mut stream = TcpStream::connect(&http.host).await.unwrap();
    let head = format!(
        "POST /heeler.v1.BackgroundTasks/List HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
         authorization: Bearer {}\r\ncontent-length: 100\r\n\r\n{{",
        http.host, http.token
    );
    let begun = Instant::now();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    within("an answer", stream.read_exact(&mut answer))
        .await
        .unwrap();
    assert!(
        String::from_utf8_lossy(&answer).ends_with("504"),
        "{answer:?}"
    );
    assert!(begun.elapsed() >= Duration::from_secs(5) && begun.elapsed() < DEADLINE);
}

/// H1, K3: a request that would be refused is not waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_without_the_rights_for_it_is_refused_before_its_body() {
    let daemon = Daemon::builder().http().start().await;
    let (api, http) = (daemon.api().await, daemon.http().await);
    let mut request = shell("echo \"$HEELER_TOKEN\"; sleep 1000");
    let spec = request.spec.as_mut().unwrap();
    spec.rights = TaskRights::None.into();
    let task = api.start(request).await;
    let token = within("the token", async {
        loop {
            let output = api.output(&task.id).await;
            if output.ends_with(b"\n") {
                return String::from_utf8(output).unwrap().trim().to_owned();
            }
        }
    })
    .await;
    let task_http = Http::new(&http.host, &token);
    let mut connection = Connection::to_http(&task_http).await;
    let begun = Instant::now();
    let (answer, _body) = connection.begin_json(&task_http, "List", &[]).await;
    let answer = within("a refusal", answer).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5));
    let refused = heeler_tests::http1::error(&http2::json(answer).await);
    assert_eq!(refused.1, "RIGHTS_INSUFFICIENT");
}

/// H2: the others are served however many streams are not read.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn streams_that_are_not_read_delay_no_other_call() {
    let daemon = Daemon::builder().http().start().await;
    let http = daemon.http().await;
    let task = daemon
        .api()
        .await
        .start(shell("head -c 20000000 /dev/zero"))
        .await;
    daemon.api().await.ended(&task.id).await;
    let follow = json!({"filter": {"taskIds": [task.id]}, "includeFinished": true}).to_string();
    let mut unread = Vec::new();
    for _ in 0..32 {
        unread.push(http.stream("FollowOutput", &follow).await);
    }
    for _ in 0..16 {
        http.call("List", "{}").await;
    }
    assert_eq!(unread.len(), 32);
}

/// H2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_answer_forbids_frames_sniffing_and_foreign_scripts() {
    let daemon = Daemon::builder().http().start().await;
    let http = daemon.http().await;
    let answers = [
        http.get("/", &[]).await,
        http.get("/nothing", &[]).await,
        http.send(http.request("List", "{}")).await,
        http.get("/", &[("host", "evil.example")]).await,
    ];
    for answer in answers {
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    }
}
