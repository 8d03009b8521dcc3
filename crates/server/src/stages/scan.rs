//! Sends a file to the virus scanner before any other stage, over clamd's INSTREAM protocol.
//!
//! A file passes only if the scanner reports "OK" for the whole of it. If the scanner is down, fails or does not
//! respond, the file waits, which costs it no attempt.

use std::path::PathBuf;
use std::str::FromStr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::storage_failed;
use landfall_core::failure::{Code, Failure};

/// The size of one chunk of the stream.
const CHUNK_SIZE: usize = 64 * 1024;
/// The maximum length of a sensible response: a sentence with the name of what was found.
const MAX_RESPONSE: usize = 4 * 1024;

/// Where clamd listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Tcp(String),
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "host:port, or the path of a socket: /run/clamav/clamd.ctl";
        let path = text.strip_prefix("unix:").map(|rest| rest.strip_prefix("//").unwrap_or(rest));
        if let Some(path) = path.or_else(|| text.starts_with('/').then_some(text)) {
            return if path.starts_with('/') { Ok(Self::Unix(path.into())) } else { Err(FORM.to_owned()) };
        }
        let address = text.strip_prefix("tcp://").unwrap_or(text);
        match address.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
                Ok(Self::Tcp(address.to_owned()))
            }
            _ => Err(FORM.to_owned()),
        }
    }
}

/// Sends all of `document` to the scanner. `Ok` means that it is clean; `progress` is called after every chunk.
pub async fn scan(
    address: &Address,
    document: impl AsyncRead + Unpin,
    progress: impl Fn(),
) -> Result<(), Failure> {
    match address {
        Address::Tcp(address) => {
            stream(TcpStream::connect(address).await.map_err(not_reached)?, document, progress).await
        }
        Address::Unix(path) => {
            stream(UnixStream::connect(path).await.map_err(not_reached)?, document, progress).await
        }
    }
}

async fn stream(
    clamd: impl AsyncRead + AsyncWrite,
    document: impl AsyncRead + Unpin,
    progress: impl Fn(),
) -> Result<(), Failure> {
    let (mut reads, mut writes) = tokio::io::split(clamd);
    let sending = send(&mut writes, document, progress);
    let receiving = receive(&mut reads);
    tokio::pin!(sending, receiving);
    // A scanner that has enough responds and hangs up, so the response is polled from the start, before each chunk.
    let (response, saw_all) = tokio::select! {
        biased;
        response = &mut receiving => (response, false),
        sent = &mut sending => match sent {
            // The whole document cannot be sent, so there is no need to wait.
            Err(failure) if failure.code == Code::IoError => return Err(failure),
            // A scanner that hung up has sent the reason.
            sent => (receiving.await, sent.is_ok()),
        },
    };
    judge(&response.map_err(unreachable)?)?;
    if saw_all {
        return Ok(());
    }
    // A finding in the first part of a document is valid. That a document is clean needs the whole of it.
    tracing::warn!("the virus scanner passed a file before it had received all of it");
    Err(Failure::new(Code::ScannerUnavailable, "The virus scanner did not check the whole file"))
}

async fn send(
    clamd: &mut (impl AsyncWrite + Unpin),
    mut document: impl AsyncRead + Unpin,
    progress: impl Fn(),
) -> Result<(), Failure> {
    clamd.write_all(b"zINSTREAM\0").await.map_err(unreachable)?;
    let mut chunk = vec![0; CHUNK_SIZE];
    loop {
        let read = document.read(&mut chunk).await.map_err(|error| storage_failed(&error))?;
        let length = u32::try_from(read).expect("a chunk is small");
        // An empty chunk ends the stream.
        clamd.write_all(&length.to_be_bytes()).await.map_err(unreachable)?;
        clamd.write_all(&chunk[..read]).await.map_err(unreachable)?;
        if read == 0 {
            return Ok(());
        }
        progress();
    }
}

/// The whole response of clamd. It ends with a NUL.
async fn receive(clamd: &mut (impl AsyncRead + Unpin)) -> std::io::Result<String> {
    let mut received = Vec::new();
    let mut chunk = [0; 512];
    let mut cut_off = false;
    while received.len() < MAX_RESPONSE && !received.ends_with(b"\0") {
        match clamd.read(&mut chunk).await {
            Ok(0) => break,
            Ok(read) => received.extend_from_slice(&chunk[..read]),
            // It hung up while we were still sending. What it sent before that can still be read.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset && !cut_off => cut_off = true,
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&received).into_owned())
}

/// `stream: OK`, `stream: NAME FOUND`, or `… ERROR`.
fn judge(response: &str) -> Result<(), Failure> {
    let response = response.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    let received = response.strip_prefix("stream: ").unwrap_or(response);
    if received == "OK" {
        return Ok(());
    }
    if let Some(name) = received.strip_suffix(" FOUND") {
        return Err(found(name));
    }
    // These are the only two errors that are about the document and not about clamd.
    if received.starts_with("INSTREAM size limit exceeded") {
        return Err(Failure::new(
            Code::Unscannable,
            "This file is larger than the limit of the virus scanner, so it was rejected",
        ));
    }
    if let Some(reason) = received.strip_suffix(" ERROR") {
        tracing::warn!(reason, "the virus scanner failed");
    }
    Err(Failure::new(Code::ScannerUnavailable, "The virus scanner returned no result"))
}

/// clamd reports what it could not check in the same form as what it found.
fn found(name: &str) -> Failure {
    let name: String = name.chars().filter(|c| !c.is_control()).take(200).collect();
    if name.starts_with("Heuristics.Encrypted") {
        Failure::new(
            Code::Unscannable,
            "The virus scanner cannot check this file, because it is encrypted, so it was rejected",
        )
    } else if name.starts_with("Heuristics.Limits.Exceeded") {
        Failure::new(
            Code::Unscannable,
            "This file is too large or too deeply packed for the virus scanner, so it was rejected",
        )
    } else {
        Failure::new(Code::Infected, format!("The virus scanner found {name}, and the file was removed"))
    }
}

fn not_reached(error: std::io::Error) -> Failure {
    unreachable(error).not_reached()
}

fn unreachable(error: std::io::Error) -> Failure {
    tracing::warn!(%error, "the virus scanner cannot be reached");
    Failure::new(Code::ScannerUnavailable, "The virus scanner cannot be reached")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_with_a_port_or_a_socket() {
        let tcp = |text: &str| Ok(Address::Tcp(text.to_owned()));
        assert_eq!("localhost:3310".parse(), tcp("localhost:3310"));
        assert_eq!("tcp://[::1]:3310".parse(), tcp("[::1]:3310"));
        let socket = Ok(Address::Unix("/run/clamd".into()));
        for text in ["/run/clamd", "unix:/run/clamd", "unix:///run/clamd"] {
            assert_eq!(text.parse(), socket, "{text}");
        }
        for text in ["localhost", ":3310", "localhost:0", "localhost:http", "unix:clamd", ""] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_an_explicit_ok_lets_a_file_pass() {
        let code = |response: &str| judge(response).unwrap_err().code;
        assert_eq!(judge("stream: OK\0"), Ok(()));
        assert_eq!(code("stream: Eicar-Signature FOUND\0"), Code::Infected);
        assert_eq!(code("stream: Heuristics.Encrypted.Zip FOUND\0"), Code::Unscannable);
        assert_eq!(code("stream: Heuristics.Limits.Exceeded.MaxFileSize FOUND\0"), Code::Unscannable);
        assert_eq!(code("INSTREAM size limit exceeded. ERROR\0"), Code::Unscannable);
        for response in
            ["", "OK?", "stream: OK FOUND ERROR", "UNKNOWN COMMAND\0", "stream: Can't allocate memory ERROR"]
        {
            assert_eq!(code(response), Code::ScannerUnavailable, "{response}");
        }
    }
}
