//! The authority of a run, and what it signs.

use super::name::{Name, RunId, hex};
use crate::error::{Error, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// SHA-256 of something.
pub(crate) type Digest = [u8; 32];

/// Computes the digest of a certificate or a key.
pub(crate) fn digest(bytes: &[u8]) -> Digest {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// How long after the end of the run a certificate is valid: clocks of hosts differ.
const SLACK: Duration = Duration::from_secs(3600);
/// How long before its making it is valid already. That keeps nobody out, and a clock that is set back meanwhile loses no host.
const BEFORE: Duration = Duration::from_secs(366 * 24 * 3600);

/// What signs the certificates of one run.
pub(crate) struct Authority {
    pub(crate) run: RunId,
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    /// When its certificates become valid, and until when they are.
    validity: (SystemTime, SystemTime),
}

/// What a host shows others: its key, and the certificate that says whose it is.
pub(crate) struct Credentials {
    pub(crate) name: Name,
    pub(crate) key: PrivatePkcs8KeyDer<'static>,
    /// Its own, then the authority's.
    pub(crate) chain: [CertificateDer<'static>; 2],
}

/// A key that has no certificate yet.
pub(crate) struct Applicant(KeyPair);

/// An Ed25519 key of another host.
struct PublicKey([u8; 32]);

impl rcgen::PublicKeyData for PublicKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ED25519
    }
}

/// What a certificate may be used for.
const BOTH_SIDES: [ExtendedKeyUsagePurpose; 2] =
    [ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];

impl Authority {
    /// Makes the authority of a new run that lasts so long at most.
    pub(crate) fn new(run_length: Duration) -> Result<Authority> {
        let now = SystemTime::now();
        Authority::valid(now - BEFORE, now + run_length + SLACK)
    }

    /// Makes an authority whose certificates are valid for that time.
    pub(crate) fn valid(from: SystemTime, until: SystemTime) -> Result<Authority> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(failed)?;
        // Certificates count seconds, and so does `reveal`.
        let whole = |time: SystemTime| UNIX_EPOCH + Duration::from_secs(seconds(time));
        Authority::of(RunId::random()?, key, whole(from), whole(until))
    }

    /// Writes all it takes to be this authority, its private key included: numbers with `/` between.
    pub(crate) fn reveal(&self) -> String {
        let key: String = self.issuer.key().serialized_der().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}/{key}/{}/{}", self.run, seconds(self.validity.0), seconds(self.validity.1))
    }

    /// Reads what [`reveal`](Authority::reveal) wrote. Its certificate is made again, with the same bits: a signature by Ed25519
    /// has nothing random, and the reader compares the digest.
    pub(crate) fn parse(text: &str) -> Option<Authority> {
        let [run, key, from, until] = text.split('/').collect::<Vec<_>>()[..] else { return None };
        let pairs = (0..key.len() / 2).map(|i| Some(hex::<1>(key.get(2 * i..2 * i + 2)?)?[0]));
        let key = PrivatePkcs8KeyDer::from(pairs.collect::<Option<Vec<u8>>>()?);
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&key, &rcgen::PKCS_ED25519).ok()?;
        let time = |text: &str| UNIX_EPOCH.checked_add(Duration::from_secs(text.parse().ok()?));
        Authority::of(RunId(hex(run)?), key, time(from)?, time(until)?).ok()
    }

    fn of(run: RunId, key: KeyPair, from: SystemTime, until: SystemTime) -> Result<Authority> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, format!("meshweft run {run}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        (params.not_before, params.not_after) = (from.into(), until.into());
        let certificate = params.self_signed(&key).map_err(failed)?.der().clone();
        Ok(Authority { run, issuer: Issuer::new(params, key), certificate, validity: (from, until) })
    }

    /// Its certificate, which tokens name by its digest.
    pub(crate) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Until when hosts may join.
    pub(crate) fn ends(&self) -> SystemTime {
        self.validity.1 - SLACK
    }

    /// Signs that the holder of an Ed25519 key is that host. Returns the certificate.
    pub(crate) fn sign(&self, public_key: [u8; 32], name: &Name) -> Result<CertificateDer<'static>> {
        self.sign_for(public_key, &name.to_string(), self.validity, &BOTH_SIDES)
    }

    /// Signs anything: tests make certificates that must be refused.
    pub(crate) fn sign_for(
        &self,
        public_key: [u8; 32],
        uri: &str,
        (from, until): (SystemTime, SystemTime),
        uses: &[ExtendedKeyUsagePurpose],
    ) -> Result<CertificateDer<'static>> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "meshweft host");
        params.subject_alt_names = vec![SanType::URI(uri.try_into().map_err(failed)?)];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = uses.to_vec();
        (params.not_before, params.not_after) = (from.into(), until.into());
        let certificate = params.signed_by(&PublicKey(public_key), &self.issuer).map_err(failed)?;
        Ok(certificate.der().clone())
    }

    /// Makes a key and signs it: the driver's own.
    pub(crate) fn issue(&self, name: Name) -> Result<Credentials> {
        let applicant = Applicant::new()?;
        let certificate = self.sign(applicant.public_key(), &name)?;
        Ok(applicant.accept(name, certificate, self.certificate.clone()))
    }
}

impl Applicant {
    /// Makes a key.
    pub(crate) fn new() -> Result<Applicant> {
        Ok(Applicant(KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(failed)?))
    }

    pub(crate) fn public_key(&self) -> [u8; 32] {
        self.0.public_key_raw().try_into().expect("an Ed25519 key has 32 bytes")
    }

    /// Joins the key with what was signed for it.
    pub(crate) fn accept(
        self,
        name: Name,
        own: CertificateDer<'static>,
        authority: CertificateDer<'static>,
    ) -> Credentials {
        Credentials { name, key: PrivatePkcs8KeyDer::from(self.0.serialize_der()), chain: [own, authority] }
    }
}

impl Credentials {
    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.key.clone_key())
    }

    /// The certificate of the run's authority.
    pub(crate) fn authority(&self) -> &CertificateDer<'static> {
        &self.chain[1]
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn failed(error: rcgen::Error) -> Error {
    Error::Secret(format!("no certificate could be made: {error}"))
}
