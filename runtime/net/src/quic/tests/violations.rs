//! Members that break the rules: each is closed with a code, told as lost, and cannot make another host hold much.

use super::super::channel::{Channel, Outgoing};
use super::super::frame::{Kind, header};
use super::super::limits::code;
use super::super::worker::Joined;
use super::super::{Listening, Quic, Settings};
use super::{SOON, inbox, settings};
use crate::tests::Inbox;
use crate::transport::{Event, Transport};
use quinn::{ConnectionError, VarInt};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A driver, and a worker that is let in and does what a test wants.
struct Odd {
    driver: Quic,
    inbox: Arc<Inbox>,
    worker: Joined,
}

fn odd(settings: &Settings) -> Odd {
    let inbox = inbox();
    let listening = Listening::start(1, settings.clone(), inbox.sink()).unwrap();
    let token = listening.token().clone();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| Joined::by(&token, settings).unwrap());
        let driver = listening.wait_for_workers(Instant::now() + SOON, |_| {}, || Ok(())).unwrap();
        Odd { driver, inbox, worker: worker.join().unwrap() }
    })
}

/// Lets the worker do something. The driver must close the connection with that code, and say that of it.
fn check<F: Future<Output = Channel> + Send + 'static>(
    act: impl FnOnce(Channel) -> F + Send + 'static,
    number: VarInt,
    says: &str,
) {
    let Odd { driver, inbox, mut worker } = odd(&settings());
    let channel = worker.channels[0].take().expect("it is connected with the driver");
    let job = async move {
        let channel = act(channel).await;
        tokio::time::timeout(SOON, channel.connection.closed()).await.expect("the driver closes")
    };
    let error = worker.network.run(job).unwrap();
    match error {
        ConnectionError::ApplicationClosed(close) => assert_eq!(close.error_code, number, "{close}"),
        other => panic!("{says}: {other}"),
    }
    let (host, why) = inbox.lost(SOON);
    assert_eq!(host, 1);
    assert!(why.contains(says), "{why}");
    assert!(!driver.wait_for_room(1, 0, Instant::now() + SOON));
}

/// Writes bytes as they are.
async fn raw(mut channel: Channel, bytes: Vec<u8>) -> Channel {
    let _ = channel.outgoing.0.write_all(&bytes).await;
    channel
}

fn frame(kind: Kind, bytes: &[u8]) -> Vec<u8> {
    [&header(kind, bytes)[..], bytes].concat()
}

#[test]
fn a_length_beyond_the_limit_ends_the_connection() {
    let mut bytes = frame(Kind::Message, &[]);
    bytes[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    check(|channel| raw(channel, bytes), code::VIOLATION, "announced a frame Message of 4294967295 bytes");
}

#[test]
fn a_wrong_checksum_ends_the_connection() {
    let mut bytes = frame(Kind::Message, b"hello");
    bytes[10] ^= 1;
    check(|channel| raw(channel, bytes), code::VIOLATION, "checksum");
}

#[test]
fn an_unknown_kind_ends_the_connection() {
    let mut bytes = frame(Kind::Message, b"");
    bytes[8] = 200;
    check(|channel| raw(channel, bytes), code::VIOLATION, "unknown kind 200");
}

#[test]
fn a_word_out_of_turn_ends_the_connection() {
    check(|channel| raw(channel, frame(Kind::Go, b"")), code::VIOLATION, "Go out of turn");
    check(|channel| raw(channel, frame(Kind::ByeRead, b"")), code::VIOLATION, "ByeRead out of turn");
    let after = [frame(Kind::Bye, b""), frame(Kind::Message, b"one more thing")].concat();
    check(|channel| raw(channel, after), code::VIOLATION, "Message out of turn");
}

#[test]
fn a_writer_that_goes_away_never_looks_finished() {
    let cut = |channel: Channel| async {
        let Channel { connection, outgoing, incoming } =
            raw(channel, frame(Kind::Message, &[1; 100])[..50].to_vec()).await;
        drop(outgoing);
        // Any other stream takes its place, so that there is a channel to return.
        let outgoing = Outgoing(connection.open_uni().await.expect("a second stream may be opened"));
        Channel { connection, outgoing, incoming }
    };
    check(cut, code::VIOLATION, "ended before a goodbye");
    let finish = |mut channel: Channel| async {
        channel.outgoing.0.finish().expect("it is open");
        channel
    };
    check(finish, code::VIOLATION, "ended before a goodbye");
}

#[test]
fn a_second_stream_ends_the_connection() {
    let uni = |channel: Channel| async {
        let mut second = channel.connection.open_uni().await.expect("it is allowed, so that it can be seen");
        let _ = second.write_all(b"x").await;
        channel
    };
    check(uni, code::STREAMS, "more streams");
    let both = |channel: Channel| async {
        let (mut second, _) = channel.connection.open_bi().await.expect("it is allowed, so that it can be seen");
        let _ = second.write_all(b"x").await;
        channel
    };
    check(both, code::STREAMS, "more streams");
}

#[test]
fn streams_beyond_the_limit_cannot_be_opened() {
    let Odd { driver, mut worker, .. } = odd(&settings());
    let channel = worker.channels[0].take().expect("it is connected with the driver");
    let job = async move {
        let mut streams = Vec::new();
        while let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_millis(200), channel.connection.open_uni()).await
        {
            streams.push(stream);
        }
        streams.len()
    };
    assert!(worker.network.run(job).unwrap() <= 2);
    drop(driver);
}

#[test]
fn who_never_reads_is_lost_and_holds_little() {
    let settings = Settings { dead_timeout: Duration::from_millis(1500), ..settings() };
    let Odd { driver, inbox, worker } = odd(&settings);
    let begun = Instant::now();
    let mut sent = 0;
    while driver.wait_for_room(1, 1 << 20, begun + SOON) {
        driver.send(1, vec![0; 256 << 10]);
        sent += 256 << 10;
    }
    let (host, why) = inbox.lost(SOON);
    assert_eq!(host, 1);
    assert!(why.contains("nothing was read for 1.5 s"), "{why}");
    assert!(begun.elapsed() < 3 * settings.dead_timeout, "{:?}", begun.elapsed());
    assert!(sent < 24 << 20, "{sent} bytes were taken for one who reads nothing");
    let job = async move { worker.channels[0].as_ref().expect("it is there").connection.closed().await };
    match worker.network.run(job).unwrap() {
        ConnectionError::ApplicationClosed(close) => assert_eq!(close.error_code, code::STALLED),
        other => panic!("{other}"),
    }
}

#[test]
fn who_sends_without_end_before_the_goodbye_is_bounded_by_the_reader() {
    // Messages that are not read yet wait at their sender.
    let Odd { driver, inbox, mut worker } = odd(&settings());
    let mut channel = worker.channels[0].take().expect("it is connected with the driver");
    let flood = async move {
        let frame = frame(Kind::Message, &[1; 1000]);
        for _ in 0..20_000 {
            if channel.outgoing.0.write_all(&frame).await.is_err() {
                return false;
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        true
    };
    assert!(worker.network.run(flood).unwrap());
    for _ in 0..20_000 {
        assert!(matches!(inbox.next(SOON), Some(Event::Message { from: 1, .. })));
    }
    assert_eq!(driver.traffic(1).received_bytes, 20_000_000);
}
