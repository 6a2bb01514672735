//! TLS to the database, as the address asks for it with `sslmode`.
//!
//! * `disable`: none.
//! * `prefer`, which is the default: where the server offers it. Whose certificate it is, is not looked at, as whoever could
//!   show a false one could also say that there is no TLS. So it keeps out who listens, and nobody else.
//! * `require`: always, with a certificate for the name in the address, by an authority that is trusted: one of
//!   [`Options::authorities`], or of the machine's own where there are none.

use std::sync::Arc;

use redrive_store::StoreError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::options::Options;

fn unusable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Unavailable(error.into())
}

/// What makes connections private where the address asks for it.
pub(crate) fn connector(options: &Options) -> Result<MakeRustlsConnect, StoreError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let is_checked = options.config()?.get_ssl_mode() == SslMode::Require || options.authorities.is_some();
    let config = if is_checked {
        builder.with_root_certificates(trusted(options)?).with_no_client_auth()
    } else {
        let anybody = Arc::new(Anybody::new(&provider));
        builder.dangerous().with_custom_certificate_verifier(anybody).with_no_client_auth()
    };
    Ok(MakeRustlsConnect::new(config))
}

/// The authorities that are trusted.
fn trusted(options: &Options) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    if let Some(pem) = &options.authorities {
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| unusable(format!("the authorities: {error}")))?;
            roots.add(certificate).map_err(|error| unusable(format!("the authorities: {error}")))?;
        }
        if roots.is_empty() {
            return Err(unusable("the authorities: there is no certificate among them"));
        }
        return Ok(roots);
    }
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(unusable("sslmode=require: this machine trusts no authority, and none is named"));
    }
    Ok(roots)
}

/// Takes any certificate, as long as the server has its key.
#[derive(Debug)]
struct Anybody(WebPkiSupportedAlgorithms);

impl Anybody {
    fn new(provider: &CryptoProvider) -> Self {
        Self(provider.signature_verification_algorithms)
    }
}

impl ServerCertVerifier for Anybody {
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
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
