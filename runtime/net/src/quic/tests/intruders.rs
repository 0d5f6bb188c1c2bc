//! Hosts that do not belong to a run: none gets in, and none sees a byte of it.

use super::super::channel::lost;
use super::super::frame::{Kind, header};
use super::super::limits;
use super::super::network::Network;
use super::super::words::{JoinRequest, hello};
use super::super::{Listening, Progress, join};
use super::{SOON, arrive, ask, inbox, settings};
use crate::identity::{ALPN, Applicant, Authority, Credentials, JOIN_ALPN, Name, Run, Token};
use crate::transport::{Event, Transport};
use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// Believes any certificate: an intruder does not care.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

/// What an intruder shows, and what it speaks.
fn tls(own: Option<&Credentials>, alpn: &[u8]) -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone));
    let mut config = match own {
        Some(own) => builder.with_client_auth_cert(own.chain.to_vec(), own.key()).unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    config
}

/// What came of it.
struct Seen {
    /// All that was said to the intruder.
    bytes: Vec<u8>,
    /// How the connection ended.
    end: String,
}

/// Calls a host, says all that one could say, and listens until the connection ends. `proof`: that of another session.
fn intrude(address: SocketAddr, tls: rustls::ClientConfig, proof: Option<[u8; 32]>) -> Seen {
    let (network, endpoint) = Network::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let job = async move {
        let config = limits::call(&limits::quic(tls).unwrap(), &settings(), address.ip());
        let connecting = endpoint.connect_with(config, address, "meshweft").unwrap();
        let connection = match tokio::time::timeout(Duration::from_secs(3), connecting).await {
            Err(_) => return Seen { bytes: Vec::new(), end: "silence".into() },
            Ok(Err(error)) => return Seen { bytes: Vec::new(), end: lost(&error) },
            Ok(Ok(connection)) => connection,
        };
        let frame = |kind, bytes: &[u8]| [&header(kind, bytes)[..], bytes].concat();
        let mut streams = Vec::new();
        if let Ok(Ok(mut stream)) = tokio::time::timeout(Duration::from_millis(100), connection.open_uni()).await {
            let _ = stream.write_all(&frame(Kind::Hello, &hello(&[address]))).await;
            let _ = stream.write_all(&frame(Kind::Ready, &[])).await;
            streams.push(stream);
        }
        let mut bytes = Vec::new();
        if let Ok(Ok((mut stream, mut answer))) =
            tokio::time::timeout(Duration::from_millis(100), connection.open_bi()).await
        {
            let words = match proof {
                Some(proof) => frame(Kind::Join, &JoinRequest { public_key: [1; 32], proof }.write()),
                None => frame(Kind::Hello, &hello(&[address])),
            };
            let _ = stream.write_all(&words).await;
            while let Ok(Ok(Some(chunk))) =
                tokio::time::timeout(Duration::from_millis(700), answer.read_chunk(1 << 16, true)).await
            {
                bytes.extend_from_slice(&chunk.bytes);
            }
            streams.push(stream);
        }
        while let Ok(Ok(mut stream)) = tokio::time::timeout(Duration::from_millis(100), connection.accept_uni()).await {
            while let Ok(Ok(Some(chunk))) =
                tokio::time::timeout(Duration::from_millis(300), stream.read_chunk(1 << 16, true)).await
            {
                bytes.extend_from_slice(&chunk.bytes);
            }
        }
        let end = tokio::time::timeout(Duration::from_secs(1), connection.closed()).await;
        Seen { bytes, end: end.map_or("it is still connected".into(), |error| lost(&error)) }
    };
    network.run(job).unwrap()
}

/// A certificate that any authority signed.
fn signed(
    authority: &Authority,
    uri: &str,
    validity: (SystemTime, SystemTime),
    uses: &[rcgen::ExtendedKeyUsagePurpose],
) -> Credentials {
    let applicant = Applicant::new().unwrap();
    let certificate = authority.sign_for(applicant.public_key(), uri, validity, uses).unwrap();
    let name = Name { run: authority.run, host: 1, incarnation: 1 };
    applicant.accept(name, certificate, authority.certificate().clone())
}

/// Hosts without a right to be in the run, and what each is told. `name`: one that the run gave to another.
fn strangers(run: &Run, name: Name) -> Vec<(&'static str, rustls::ClientConfig, &'static str)> {
    let hour = Duration::from_secs(3600);
    let now = SystemTime::now();
    let (day, both) = ((now - hour, now + hour), [ClientAuth, ServerAuth]);
    let authority = &*run.authority;
    let uri = name.to_string();
    let mut impostor = Authority::new(hour).unwrap();
    impostor.run = run.authority.run;
    let other = Authority::new(hour).unwrap();
    let own_run = Name { run: other.run, ..name }.to_string();
    let with = |credentials: Credentials| tls(Some(&credentials), ALPN);
    let self_signed = || {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let mut params = rcgen::CertificateParams::default();
        params.subject_alt_names = vec![rcgen::SanType::URI(uri.as_str().try_into().unwrap())];
        params.extended_key_usages = both.to_vec();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
        Credentials { name, key, chain: [certificate, authority.certificate().clone()] }
    };
    let stale = Name { incarnation: name.incarnation.wrapping_sub(1), ..name }.to_string();
    let driver = Name { host: 0, ..name }.to_string();
    let beyond = Name { host: 1000, ..name }.to_string();
    vec![
        ("no certificate", tls(None, ALPN), "no certificate"),
        ("signed by itself", with(self_signed()), ""),
        ("another authority", with(signed(&impostor, &uri, day, &both)), ""),
        ("expired", with(signed(authority, &uri, (now - 2 * hour, now - hour), &both)), "xpired"),
        ("not yet valid", with(signed(authority, &uri, (now + hour, now + 2 * hour), &both)), ""),
        ("for the other side alone", with(signed(authority, &uri, day, &[ServerAuth])), ""),
        ("for another run", with(signed(authority, &own_run, day, &both)), ""),
        ("of another run", with(signed(&other, &own_run, day, &both)), ""),
        ("no name of ours", with(signed(authority, "https://example.org/", day, &both)), ""),
        ("a key that was removed", with(signed(authority, &uri, day, &both)), ""),
        ("an earlier incarnation", with(signed(authority, &stale, day, &both)), ""),
        ("the driver's own name", with(signed(authority, &driver, day, &both)), ""),
        ("a number that is not", with(signed(authority, &beyond, day, &both)), ""),
        ("another protocol", tls(None, b"meshweft/99"), "version"),
        ("no certificate, joining", tls(None, JOIN_ALPN), "out of turn"),
    ]
}

/// What no stranger may see.
const CANARY: &[u8] = b"the canary that sings in every message of the run";

fn check_strangers(run: &Run, name: Name, address: SocketAddr, is_driver: bool) {
    std::thread::scope(|scope| {
        for (who, tls, says) in strangers(run, name) {
            scope.spawn(move || {
                let seen = intrude(address, tls, None);
                assert_eq!(seen.bytes, [], "{who} at {address} hears something");
                assert_ne!(seen.end, "it is still connected", "{who} at {address}");
                // What workers say is as short as TLS's alerts are.
                assert!(!is_driver || seen.end.contains(says), "{who} at {address}: {}", seen.end);
            });
        }
    });
}

#[test]
fn strangers_neither_join_nor_hear_a_byte() {
    let settings = settings();
    let inboxes = [inbox(), inbox()];
    let listening = Listening::start(2, settings.clone(), inboxes[0].sink()).unwrap();
    let (token, run) = (listening.token().clone(), listening.run.clone());
    let driver = token.addresses[0];
    std::thread::scope(|scope| {
        let (told, hear) = std::sync::mpsc::channel();
        let gathering = scope.spawn(move || {
            listening
                .wait_for_workers(Instant::now() + 4 * SOON, |progress| drop(told.send(progress)), || Ok(()))
                .unwrap()
        });
        let worker = scope.spawn(|| join(&token, settings.clone(), inboxes[1].sink()).unwrap());
        let Progress::Joined { host: 1, address: worker_at } = hear.recv().unwrap() else {
            panic!("the worker is the first");
        };
        // While workers are awaited, at the driver.
        check_strangers(&run, Name { host: 1, ..run_name(&run) }, driver, true);
        // While worker 1 waits for worker 2 to call, at worker 1.
        let second = arrive(&token, &settings);
        check_strangers(&run, Name { host: 2, ..run_name(&run) }, worker_at, false);
        let told: Vec<_> = hear.try_iter().filter(|told| matches!(told, Progress::Joined { .. })).collect();
        assert!(matches!(told[..], [Progress::Joined { host: 2, .. }]), "{told:?}");
        // While the run is under way, at both.
        let super::Early { network, endpoint: _endpoint, arrived } = second;
        let (_, channels) = network.run(arrived.meet()).unwrap().unwrap();
        let (quic, worker) = (gathering.join().unwrap(), worker.join().unwrap());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    quic.send(1, CANARY.to_vec());
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            for address in [driver, worker_at] {
                check_strangers(&run, Name { host: 2, ..run_name(&run) }, address, false);
            }
            stop.store(true, Relaxed);
        });
        assert_eq!(inboxes[1].next(SOON), Some(Event::Message { from: 0, bytes: CANARY.to_vec() }));
        assert!(worker.traffic(0).received_messages > 10);
        drop((channels, network));
    });
}

fn run_name(run: &Run) -> Name {
    Name { run: run.authority.run, host: 0, incarnation: run.incarnation }
}

#[test]
fn tokens_of_others_old_ones_and_repeated_proofs_let_no_one_in() {
    let settings = settings();
    let listening = Listening::start(1, settings.clone(), inbox().sink()).unwrap();
    let (token, run) = (listening.token().clone(), listening.run.clone());
    let driver = token.addresses[0];
    std::thread::scope(|scope| {
        let gathering = scope.spawn(move || listening.wait_for_workers(Instant::now() + SOON, |_| {}, || Ok(())));
        let refused = |token: &Token| join(token, settings.clone(), inbox().sink()).err().expect("refused").to_string();
        // The token of another run, at this driver: the worker does not even ask.
        let foreign = Token::new(&Authority::new(Duration::from_secs(60)).unwrap(), 1, vec![driver]).unwrap();
        let error = refused(&foreign);
        assert!(error.contains("not the driver that made the token"), "{error}");
        // A token with another secret, made up by a host that saw the driver's certificate.
        let error = refused(&Token::new(&run.authority, 1, vec![driver]).unwrap());
        assert!(error.contains("token is not of this run"), "{error}");
        // A proof that was made in another session.
        let proof = token.prove(&[5; 32], &[1; 32]);
        let seen = intrude(driver, tls(None, JOIN_ALPN), Some(proof));
        assert!(String::from_utf8_lossy(&seen.bytes).contains("not of this run"));
        // The same with the right token goes in.
        let worker = join(&token, settings.clone(), inbox().sink()).unwrap();
        drop(gathering.join().unwrap().unwrap());
        drop(worker);
    });
}

/// Stands in the doorway with as many connections as that, each of which begins a sentence, and comes again when it is shown out.
async fn crowd(endpoint: quinn::Endpoint, driver: SocketAddr, connections: usize) {
    let mut crowd = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let endpoint = endpoint.clone();
        crowd.spawn(async move {
            loop {
                let tls = limits::quic(tls(None, JOIN_ALPN)).unwrap();
                let config = limits::call(&tls, &settings(), driver.ip());
                let Ok(connection) = endpoint.connect_with(config, driver, "meshweft").unwrap().await else { continue };
                let Ok((mut stream, _answer)) = connection.open_bi().await else { continue };
                let _ = stream.write_all(&header(Kind::Join, &[0; 96])[..5]).await;
                connection.closed().await;
            }
        });
    }
    while crowd.join_next().await.is_some() {}
}

#[test]
fn strangers_who_stand_in_the_doorway_keep_no_worker_out() {
    let settings = settings();
    let (first, second) = (inbox(), inbox());
    let listening = Listening::start(2, settings.clone(), inbox().sink()).unwrap();
    let token = listening.token().clone();
    let (network, endpoint) = Network::start("127.0.0.1:0".parse().unwrap()).unwrap();
    network.handle().spawn(crowd(endpoint, token.addresses[0], 200));
    std::thread::sleep(Duration::from_millis(500));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let workers = [&first, &second].map(|inbox| {
            let (token, settings, sink) = (&token, settings.clone(), inbox.sink());
            scope.spawn(move || join(token, settings, sink).unwrap())
        });
        let driver = listening.wait_for_workers(Instant::now() + 3 * SOON, |_| {}, || Ok(())).unwrap();
        let workers = workers.map(|worker| worker.join().unwrap());
        // The end of the run, too.
        driver.send(1, vec![1]);
        let end = Instant::now();
        std::thread::scope(|scope| {
            let hosts = [&driver, &workers[0], &workers[1]];
            hosts.into_iter().for_each(|host| drop(scope.spawn(|| host.close())));
        });
        assert!(end.elapsed() < Duration::from_secs(5), "the goodbye took {:?}", end.elapsed());
    });
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    eprintln!("joined and left in {:?}", begun.elapsed());
    drop(network);
}

#[test]
fn an_expired_token_is_refused_on_both_sides() {
    let now = SystemTime::now();
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    // Certificates are still good for half an hour: they last an hour longer than tokens do.
    let authority = Arc::new(Authority::valid(now - minutes(120), now + minutes(30)).unwrap());
    let token = Token::new(&authority, 1, Vec::new()).unwrap();
    let run = Run { authority, token, incarnation: 0 };
    let listening = Listening::begin(run, settings(), inbox().sink()).unwrap();
    let token = listening.token().clone();
    let error = join(&token, settings(), inbox().sink()).err().expect("it expired").to_string();
    assert!(error.contains("expired 18") && error.contains("s ago"), "{error}");
    std::thread::scope(|scope| {
        let deadline = Instant::now() + Duration::from_secs(2);
        let gathering = scope.spawn(move || listening.wait_for_workers(deadline, |_| {}, || Ok(())).is_err());
        // A worker whose clock is wrong asks all the same.
        let error = super::ask_unchecked(&token, &settings()).err().expect("it expired").to_string();
        assert!(error.contains("the token has expired"), "{error}");
        assert!(gathering.join().unwrap());
    });
}

#[test]
fn a_worker_of_before_is_kept_out_when_the_run_is_begun_again() {
    let settings = settings();
    let listening = Listening::start(1, settings.clone(), inbox().sink()).unwrap();
    let token = listening.token().clone();
    let run = listening.run.clone();
    let old = std::thread::scope(|scope| {
        let deadline = Instant::now() + Duration::from_secs(1);
        let gathering = scope.spawn(move || listening.wait_for_workers(deadline, |_| {}, || Ok(())).is_err());
        let old = ask(&token, &settings);
        assert!(gathering.join().unwrap());
        old
    });
    let run = Run { incarnation: run.incarnation + 1, ..run };
    let listening = Listening::begin(run, settings.clone(), inbox().sink()).unwrap();
    let driver = listening.token().addresses[0];
    std::thread::scope(|scope| {
        let deadline = Instant::now() + Duration::from_secs(3);
        let gathering = scope.spawn(move || listening.wait_for_workers(deadline, |_| {}, || Ok(())).is_err());
        let seen = intrude(driver, tls(Some(&old), ALPN), None);
        assert_eq!(seen.bytes, []);
        assert!(seen.end.contains("incarnation 1 of the run, which is in its 2"), "{}", seen.end);
        assert!(gathering.join().unwrap());
    });
}
