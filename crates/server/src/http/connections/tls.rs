//! TLS of the server itself: a certificate from a file, replaced while connections are open when the file changes.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsFiles;
use landfall_core::clock::Clock;

/// A certificate with its issuers and a key take a few kilobytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The certificate in use, and where it comes from.
#[derive(Clone)]
pub struct Tls {
    files: TlsFiles,
    in_use: Arc<InUse>,
    acceptor: TlsAcceptor,
    /// What the files contained when they were read.
    read: Contents,
}

#[derive(Debug)]
struct InUse(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for InUse {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl Tls {
    /// The error says which file is wrong, and how.
    pub fn load(files: &TlsFiles) -> Result<Self, String> {
        let pair = Pair::read(files)?;
        let in_use = Arc::new(InUse(RwLock::new(Arc::new(pair.certified()?))));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .expect("the provider knows these versions")
            .with_no_client_auth()
            .with_cert_resolver(in_use.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Self { files: files.clone(), in_use, acceptor, read: pair.contents() })
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.clone()
    }

    /// Looks at the files again and again, and uses a new pair for the connections from then on.
    pub async fn watch(self, interval: Duration) {
        let mut watched = Watched { in_use: self.read, broken: None, reported: None };
        loop {
            Clock::System.sleep(interval).await;
            let files = self.files.clone();
            let read = landfall_core::blocking::run(move || Pair::read(&files)).await;
            let Ok(read) = read else { continue };
            match watched.compare(read) {
                Finding::Nothing => {}
                Finding::New(certified) => {
                    *self.in_use.0.write().unwrap_or_else(PoisonError::into_inner) = certified;
                    tracing::info!(path = %self.files.cert.display(), "a new certificate is in use");
                }
                Finding::Broken(error) => {
                    tracing::warn!(
                        path = %self.files.cert.display(),
                        error,
                        "the new certificate cannot be used; the one before it stays in use"
                    );
                }
            }
        }
    }
}

/// A hash of what is in the files, or what was wrong when they were read.
type Contents = [u8; 32];

struct Watched {
    in_use: Contents,
    broken: Option<Contents>,
    reported: Option<Contents>,
}

enum Finding {
    Nothing,
    New(Arc<CertifiedKey>),
    Broken(String),
}

impl Watched {
    fn compare(&mut self, read: Result<Pair, String>) -> Finding {
        let (contents, certified) = match &read {
            Ok(pair) => (pair.contents(), pair.certified()),
            Err(error) => (Sha256::digest(error).into(), Err(error.clone())),
        };
        if contents == self.in_use {
            (self.broken, self.reported) = (None, None);
            return Finding::Nothing;
        }
        match certified {
            Ok(certified) => {
                *self = Self { in_use: contents, broken: None, reported: None };
                Finding::New(Arc::new(certified))
            }
            // One of the two files may be replaced a moment before the other, so what is broken must stay so.
            Err(_) if self.broken != Some(contents) => {
                self.broken = Some(contents);
                Finding::Nothing
            }
            Err(_) if self.reported == Some(contents) => Finding::Nothing,
            Err(error) => {
                self.reported = Some(contents);
                Finding::Broken(error)
            }
        }
    }
}

/// What is in the two files.
struct Pair {
    cert: Vec<u8>,
    key: Vec<u8>,
    names: (String, String),
}

impl Pair {
    fn read(files: &TlsFiles) -> Result<Self, String> {
        let names = (files.cert.display().to_string(), files.key.display().to_string());
        Ok(Self { cert: read(&files.cert)?, key: read(&files.key)?, names })
    }

    fn contents(&self) -> Contents {
        let mut hash = Sha256::new();
        hash.update(Sha256::digest(&self.cert));
        hash.update(&self.key);
        hash.finalize().into()
    }

    /// The certificate with its key, if they belong together.
    fn certified(&self) -> Result<CertifiedKey, String> {
        let (cert, key) = &self.names;
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&self.cert)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("{cert} is not a PEM file with certificates: {error}"))?;
        if chain.is_empty() {
            return Err(format!("{cert} has no certificate in it (a block -----BEGIN CERTIFICATE-----)"));
        }
        let secret = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| format!("{key} is not a PEM file with a private key: {error}"))?;
        let provider = rustls::crypto::ring::default_provider();
        CertifiedKey::from_der(chain, secret, &provider).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                format!("the key in {key} does not belong to the first certificate in {cert}")
            }
            error => format!("{cert} and {key} cannot be used: {error}"),
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rubbish(cert: &str) -> Pair {
        Pair { cert: cert.into(), key: Vec::new(), names: ("cert.pem".to_owned(), "key.pem".to_owned()) }
    }

    #[test]
    fn a_broken_pair_is_reported_once_and_only_if_it_stays() {
        let mut watched = Watched { in_use: [0; 32], broken: None, reported: None };
        let mut found = |read| match watched.compare(read) {
            Finding::Nothing => None,
            Finding::New(_) => panic!("it is broken"),
            Finding::Broken(error) => Some(error),
        };
        assert_eq!(found(Ok(rubbish("half"))), None, "the other file may follow in a moment");
        assert_eq!(found(Ok(rubbish("whole"))), None, "it is another content");
        let said = found(Ok(rubbish("whole"))).expect("it stays broken");
        assert!(said.contains("cert.pem") && said.contains("BEGIN CERTIFICATE"), "{said}");
        assert_eq!(found(Ok(rubbish("whole"))), None);
        let gone = || Err("cert.pem cannot be read: No such file or directory".to_owned());
        assert_eq!(found(gone()), None);
        assert!(found(gone()).expect("it stays away").contains("cannot be read"));
        assert_eq!(found(gone()), None);
    }
}
