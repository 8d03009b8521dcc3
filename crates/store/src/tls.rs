//! Says in a sentence why a TLS connection to PostgreSQL was refused.

use std::io::ErrorKind;

use rustls::CertificateError;
use sqlx_postgres::{PgConnectOptions, PgSslMode};

/// Why the server could not prove who it is, and what to do. `None` if the failure has another cause.
pub fn explain(error: &sqlx::Error, options: &PgConnectOptions) -> Option<String> {
    let server = format!("PostgreSQL at {}:{}", options.get_host(), options.get_port());
    let cause = match error {
        sqlx::Error::Io(error) => match error.get_ref().and_then(|cause| cause.downcast_ref()) {
            Some(rustls::Error::InvalidCertificate(cause)) => certificate(cause, options.get_host()),
            Some(other) => format!("broke off the TLS handshake: {other}"),
            None => return unreadable_file(error, options),
        },
        // The driver has no type for it.
        sqlx::Error::Tls(error) if error.to_string().contains("does not support TLS") => {
            "does not offer TLS, which the sslmode in DATABASE_URL asks for. Turn it on in the server (ssl = on); nothing \
             was sent to it"
                .to_owned()
        }
        sqlx::Error::Tls(error) => format!("cannot be reached over TLS: {error}"),
        _ => return None,
    };
    Some(format!("{server} {cause}"))
}

fn certificate(cause: &CertificateError, host: &str) -> String {
    match cause {
        CertificateError::UnknownIssuer => {
            "has a certificate of an authority that this machine does not trust. Name the authority's own certificate in \
             DATABASE_URL (sslrootcert=FILE)"
                .to_owned()
        }
        CertificateError::NotValidForName => name(host, ""),
        CertificateError::NotValidForNameContext { presented, .. } => {
            name(host, &format!(" ({})", presented.join(", ")))
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "has a certificate that has expired. Renew it, or check the clock of this machine".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "has a certificate that is not valid yet. Check the clocks of both machines".to_owned()
        }
        other => format!("has a certificate that cannot be accepted: {other}"),
    }
}

fn name(host: &str, presented: &str) -> String {
    format!(
        "has a certificate for another name{presented}. Use that name in DATABASE_URL, or give the server a certificate \
         for {host}"
    )
}

/// The files are read when a connection begins, and only if the certificate is checked.
fn unreadable_file(error: &std::io::Error, options: &PgConnectOptions) -> Option<String> {
    let checked = matches!(options.get_ssl_mode(), PgSslMode::VerifyCa | PgSslMode::VerifyFull);
    let is_file = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied);
    (checked && is_file && options.get_socket().is_none()).then(|| {
        format!("A file that DATABASE_URL names (sslrootcert, sslcert or sslkey) cannot be read: {error}")
    })
}
