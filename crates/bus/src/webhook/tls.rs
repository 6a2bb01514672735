//! Whose certificates are believed.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::client::Unusable;

/// The authorities of this machine, and those that the operator names. HTTP/2 where the receiver has it.
pub(super) fn config(authorities: Option<&[u8]>) -> Result<ClientConfig, Unusable> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(Unusable::Tls)?;
    let mut config = builder.with_root_certificates(trusted(authorities)?).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn trusted(authorities: Option<&[u8]>) -> Result<RootCertStore, Unusable> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        // Nothing stops here: there may be no webhook with `https`, and one that has it says whom it does not trust.
        tracing::warn!(
            "this machine trusts no authority: webhooks with https will fail (install ca-certificates)"
        );
    }
    let Some(pem) = authorities else {
        return Ok(roots);
    };
    let before = roots.len();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| Unusable::Authorities(error.to_string()))?;
        roots.add(certificate).map_err(|error| Unusable::Authorities(error.to_string()))?;
    }
    if roots.len() == before {
        return Err(Unusable::Authorities("there is no certificate among them".to_owned()));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_that_are_none_are_refused() {
        for wrong in ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(matches!(config(Some(wrong.as_bytes())), Err(Unusable::Authorities(_))), "{wrong}");
        }
        assert!(config(None).is_ok());
    }
}
