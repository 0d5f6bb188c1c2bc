//! The thread that serves: the page's files, and a connection for each page over which frames go out and requests come in.

use crate::access::{Access, Refusal};
use crate::connection::{Door, SILENCE};
use crate::desk::{Desk, Post};
use crate::message::Request;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{Router, get};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// Bytes of the longest request of a page: they are a few words.
const MOST_BYTES: usize = 4096;
/// A page that takes nothing for so long is let go.
const PATIENCE: Duration = Duration::from_secs(10);

/// The page: nothing of it is fetched from elsewhere.
const FILES: [(&str, &str, &str); 8] = [
    ("", "text/html; charset=utf-8", include_str!("../page/index.html")),
    ("view.css", "text/css; charset=utf-8", include_str!("../page/view.css")),
    ("view.js", "text/javascript; charset=utf-8", include_str!("../page/view.js")),
    ("stage.js", "text/javascript; charset=utf-8", include_str!("../page/stage.js")),
    ("section.js", "text/javascript; charset=utf-8", include_str!("../page/section.js")),
    ("plots.js", "text/javascript; charset=utf-8", include_str!("../page/plots.js")),
    ("message.js", "text/javascript; charset=utf-8", include_str!("../page/message.js")),
    ("three.min.js", "text/javascript; charset=utf-8", include_str!("../page/three.min.js")),
];

/// The policy of a page that others may have within theirs as far as is said.
macro_rules! policy {
    ($ancestors:literal) => {
        concat!(
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; ",
            "base-uri 'none'; form-action 'none'; frame-ancestors ",
            $ancestors
        )
    };
}

/// That of a view which notebooks of this machine may have.
const FRAMED: &str = policy!("http://localhost:* http://127.0.0.1:*");

/// What all answers say: the page runs its own files alone, in no other page, and tells nobody its address.
const HEADERS: [(header::HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, policy!("'none'")),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Serves until `stop` says so, or who holds its other end is gone.
pub(crate) async fn serve(
    listener: TcpListener,
    desk: Arc<Desk>,
    (access, is_framed): (Arc<Access>, bool),
    mut stop: watch::Receiver<bool>,
) {
    let live = {
        let (desk, stop) = (desk.clone(), stop.clone());
        move |upgrade: WebSocketUpgrade| {
            let (desk, stop) = (desk.clone(), stop.clone());
            async move {
                let upgrade = upgrade.max_message_size(MOST_BYTES).max_frame_size(MOST_BYTES);
                upgrade.on_upgrade(move |socket| page(socket, desk, stop))
            }
        }
    };
    let mut router = Router::new().route("/{token}/live", get(live));
    for (name, kind, text) in FILES {
        let file = move || async move { ([(header::CONTENT_TYPE, kind)], text) };
        router = router.route(&format!("/{{token}}/{name}"), get(file));
    }
    let router = router.layer(from_fn_with_state((access, is_framed), guard));
    let served = axum::serve(Door::new(listener), router).into_future();
    tokio::select! {
        _ = served => {}
        () = stopped(&mut stop) => {}
    }
    // Time for the last word.
    for _ in 0..30 {
        if desk.pages() == 0 {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until it is time to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|&stop| stop).await;
}

/// Judges a request by its head.
fn judge(access: &Access, request: &HttpRequest) -> Result<(), Refusal> {
    let said = |name| request.headers().get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
    // Who names two hosts means neither.
    if request.headers().get_all(header::HOST).iter().count() > 1 {
        return Err(Refusal::Host);
    }
    access.judge(request.uri().path(), said(header::HOST), said(header::ORIGIN))
}

/// Refuses who may not look.
async fn guard(State((access, is_framed)): State<(Arc<Access>, bool)>, request: HttpRequest, next: Next) -> Response {
    let mut answer = match judge(&access, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => (StatusCode::FORBIDDEN, refusal.reason()).into_response(),
    };
    answer.headers_mut().extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    if is_framed {
        answer.headers_mut().remove(header::X_FRAME_OPTIONS);
        answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(FRAMED));
    }
    answer
}

/// A page, until it goes.
async fn page(mut socket: WebSocket, desk: Arc<Desk>, mut stop: watch::Receiver<bool>) {
    let Some((number, wake)) = desk.come() else {
        let full = json!({ "trouble": "as many pages as a run serves are open: close one, and load this one again" });
        let _ = timeout(PATIENCE, socket.send(Message::text(full.to_string()))).await;
        return;
    };
    let _leave = Leave { desk: &desk, number };
    let mut pings = interval(SILENCE / 3);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let sent = tokio::select! {
            _ = wake.notified() => send(&mut socket, &desk, number).await,
            _ = pings.tick() => deliver(&mut socket, Message::Ping(Default::default())).await,
            () = stopped(&mut stop) => {
                let _ = send(&mut socket, &desk, number).await;
                None
            }
            received = socket.recv() => match received {
                Some(Ok(Message::Text(text))) => Request::parse(text.as_str()).map(|request| desk.take(number, &request)),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => Some(()),
                // It goes, or says what no page says.
                _ => None,
            },
        };
        if sent.is_none() {
            return;
        }
    }
}

/// Has a page leave, whatever ends it.
struct Leave<'a> {
    desk: &'a Desk,
    number: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.desk.go(self.number);
    }
}

/// Sends what there is. Nothing if the page takes it no more.
async fn send(socket: &mut WebSocket, desk: &Desk, number: u64) -> Option<()> {
    let Post { model, status, frame, fixed } = desk.collect(number);
    if let Some(model) = model {
        deliver(socket, Message::Binary(model)).await?;
    }
    if let Some(status) = status {
        deliver(socket, Message::text(status)).await?;
    }
    let Some((frame, wish, rate)) = frame else { return Some(()) };
    if let Some(trouble) = &frame.trouble {
        deliver(socket, Message::text(json!({ "trouble": trouble }).to_string())).await?;
    }
    if !frame.table.is_empty() {
        deliver(socket, Message::text(json!({ "table": frame.table }).to_string())).await?;
    }
    if let Some(vertex) = wish.pick {
        deliver(socket, Message::text(frame.values_of(&fixed, vertex).to_string())).await?;
    }
    let clock = Instant::now();
    let message = frame.encode(&fixed, &wish, rate);
    desk.encoded(clock.elapsed());
    deliver(socket, Message::Binary(message)).await
}

async fn deliver(socket: &mut WebSocket, message: Message) -> Option<()> {
    timeout(PATIENCE, socket.send(message)).await.ok()?.ok()
}
