//! TLS as hosts of a run speak it: version 1.3, nothing sent early, no session resumed, and names checked against the run.

use super::authority::{Credentials, Digest, digest};
use super::name::{Name, RunId};
use crate::error::{Error, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{cipher_suite, default_provider, kx_group};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, SignatureScheme};
use std::sync::Arc;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

/// What members speak with each other. Its number goes up with every change of what hosts say.
pub(crate) const ALPN: &[u8] = b"meshweft/1";
/// What a worker speaks that has no certificate yet.
pub(crate) const JOIN_ALPN: &[u8] = b"meshweft-join/1";

/// What keys are agreed on and packets enciphered with. AES of 128 bits comes first: that of 256, rustls's first choice, takes 14 rounds
/// for 10. ChaCha20 is for processors without AES.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![cipher_suite::TLS13_AES_128_GCM_SHA256, cipher_suite::TLS13_CHACHA20_POLY1305_SHA256],
        kx_groups: vec![kx_group::X25519],
        ..default_provider()
    })
}

/// Reads the name in a certificate: exactly one, as a URI.
pub(crate) fn name_of(certificate: &CertificateDer) -> Option<Name> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let mut names = certificate.valid_uri_names();
    let name = Name::parse(names.next()?)?;
    names.next().is_none().then_some(name)
}

/// The digest of the key in a certificate.
pub(crate) fn key_of(certificate: &CertificateDer) -> Option<Digest> {
    Some(digest(&EndEntityCert::try_from(certificate).ok()?.subject_public_key_info()))
}

/// Makes what a member calls others with.
pub(crate) fn client(own: &Credentials) -> Result<rustls::ClientConfig> {
    let builder = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failed)?;
    let members = Arc::new(Members::new(own.name.run, own.authority().clone()));
    let builder = builder.dangerous().with_custom_certificate_verifier(members);
    let mut config = builder.with_client_auth_cert(own.chain.to_vec(), own.key()).map_err(failed)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// Makes what a worker calls the driver with before it has a certificate. It goes on only with who shows a certificate for host 0
/// of the run, signed by the authority of that digest.
pub(crate) fn join_client(run: RunId, authority: Digest) -> Result<rustls::ClientConfig> {
    let builder = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failed)?;
    let pinned = Arc::new(Pinned { run, authority, provider: provider() });
    let mut config = builder.dangerous().with_custom_certificate_verifier(pinned).with_no_client_auth();
    config.alpn_protocols = vec![JOIN_ALPN.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// Makes what a host answers with. `joins`: whether hosts without a certificate are heard too.
pub(crate) fn server(own: &Credentials, joins: bool) -> Result<rustls::ServerConfig> {
    let builder = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failed)?;
    let members = Members { mandatory: !joins, ..Members::new(own.name.run, own.authority().clone()) };
    let builder = builder.with_client_cert_verifier(Arc::new(members));
    let mut config = builder.with_single_cert(own.chain.to_vec(), own.key()).map_err(failed)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    if joins {
        config.alpn_protocols.push(JOIN_ALPN.to_vec());
    }
    config.max_early_data_size = 0;
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    Ok(config)
}

fn failed(error: rustls::Error) -> Error {
    Error::Secret(format!("no secure connection could be prepared: {error}"))
}

/// Believes certificates that the run's authority signed, for hosts of that run.
#[derive(Debug)]
struct Members {
    run: RunId,
    authority: CertificateDer<'static>,
    mandatory: bool,
    provider: Arc<CryptoProvider>,
}

impl Members {
    fn new(run: RunId, authority: CertificateDer<'static>) -> Members {
        Members { run, authority, mandatory: true, provider: provider() }
    }
}

/// Checks that an authority signed a certificate, that it is valid now and for this side, and that it names a host of the run.
fn check(
    run: RunId,
    authority: &CertificateDer,
    certificate: &CertificateDer,
    now: UnixTime,
    side: KeyUsage,
    provider: &CryptoProvider,
) -> Result<Name, rustls::Error> {
    let parsed = EndEntityCert::try_from(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let anchor = anchor_from_trusted_cert(authority).map_err(|_| CertificateError::BadEncoding)?;
    let algorithms = provider.signature_verification_algorithms.all;
    parsed.verify_for_usage(algorithms, &[anchor], &[], now, side, None, None).map_err(|error| match error {
        webpki::Error::CertExpired { .. } => CertificateError::Expired,
        webpki::Error::CertNotValidYet { .. } => CertificateError::NotValidYet,
        webpki::Error::UnknownIssuer => CertificateError::UnknownIssuer,
        webpki::Error::RequiredEkuNotFoundContext(_) => CertificateError::InvalidPurpose,
        webpki::Error::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        _ => CertificateError::ApplicationVerificationFailure,
    })?;
    name_of(certificate)
        .filter(|name| name.run == run)
        .ok_or_else(|| rustls::Error::General("its certificate is for another run".into()))
}

/// The two signature checks that every verifier needs.
macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Err(rustls::Error::General("TLS 1.2 is not spoken here".into()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            let algorithms = &self.provider.signature_verification_algorithms;
            rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }
    };
}

impl ServerCertVerifier for Members {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        check(self.run, &self.authority, certificate, now, KeyUsage::server_auth(), &self.provider)?;
        Ok(ServerCertVerified::assertion())
    }

    signatures!();
}

impl ClientCertVerifier for Members {
    fn client_auth_mandatory(&self) -> bool {
        self.mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        check(self.run, &self.authority, certificate, now, KeyUsage::client_auth(), &self.provider)?;
        Ok(ClientCertVerified::assertion())
    }

    signatures!();
}

/// Believes the driver of a run, whose authority is known by its digest alone.
#[derive(Debug)]
struct Pinned {
    run: RunId,
    authority: Digest,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let authority = intermediates.iter().find(|shown| digest(shown) == self.authority).ok_or_else(|| {
            rustls::Error::General("the host that answered is not the driver that made the token".into())
        })?;
        let name = check(self.run, authority, certificate, now, KeyUsage::server_auth(), &self.provider)?;
        if name.host != 0 {
            return Err(rustls::Error::General(format!(
                "the host that answered is host {} and not the driver",
                name.host
            )));
        }
        Ok(ServerCertVerified::assertion())
    }

    signatures!();
}
