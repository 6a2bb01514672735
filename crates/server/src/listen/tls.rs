//! TLS: a certificate and its key, read from files and read again when they change.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{InconsistentKeys, ServerConfig};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::late::HEAD_TIME_MAX;

/// The protocols that are spoken inside, the best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// The first byte of every TLS connection.
const HANDSHAKE: u8 = 0x16;
/// For whoever speaks HTTP where TLS is spoken. Anything else would look like a broken server.
const PLAIN_ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\
    content-length: 38\r\n\r\nthis port speaks TLS: say https://...\n";

/// Why there is no certificate to show.
#[derive(Debug)]
pub enum TlsError {
    /// A file could not be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A file does not hold what it should.
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it. Nothing of its content is in here.
        problem: &'static str,
    },
    /// The key is not the one of the certificate.
    Mismatch {
        /// The file with the certificate.
        cert: PathBuf,
        /// The file with the key.
        key: PathBuf,
    },
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, cause } => write!(f, "{} cannot be read: {cause}", path.display()),
            Self::Unusable { path, problem } => write!(f, "{} {problem}", path.display()),
            Self::Mismatch { cert, key } => {
                write!(f, "{} is not the key of {}", key.display(), cert.display())
            }
        }
    }
}

impl std::error::Error for TlsError {}

/// What the port shows and speaks where it speaks TLS. Clones are the same.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    pair: Arc<Pair>,
}

impl fmt::Debug for Tls {
    /// The files, and nothing of what is in them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("cert", &self.pair.cert)
            .field("key", &self.pair.key)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads a chain of certificates and the key of its first, both PEM.
    pub fn load(cert: PathBuf, key: PathBuf) -> Result<Self, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let seen = (Stamp::of(&cert), Stamp::of(&key));
        let shown = RwLock::new(Arc::new(read(&provider, &cert, &key)?));
        let pair = Arc::new(Pair { cert, key, provider, seen: Mutex::new(seen), shown });
        let config = ServerConfig::builder_with_provider(Arc::clone(&pair.provider))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .expect("the provider has suites for both");
        let mut config =
            config.with_no_client_auth().with_cert_resolver(Arc::clone(&pair) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Self { acceptor: Arc::new(config).into(), pair })
    }

    /// Reads the files again, for the connections to come. Where they are wrong, what was read before stays.
    pub fn reload(&self) -> Result<(), TlsError> {
        let pair = &self.pair;
        // Looked at before they are read: a change in between is then seen the next time.
        *pair.seen.lock().unwrap_or_else(PoisonError::into_inner) = pair.stamps();
        let read = read(&pair.provider, &pair.cert, &pair.key)?;
        *pair.shown.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(read);
        Ok(())
    }

    /// Whether one of the files is another than when they were last read.
    pub fn has_changed(&self) -> bool {
        *self.pair.seen.lock().unwrap_or_else(PoisonError::into_inner) != self.pair.stamps()
    }

    /// A connection up to where it is encrypted.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        timeout(HEAD_TIME_MAX, self.handshake(stream)).await?
    }

    async fn handshake(&self, mut stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first != [HANDSHAKE] {
            stream.write_all(PLAIN_ANSWER).await?;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the client does not speak TLS"));
        }
        self.acceptor.accept(stream).await
    }
}

/// The two files, and what was read from them.
struct Pair {
    cert: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    seen: Mutex<(Stamp, Stamp)>,
    shown: RwLock<Arc<CertifiedKey>>,
}

impl Pair {
    fn stamps(&self) -> (Stamp, Stamp) {
        (Stamp::of(&self.cert), Stamp::of(&self.key))
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pair")
    }
}

impl ResolvesServerCert for Pair {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.shown.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// By what a file that was written again is known. Nothing where there is none.
#[derive(Debug, PartialEq, Eq)]
struct Stamp(Option<(Option<SystemTime>, u64)>);

impl Stamp {
    fn of(path: &Path) -> Self {
        Self(path.metadata().ok().map(|file| (file.modified().ok(), file.len())))
    }
}

fn read(provider: &CryptoProvider, cert: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let unusable = |path: &Path, problem| TlsError::Unusable { path: path.to_owned(), problem };
    let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&bytes(cert)?).collect();
    let chain = chain.map_err(|_| unusable(cert, "is not PEM"))?;
    if chain.is_empty() {
        return Err(unusable(cert, "holds no certificate"));
    }
    let private = PrivateKeyDer::from_pem_slice(&bytes(key)?).map_err(|error| match error {
        pem::Error::NoItemsFound => unusable(key, "holds no private key"),
        _ => unusable(key, "is not PEM"),
    })?;
    let private = provider.key_provider.load_private_key(private);
    let private = private.map_err(|_| unusable(key, "holds a private key of a kind that cannot be used"))?;
    let read = CertifiedKey::new(chain, private);
    match read.keys_match() {
        // Some keys cannot say which certificate is theirs.
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(read),
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(TlsError::Mismatch { cert: cert.to_owned(), key: key.to_owned() })
        }
        Err(_) => Err(unusable(cert, "holds a certificate that cannot be read")),
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|cause| TlsError::Unreadable { path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A certificate and its key, as PEM.
    fn made() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    struct Files {
        dir: tempfile::TempDir,
    }

    impl Files {
        fn new(cert: &str, key: &str) -> Self {
            let files = Self { dir: tempfile::tempdir().unwrap() };
            files.write(cert, key);
            files
        }

        fn write(&self, cert: &str, key: &str) {
            fs::write(self.dir.path().join("cert.pem"), cert).unwrap();
            fs::write(self.dir.path().join("key.pem"), key).unwrap();
        }

        fn load(&self) -> Result<Tls, TlsError> {
            Tls::load(self.dir.path().join("cert.pem"), self.dir.path().join("key.pem"))
        }
    }

    fn shown(tls: &Tls) -> Vec<u8> {
        tls.pair.shown.read().unwrap().cert[0].to_vec()
    }

    #[test]
    fn what_cannot_be_used_is_named_with_its_file() {
        let ((cert, key), (_, other)) = (made(), made());
        for (cert, key, said) in [
            ("", &*key, "cert.pem holds no certificate"),
            (&*key, &key, "cert.pem holds no certificate"),
            ("-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n", &key, "cert.pem is not PEM"),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                &key,
                "cert.pem holds a certificate that cannot be read",
            ),
            (&cert, "", "key.pem holds no private key"),
            (&cert, &cert, "key.pem holds no private key"),
            (
                &cert,
                "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
                "key.pem holds a private key of a kind that cannot be used",
            ),
            (&cert, &other, "key.pem is not the key of"),
        ] {
            let error = Files::new(cert, key).load().unwrap_err().to_string();
            assert!(error.contains(said), "{error}, but not: {said}");
        }
        let nowhere = Tls::load("/nowhere/cert.pem".into(), "/nowhere/key.pem".into()).unwrap_err();
        assert!(nowhere.to_string().starts_with("/nowhere/cert.pem cannot be read"), "{nowhere}");
    }

    #[test]
    fn a_good_pair_takes_the_place_of_the_old_and_a_bad_one_does_not() {
        let ((cert, key), (next_cert, next_key)) = (made(), made());
        let files = Files::new(&cert, &key);
        let tls = files.load().unwrap();
        let before = shown(&tls);
        assert!(!tls.has_changed());
        files.write(&next_cert, &key);
        assert!(tls.has_changed());
        assert!(matches!(tls.reload(), Err(TlsError::Mismatch { .. })));
        assert_eq!(shown(&tls), before, "the old pair goes on");
        assert!(!tls.has_changed(), "the same mistake is told once");
        files.write(&next_cert, &next_key);
        tls.reload().unwrap();
        assert_ne!(shown(&tls), before);
        fs::remove_file(files.dir.path().join("key.pem")).unwrap();
        assert!(tls.has_changed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_has_ten_seconds() {
        let (cert, key) = made();
        let tls = Files::new(&cert, &key).load().unwrap();
        for said in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01"] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            client.write_all(said).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let begun = tokio::time::Instant::now();
            let error = tls.accept(stream).await.unwrap_err();
            assert_eq!((error.kind(), begun.elapsed().as_secs()), (io::ErrorKind::TimedOut, 10));
        }
    }

    #[test]
    fn nothing_of_a_key_is_shown() {
        let (cert, key) = made();
        let tls = Files::new(&cert, &key).load().unwrap();
        let shown = format!("{tls:?} {:?}", tls.pair);
        assert!(shown.contains("key.pem") && shown.len() < 300, "{shown}");
    }
}
