//! Certificates for this machine, made by openssl.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A certificate that is its own issuer, and its key.
pub struct Certificate {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Certificate {
    /// Makes one under this name in the folder, for `localhost` and `127.0.0.1`.
    pub fn make(folder: &Path, name: &str) -> Self {
        let made = Self { cert: folder.join(format!("{name}.pem")), key: folder.join(format!("{name}.key")) };
        let names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
        // One that is its own issuer must not be an authority to be trusted as a server's.
        let extensions = ["-addext", names, "-addext", "basicConstraints=critical,CA:FALSE"];
        openssl(&[&["req", "-x509", "-subj", &format!("/CN={name}")][..], &extensions].concat(), &made);
        made
    }

    /// Makes one that is an authority, which can issue others.
    pub fn make_authority(folder: &Path, name: &str) -> Self {
        let made = Self { cert: folder.join(format!("{name}.pem")), key: folder.join(format!("{name}.key")) };
        openssl(
            &[
                "req",
                "-x509",
                "-subj",
                &format!("/CN={name}"),
                "-addext",
                "basicConstraints=critical,CA:TRUE",
            ],
            &made,
        );
        made
    }

    /// Makes one for these names (`DNS:localhost,IP:127.0.0.1`), issued by this authority.
    pub fn issue(&self, folder: &Path, name: &str, names: &str) -> Self {
        let made = Self { cert: folder.join(format!("{name}.pem")), key: folder.join(format!("{name}.key")) };
        let (ca, ca_key) = (self.cert.display().to_string(), self.key.display().to_string());
        let subject = format!("/CN={name}");
        let names = format!("subjectAltName={names}");
        let issuer = ["-CA", &ca, "-CAkey", &ca_key];
        let extensions = ["-addext", &names, "-addext", "basicConstraints=critical,CA:FALSE"];
        openssl(&[&["req", "-x509", "-subj", &subject][..], &issuer, &extensions].concat(), &made);
        made
    }

    /// Puts this pair in the place of another.
    pub fn replace(&self, other: &Self) {
        std::fs::copy(&self.cert, &other.cert).expect("it can be copied");
        std::fs::copy(&self.key, &other.key).expect("it can be copied");
    }

    /// A client that trusts this certificate and no other.
    pub fn client(&self) -> reqwest::ClientBuilder {
        // Installs the cryptography that all clients use.
        drop(landfall_server::outbound::client());
        let pem = std::fs::read(&self.cert).expect("it was made");
        let certificate = reqwest::Certificate::from_pem(&pem).expect("it is a certificate");
        // A WebSocket begins with an upgrade, which HTTP/2 has not.
        reqwest::Client::builder().http1_only().tls_certs_only([certificate])
    }
}

/// Runs openssl, which makes the key with the certificate.
fn openssl(arguments: &[&str], made: &Certificate) {
    let output = Command::new("openssl")
        .args(arguments)
        .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "7"])
        .arg("-out")
        .arg(&made.cert)
        .arg("-keyout")
        .arg(&made.key)
        .stdin(Stdio::null())
        .output()
        .expect("openssl is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
