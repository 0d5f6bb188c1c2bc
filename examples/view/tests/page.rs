//! The view from outside: what is served to whom, and what becomes of a run when pages misbehave.

use meshweft_mesh::generate::generate;
use meshweft_view::{Config, Frame, Metric, Model, Quantity, Shape, Turn, View};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket, client};

/// No answer takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A run that counts its steps until it is dropped.
struct Counting {
    url: String,
    steps: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Counting {
    fn start() -> Counting {
        let mut view = View::start(&Config::default()).unwrap();
        let url = view.url().to_string();
        let (steps, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, ended) = (steps.clone(), over.clone());
        let mesh = generate("sheet:8", 1).unwrap();
        let run = move || {
            while !ended.load(Ordering::Relaxed) {
                let step = counted.load(Ordering::Relaxed);
                match view.turn() {
                    Turn::Step => {
                        counted.store(step + 1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_micros(200));
                    }
                    Turn::Describe => view.describe(Model {
                        name: "counting".into(),
                        fields: vec![Quantity { name: "count".into(), label: "count".into(), components: 1 }],
                        metrics: vec![Metric { name: "steps".into(), unit: String::new() }],
                        points: mesh.points().to_vec(),
                        shape: Shape::of(&mesh),
                        ..Model::default()
                    }),
                    Turn::Show(wanted) => view.show(Frame {
                        step,
                        time: 0.5 * step as f64,
                        fields: wanted.fields.iter().map(|&field| (field, vec![step as f64; 64])).collect(),
                        metrics: if wanted.metrics { vec![step as f64] } else { vec![] },
                        ..Frame::default()
                    }),
                    Turn::Set(_) | Turn::Wait => {}
                }
            }
        };
        Counting { url, steps, over, thread: Some(std::thread::spawn(run)) }
    }

    fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Whether it goes on taking steps.
    fn goes_on(&self) -> bool {
        let (before, clock) = (self.steps(), Instant::now());
        while clock.elapsed() < PATIENCE {
            if self.steps() > before + 10 {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// `127.0.0.1:PORT` and the token.
    fn parts(&self) -> (&str, &str) {
        self.url.trim_start_matches("http://").trim_end_matches('/').split_once('/').unwrap()
    }

    /// Sends bytes as they are, and returns what comes back.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.parts().0).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        // Who is refused may be cut off while it still talks.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let mut piece = [0; 65536];
        while let Ok(n @ 1..) = stream.read(&mut piece) {
            answer.extend_from_slice(&piece[..n]);
        }
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Asks for a file, with these lines in the head of the request.
    fn get(&self, path: &str, head: &str) -> String {
        self.raw(format!("GET {path} HTTP/1.1\r\n{head}Connection: close\r\n\r\n").as_bytes())
    }

    /// Opens a page's connection.
    fn page(&self, origin: Option<&str>) -> Result<WebSocket<TcpStream>, String> {
        let (host, token) = self.parts();
        let stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = format!("ws://{host}/{token}/live").into_client_request().unwrap();
        if let Some(origin) = origin {
            request.headers_mut().insert("Origin", origin.parse().unwrap());
        }
        client(request, stream).map(|(socket, _)| socket).map_err(|error| error.to_string())
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let run = self.thread.take().unwrap().join();
        assert!(std::thread::panicking() || run.is_ok(), "the run has panicked");
    }
}

fn say(socket: &mut WebSocket<TcpStream>, text: &str) {
    socket.send(Message::text(text)).unwrap();
}

/// The next message of a kind: 1 the mesh, 2 a frame.
fn next(socket: &mut WebSocket<TcpStream>, kind: u32) -> Vec<u8> {
    loop {
        match socket.read().unwrap() {
            Message::Binary(bytes) if bytes[..4] == kind.to_le_bytes() => return bytes.to_vec(),
            _ => {}
        }
    }
}

/// The next text that has a key.
fn word(socket: &mut WebSocket<TcpStream>, key: &str) -> Value {
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            let value: Value = serde_json::from_str(text.as_str()).unwrap();
            if value.get(key).is_some() {
                return value;
            }
        }
    }
}

fn double(bytes: &[u8], at: usize) -> f64 {
    f64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn the_page_and_its_files_are_served_to_who_has_the_address() {
    let run = Counting::start();
    let (host, token) = run.parts();
    assert_eq!(token.len(), 32);
    let head = format!("Host: {host}\r\n");
    let files = ["", "view.css", "view.js", "stage.js", "section.js", "plots.js", "message.js", "three.min.js"];
    for file in files {
        let answer = run.get(&format!("/{token}/{file}"), &head);
        assert!(answer.starts_with("HTTP/1.1 200"), "{file}: {}", &answer[..answer.len().min(200)]);
        for line in
            ["content-security-policy: default-src 'none'", "referrer-policy: no-referrer", "nosniff", "no-store"]
        {
            assert!(answer.contains(line), "{file} lacks {line}");
        }
    }
    // Nothing is named that is not served here.
    let page = run.get(&format!("/{token}/"), &head);
    for name in page.split(['"', '\'']).filter(|word| word.ends_with(".js") || word.ends_with(".css")) {
        assert!(files.contains(&name), "{name}");
    }
    assert!(run.get(&format!("/{token}/../Cargo.toml"), &head).starts_with("HTTP/1.1 404"));
    assert!(run.raw(format!("POST /{token}/ HTTP/1.1\r\n{head}Connection: close\r\n\r\n").as_bytes()).contains("405"));
}

#[test]
fn foreign_hosts_origins_and_tokens_are_refused() {
    let run = Counting::start();
    let (host, token) = run.parts();
    let port = host.split(':').next_back().unwrap();
    let path = format!("/{token}/");
    let refused = |path: &str, head: &str| {
        let answer = run.get(path, head);
        assert!(answer.starts_with("HTTP/1.1 403"), "{path} {head}: {answer}");
        assert!(!answer.contains(token), "the token is told");
    };
    for other in [format!("evil.example:{port}"), format!("127.0.0.1.evil.example:{port}"), format!("10.0.0.7:{port}")]
    {
        refused(&path, &format!("Host: {other}\r\n"));
    }
    refused(&path, &format!("Host: {host}\r\nHost: evil.example\r\n"));
    for origin in ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"] {
        refused(&path, &format!("Host: {host}\r\nOrigin: {origin}\r\n"));
    }
    for path in ["/", "/view.js", "//", &format!("/{}/", "0".repeat(32)), &format!("/{}/", token.to_uppercase() + "x")]
    {
        refused(path, &format!("Host: {host}\r\n"));
    }
    assert!(run.page(Some("http://evil.example")).unwrap_err().contains("403"));
    run.page(Some(&format!("http://{host}"))).unwrap();
    assert!(run.goes_on());
}

#[test]
fn frames_come_when_they_are_asked_for_and_a_run_can_be_paused_and_stepped() {
    let run = Counting::start();
    let mut page = run.page(None).unwrap();
    let mesh = next(&mut page, 1);
    assert_eq!(u32::from_le_bytes(mesh[12..16].try_into().unwrap()), 64);
    say(&mut page, r#"{"ready":true,"field":0,"metrics":true}"#);
    let frame = next(&mut page, 2);
    // Still points, 64 values, one measure.
    assert_eq!(frame.len(), 48 + 8 + 4 * 64);
    assert_eq!(double(&frame, 32), 0.5 * double(&frame, 24));
    assert_eq!(double(&frame, 48), double(&frame, 24));
    let value = f32::from_le_bytes(frame[56..60].try_into().unwrap());
    assert_eq!(f64::from(value), double(&frame, 24));

    say(&mut page, r#"{"pause":true}"#);
    assert_eq!(word(&mut page, "paused")["paused"], true);
    std::thread::sleep(Duration::from_millis(100));
    let paused = run.steps();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(run.steps(), paused);
    say(&mut page, r#"{"ready":true,"step":3,"pick":5}"#);
    let picked = word(&mut page, "pick");
    assert_eq!(picked["fields"][0]["values"][0].as_f64().unwrap(), picked["step"].as_f64().unwrap());
    let clock = Instant::now();
    while run.steps() < paused + 3 && clock.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(run.steps(), paused + 3);
    // Who paused it and is gone holds nothing up.
    drop(page);
    assert!(run.goes_on());
}

#[test]
fn garbage_ends_a_page_and_nothing_else() {
    let run = Counting::start();
    let (host, token) = run.parts();
    for text in ["", "{", "[1,2]", r#"{"ready":"yes"}"#, r#"{"at":-1}"#, r#"{"format":"c:"}"#, &"x".repeat(5000)] {
        let mut page = run.page(None).unwrap();
        let _ = page.send(Message::text(text));
        let end = loop {
            match page.read() {
                Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed) => break true,
                Err(tungstenite::Error::Io(error)) => break error.kind() != ErrorKind::WouldBlock,
                Err(_) => break true,
                Ok(_) => {}
            }
        };
        assert!(end, "{text}");
    }
    let mut page = run.page(None).unwrap();
    let _ = page.send(Message::binary(vec![0xff; 100]));
    // Numbers out of any range are requests, and mean nothing.
    let mut page = run.page(None).unwrap();
    say(&mut page, r#"{"ready":true,"field":2147483647,"component":2147483647,"pick":4294967295,"at":99999999999}"#);
    say(&mut page, r#"{"pace":-1e308,"field":0,"pick":9223372036854775807}"#);
    next(&mut page, 2);
    // No HTTP, half of it, and too much of it.
    run.raw(&[0; 4000]);
    run.raw(b"GET / HTTP/9.9\r\n\r\n");
    run.raw(format!("GET /{token}/live HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    run.raw(format!("GET /{token}/ HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n", "y".repeat(2_000_000)).as_bytes());
    // Bytes from a sequence that is the same on every run.
    let mut state = 1_u64;
    for _ in 0..50 {
        let mut bytes = b"GET ".to_vec();
        for _ in 0..300 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            bytes.push((state >> 56) as u8);
        }
        let mut stream = TcpStream::connect(host).unwrap();
        let _ = stream.write_all(&bytes);
    }
    assert!(run.goes_on());
    assert!(run.get(&format!("/{token}/"), &format!("Host: {host}\r\n")).contains("200 OK"));
}

#[test]
fn many_pages_that_vanish_or_sleep_hold_nothing_up() {
    let run = Counting::start();
    // Pages that ask for frames and are gone.
    for i in 0..200 {
        let Ok(mut page) = run.page(None) else { continue };
        let _ = page.send(Message::text(r#"{"ready":true,"field":0}"#));
        if i % 3 == 0 {
            let _ = page.send(Message::text(r#"{"pause":true}"#));
        }
        drop(page);
    }
    assert!(run.goes_on(), "pauses go with the pages that asked for them");
    // Pages that ask and never read, up to the limit; one more is told so.
    let sleeping: Vec<_> = (0..8)
        .map(|_| {
            let mut page = run.page(None).unwrap();
            next(&mut page, 1);
            say(&mut page, r#"{"ready":true,"field":0}"#);
            page
        })
        .collect();
    let mut more = run.page(None).unwrap();
    assert!(word(&mut more, "trouble")["trouble"].as_str().unwrap().contains("close one"));
    assert!(run.goes_on());
    drop(sleeping);
    // Connections that say nothing: those beyond the limit are closed, and the run goes on.
    let silent: Vec<_> = (0..300).map(|_| TcpStream::connect(run.parts().0)).collect();
    assert!(run.goes_on());
    drop(silent);
    let clock = Instant::now();
    let served =
        || run.get(&format!("/{}/", run.parts().1), &format!("Host: {}\r\n", run.parts().0)).contains("200 OK");
    while !served() {
        assert!(clock.elapsed() < PATIENCE, "places are given back");
    }
}

#[test]
fn pages_are_told_of_the_end_which_is_quick() {
    let run = Counting::start();
    let mut page = run.page(None).unwrap();
    next(&mut page, 1);
    let clock = Instant::now();
    drop(run);
    assert!(clock.elapsed() < Duration::from_secs(3));
    loop {
        let status = word(&mut page, "over");
        if !status["over"].is_null() {
            assert_eq!(status["over"], "the run is over");
            break;
        }
    }
}
