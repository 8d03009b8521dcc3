//! Shows a file to the virus scanner before anything else touches it, over clamd's INSTREAM protocol.
//!
//! Only a clear "OK" to the whole of it lets a file pass. A scanner that is away, at fault or silent makes it wait, which
//! costs it no attempt.

use std::path::PathBuf;
use std::str::FromStr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::storage_failed;
use landfall_core::failure::{Code, Failure};

/// Bytes in one portion of the stream.
const PORTION: usize = 64 * 1024;
/// The longest answer that makes sense: a sentence with the name of what was found.
const LONGEST_ANSWER: usize = 4 * 1024;

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

/// Sends all of `document` to the scanner. `Ok` means that it is clean; `progress` hears of every portion.
pub async fn scan(
    address: &Address,
    document: impl AsyncRead + Unpin,
    progress: impl Fn(),
) -> Result<(), Failure> {
    match address {
        Address::Tcp(address) => {
            stream(TcpStream::connect(address).await.map_err(away)?, document, progress).await
        }
        Address::Unix(path) => {
            stream(UnixStream::connect(path).await.map_err(away)?, document, progress).await
        }
    }
}

async fn stream(
    clamd: impl AsyncRead + AsyncWrite,
    document: impl AsyncRead + Unpin,
    progress: impl Fn(),
) -> Result<(), Failure> {
    let (mut answers, mut takes) = tokio::io::split(clamd);
    let sending = send(&mut takes, document, progress);
    let answering = receive(&mut answers);
    tokio::pin!(sending, answering);
    // One that has enough says so and hangs up: its answer is listened for from the beginning, and before each portion.
    let (answer, saw_all) = tokio::select! {
        biased;
        answer = &mut answering => (answer, false),
        sent = &mut sending => match sent {
            // Without the whole document there is nothing to wait for.
            Err(failure) if failure.code == Code::IoError => return Err(failure),
            // One that hung up has said why.
            sent => (answering.await, sent.is_ok()),
        },
    };
    judge(&answer.map_err(away)?)?;
    if saw_all {
        return Ok(());
    }
    // What is found in the beginning of a document is found. That there is nothing in it, only its end can show.
    tracing::warn!("the virus scanner passed a file that it had not seen the whole of");
    Err(Failure::new(Code::ScannerUnavailable, "The virus scanner did not look at the whole file"))
}

async fn send(
    clamd: &mut (impl AsyncWrite + Unpin),
    mut document: impl AsyncRead + Unpin,
    progress: impl Fn(),
) -> Result<(), Failure> {
    clamd.write_all(b"zINSTREAM\0").await.map_err(away)?;
    let mut portion = vec![0; PORTION];
    loop {
        let read = document.read(&mut portion).await.map_err(|error| storage_failed(&error))?;
        let length = u32::try_from(read).expect("a portion is small");
        // The last portion is empty, which is how clamd knows it.
        clamd.write_all(&length.to_be_bytes()).await.map_err(away)?;
        clamd.write_all(&portion[..read]).await.map_err(away)?;
        if read == 0 {
            return Ok(());
        }
        progress();
    }
}

/// All that clamd says. It ends with a NUL.
async fn receive(clamd: &mut (impl AsyncRead + Unpin)) -> std::io::Result<String> {
    let mut said = Vec::new();
    let mut portion = [0; 512];
    let mut cut_off = false;
    while said.len() < LONGEST_ANSWER && !said.ends_with(b"\0") {
        match clamd.read(&mut portion).await {
            Ok(0) => break,
            Ok(read) => said.extend_from_slice(&portion[..read]),
            // It hung up on what we were still sending. What it had said before comes after this.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset && !cut_off => cut_off = true,
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// `stream: OK`, `stream: NAME FOUND`, or `… ERROR`.
fn judge(answer: &str) -> Result<(), Failure> {
    let answer = answer.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    let said = answer.strip_prefix("stream: ").unwrap_or(answer);
    if said == "OK" {
        return Ok(());
    }
    if let Some(name) = said.strip_suffix(" FOUND") {
        return Err(found(name));
    }
    // These two are all that clamd says of the document and not of itself.
    if said.starts_with("INSTREAM size limit exceeded") {
        return Err(Failure::new(
            Code::Unscannable,
            "This file is larger than the virus scanner takes, so it was not let through",
        ));
    }
    if let Some(reason) = said.strip_suffix(" ERROR") {
        tracing::warn!(reason, "the virus scanner failed");
    }
    Err(Failure::new(Code::ScannerUnavailable, "The virus scanner did not come to a result"))
}

/// clamd reports what it could not look into in the same way as what it found there.
fn found(name: &str) -> Failure {
    let name: String = name.chars().filter(|c| !c.is_control()).take(200).collect();
    if name.starts_with("Heuristics.Encrypted") {
        Failure::new(
            Code::Unscannable,
            "The virus scanner cannot look inside this file, because it is encrypted, so it was not let through",
        )
    } else if name.starts_with("Heuristics.Limits.Exceeded") {
        Failure::new(
            Code::Unscannable,
            "This file is too large or too deeply packed for the virus scanner, so it was not let through",
        )
    } else {
        Failure::new(Code::Infected, format!("The virus scanner found {name}. The file was removed"))
    }
}

fn away(error: std::io::Error) -> Failure {
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
    fn only_a_clear_ok_lets_a_file_pass() {
        let code = |answer: &str| judge(answer).unwrap_err().code;
        assert_eq!(judge("stream: OK\0"), Ok(()));
        assert_eq!(code("stream: Eicar-Signature FOUND\0"), Code::Infected);
        assert_eq!(code("stream: Heuristics.Encrypted.Zip FOUND\0"), Code::Unscannable);
        assert_eq!(code("stream: Heuristics.Limits.Exceeded.MaxFileSize FOUND\0"), Code::Unscannable);
        assert_eq!(code("INSTREAM size limit exceeded. ERROR\0"), Code::Unscannable);
        for answer in
            ["", "OK?", "stream: OK FOUND ERROR", "UNKNOWN COMMAND\0", "stream: Can't allocate memory ERROR"]
        {
            assert_eq!(code(answer), Code::ScannerUnavailable, "{answer}");
        }
    }
}
