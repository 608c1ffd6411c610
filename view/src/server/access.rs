//! Who may ask, and what the browser is told not to do.
//!
//! Other users of this machine can reach its addresses, and pages of other servers can make a browser ask them. So a question must know
//! 128 bits that nobody can guess, must call the server by a name that is this machine's (a page that had its own name resolved to this machine's
//! address does not), and must not come from another page. Only pages may be opened from anywhere: by a link.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

/// What a server is reached by, and when it was asked last.
#[derive(Debug)]
pub(crate) struct Access {
    /// What an address must begin with, without slashes.
    pub(super) token: String,
    /// Where it listens.
    pub(super) address: SocketAddr,
    begun: Instant,
    /// When the last question came, ms after `begun`.
    asked_ms: AtomicU64,
}

impl Access {
    pub(super) fn new(token: String, address: SocketAddr) -> Access {
        Access { token, address, begun: Instant::now(), asked_ms: AtomicU64::new(0) }
    }

    /// Where the page is.
    pub(super) fn url(&self) -> String {
        let host = match self.address.ip() {
            ip if ip.is_unspecified() => SocketAddr::new(IpAddr::from([127, 0, 0, 1]), self.address.port()),
            _ => self.address,
        };
        format!("http://{host}/{}/", self.token)
    }

    pub(super) fn touch(&self) {
        let ms = self.begun.elapsed().as_millis();
        self.asked_ms.store(u64::try_from(ms).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked_ms.load(Ordering::Relaxed) > 0
    }

    pub(super) fn idle(&self) -> Duration {
        let asked = Duration::from_millis(self.asked_ms.load(Ordering::Relaxed));
        self.begun.elapsed().saturating_sub(asked)
    }
}

/// What the page may do: its own scripts and styles, questions to its own server, nothing else. Texts never become markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Whether a question may call a server at this address so. One that listens on all addresses does not know which of them it is reached by; no
/// page can have its own name resolved to an address that is written out.
fn is_called(address: SocketAddr, host: &str) -> bool {
    let Ok(literal) = host.parse::<SocketAddr>() else {
        return host == format!("localhost:{}", address.port());
    };
    let known = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST), address.ip()];
    literal.port() == address.port() && (address.ip().is_unspecified() || known.contains(&literal.ip()))
}

/// Why a question is refused.
fn refusal(access: &Access, request: &Request) -> Option<(StatusCode, &'static str)> {
    let text = |headers: &HeaderMap, name: &HeaderName| -> Option<String> {
        let mut values = headers.get_all(name).iter();
        let value = values.next()?.to_str().ok()?.to_ascii_lowercase();
        values.next().is_none().then_some(value)
    };
    let headers = request.headers();
    let host = text(headers, &header::HOST);
    if !host.is_some_and(|host| is_called(access.address, &host)) {
        return Some((StatusCode::FORBIDDEN, "this server is called by another name; forward the same port"));
    }
    let rest = request.uri().path().strip_prefix('/').unwrap_or_default();
    let (token, rest) = rest.split_once('/').unwrap_or((rest, ""));
    if !is_equal(token.as_bytes(), access.token.as_bytes()) {
        return Some((StatusCode::NOT_FOUND, "not found"));
    }
    let fetch = |name| text(headers, &HeaderName::from_static(name));
    let site = headers.contains_key("sec-fetch-site").then(|| fetch("sec-fetch-site").unwrap_or_default());
    // Pages have no file's name.
    let is_opened = (rest.is_empty() || rest.ends_with('/'))
        && fetch("sec-fetch-mode").as_deref() == Some("navigate")
        && fetch("sec-fetch-dest").as_deref() == Some("document");
    if !is_opened && site.is_some_and(|site| site != "same-origin") {
        return Some((StatusCode::FORBIDDEN, "another page asks"));
    }
    if request.method() != Method::GET {
        return Some((StatusCode::METHOD_NOT_ALLOWED, "only GET"));
    }
    None
}

/// Compares without telling by its time how much is equal.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).fold(0, |differ, (one, other)| differ | (one ^ other)) == 0
}

/// Lets a question through or refuses it; adds to every answer what the browser is told.
pub(super) async fn check(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&access, &request) {
        Some((status, why)) => {
            let mut refused = Response::new(Body::from(why));
            *refused.status_mut() = status;
            refused.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
            refused
        }
        None => {
            access.touch();
            next.run(request).await
        }
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}
