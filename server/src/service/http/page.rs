//! The page: the files of `ui/page`, embedded by the build.
//!
//! `/` is `index.html`, in which the build has replaced `{{assets}}` by a path that contains a digest of all
//! files. Every other file is below that path, so browsers keep it for good, and a new build has new paths.
//! The files contain no data: the page makes calls with the token in the fragment of its address, which a
//! browser never sends.

use http::{
    HeaderValue, Method, Response, StatusCode,
    header::{
        ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    },
    request::Parts,
};
use http_body_util::Full;
use prost::bytes::Bytes;
use tonic::body::Body;

/// A file of the page.
struct File {
    /// Its path in an address.
    path: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
    /// The same, compressed by the build.
    gzip: &'static [u8],
}

/// `FILES`, and `ETAG_TEXT`, the digest of all of them. It is a weak tag: a file has two encodings.
mod embedded {
    use super::File;

    include!(concat!(env!("OUT_DIR"), "/page.rs"));
}

const INDEX: &str = "/";

/// The answer to a request for a file; `None` if there is no such file.
pub(super) fn answer(parts: &Parts) -> Option<Response<Body>> {
    let path = parts.uri.path();
    let file = embedded::FILES.iter().find(|file| file.path == path)?;
    let mut response = Response::new(Body::empty());
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        return Some(response);
    }
    let kept = match file.path == INDEX {
        true => "no-cache",
        false => "public, max-age=31536000, immutable",
    };
    for (name, value) in [
        (CONTENT_TYPE, file.content_type),
        (CACHE_CONTROL, kept),
        (ETAG, embedded::ETAG_TEXT),
    ] {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    let known = parts.headers.get(IF_NONE_MATCH);
    if known.is_some_and(|known| known == embedded::ETAG_TEXT) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return Some(response);
    }
    let bytes = match accepts_gzip(parts) {
        true => {
            let encoding = HeaderValue::from_static("gzip");
            response.headers_mut().insert(CONTENT_ENCODING, encoding);
            file.gzip
        }
        false => file.bytes,
    };
    if parts.method == Method::GET {
        *response.body_mut() = Body::new(Full::new(Bytes::from_static(bytes)));
    }
    Some(response)
}

/// Returns whether the client names gzip among the encodings that it accepts.
fn accepts_gzip(parts: &Parts) -> bool {
    let values = parts.headers.get_all(ACCEPT_ENCODING).iter();
    let mut encodings = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    encodings.any(|encoding| {
        let (name, weight) = encoding.split_once(';').unwrap_or((encoding, ""));
        let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
        name.trim().eq_ignore_ascii_case("gzip") && weight.parse::<f32>().is_ok_and(|q| q > 0.0)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use http::Request;
    use http_body::Body as _;

    use super::*;

    fn get(path: &str, known: Option<&HeaderValue>) -> Option<Response<Body>> {
        let mut request = Request::get(path);
        if let Some(known) = known {
            request = request.header(IF_NONE_MATCH, known);
        }
        answer(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn a_file_is_compressed_for_a_client_that_accepts_it() {
        for (accepted, is_compressed) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("gzip;q=0, br", false),
            ("gzip;q=0.0", false),
            ("identity", false),
            ("", false),
        ] {
            let request = Request::get("/").header(ACCEPT_ENCODING, accepted);
            let response = answer(&request.body(()).unwrap().into_parts().0).unwrap();
            let encoding = response.headers().get(CONTENT_ENCODING);
            assert_eq!(encoding.is_some(), is_compressed, "{accepted}");
            let length = response.body().size_hint().exact().unwrap();
            let file = &embedded::FILES[0];
            let expected = if is_compressed { file.gzip } else { file.bytes };
            assert_eq!(length, expected.len() as u64, "{accepted}");
        }
    }

    #[test]
    fn the_index_is_asked_for_again_and_other_files_are_kept_for_good() {
        let index = get("/", None).unwrap();
        assert_eq!(index.status(), StatusCode::OK);
        assert_eq!(index.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(index.headers()[CACHE_CONTROL], "no-cache");
        let known = get("/", Some(&index.headers()[ETAG])).unwrap();
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
        let text = embedded::FILES[0].bytes;
        assert!(!String::from_utf8_lossy(text).contains("{{assets}}"));
        for file in embedded::FILES.iter().filter(|file| file.path != INDEX) {
            let kept = get(file.path, None).unwrap();
            let cache = kept.headers()[CACHE_CONTROL].to_str().unwrap();
            assert!(cache.contains("immutable"), "{}", file.path);
        }
        assert!(get("/index.html", None).is_none());
        assert!(get("/../Cargo.toml", None).is_none());
    }
}
