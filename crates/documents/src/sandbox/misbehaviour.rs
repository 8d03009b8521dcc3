//! What a document that has taken over its process might do, so that tests can check that the damage stays there.
//!
//! It exists only in a debug build, and only in a process that was started with `--misbehaving`.

use std::hint::black_box;
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Pid;

use super::child::Responses;
use super::protocol::{
    MISSING, NO_HEADING, NO_LEVEL, NO_PAGE, PLACES, PLAIN, PROGRESS, REFUSAL, TEXT, frame_header,
};

/// What remains to be done with the document.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Read,
    Nothing,
}

/// Does what the document orders, if it orders anything: `misbehave: VERB OBJECT`.
pub fn misbehave(bytes: &[u8], responses: &mut Responses) -> io::Result<Next> {
    let Some(order) = std::str::from_utf8(bytes).ok().and_then(|text| text.strip_prefix("misbehave: "))
    else {
        return Ok(Next::Read);
    };
    let (verb, object) = order.trim().split_once(' ').unwrap_or((order.trim(), ""));
    match verb {
        "panic" => panic!("as the document asked"),
        "abort" => std::process::abort(),
        "overflow" => drop(black_box(dig(1))),
        "exit" => std::process::exit(0),
        "fill-memory" => fill_memory(),
        "compute" => compute(),
        "compute-a-while" => {
            compute_a_while();
            report(responses, Ok(()))?;
        }
        "keep-memory" => {
            std::mem::forget(black_box(vec![1_u8; 100 << 20]));
            report(responses, Ok(()))?;
        }
        "print-pid" => respond(responses, std::process::id().to_string().as_bytes(), &[])?,
        "hang" => hang(),
        "hang-with-progress" => loop {
            responses.progress()?;
        },
        "close-stdout" => {
            // SAFETY: this never returns, so nothing is written to the descriptor after this.
            unsafe { libc::close(1) };
            hang()
        }
        "flood" => loop {
            responses.out.write_all(&[0xFF; 4096])?;
        },
        "flood-progress" => loop {
            responses.out.write_all(&frame_header(PROGRESS, 0))?;
        },
        "flood-text" => {
            responses.out.write_all(&frame_header(TEXT, u32::MAX))?;
            loop {
                responses.out.write_all(&[b'x'; 4096])?;
            }
        }
        "flood-stderr" => {
            for _ in 0..1_000 {
                io::stderr().write_all(&[b'?'; 4096])?;
            }
            return Ok(Next::Read);
        }
        "truncate-text" => {
            responses.out.write_all(&frame_header(TEXT, 1_000))?;
            responses.out.write_all(b"and that was all")?;
            responses.out.flush()?;
            std::process::exit(0)
        }
        "not-utf8" => respond(responses, b"text \xFF\xFE text", &[])?,
        "nul" => respond(responses, b"text\0text", &[])?,
        "place-beyond" => respond(responses, b"text", &[5])?,
        "place-far-beyond" => respond(responses, b"text", &[u64::MAX])?,
        "place-in-character" => respond(responses, "é".as_bytes(), &[1])?,
        "places-backwards" => respond(responses, b"text", &[3, 1])?,
        "foreign-refusal" => {
            responses.frame(REFUSAL, br#"{"kind": "killed", "message": "Try again"}"#)?;
        }
        "strange-warning" => missing(responses, r#"[{"code": "UNHEARD_OF", "message": "What?"}]"#, 1)?,
        "empty-warning" => missing(responses, r#"[{"code": "TRUNCATED", "message": " "}]"#, 1)?,
        "warning-of-two-lines" => missing(responses, r#"[{"code": "TRUNCATED", "message": "a\nb"}]"#, 1)?,
        "long-warning" => {
            let warning = format!(r#"[{{"code": "TRUNCATED", "message": "{}"}}]"#, "a".repeat(5_000));
            missing(responses, &warning, 1)?;
        }
        "many-warnings" => {
            let warnings = vec![r#"{"code": "TRUNCATED", "message": "a"}"#; 21].join(",");
            missing(responses, &format!("[{warnings}]"), 1)?;
        }
        "missing-pages" => missing(responses, "[]", 0)?,
        "unknown-kind" => responses.frame(b'?', b"what")?,
        "fork" => fork(responses)?,
        "execute" => report(responses, Err(Command::new("/bin/true").exec()))?,
        "connect" => report(responses, TcpStream::connect(object).map(drop))?,
        "open" => report(responses, std::fs::File::open(object).map(drop))?,
        "create" => report(responses, std::fs::File::create(object).map(drop))?,
        "signal" => {
            let other = object.parse().ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
            report(responses, rustix::process::test_kill_process(other).map_err(io::Error::from))?;
        }
        _ => return Err(io::Error::other(format!("there is no misbehaviour {verb}"))),
    }
    responses.out.flush()?;
    Ok(Next::Nothing)
}

/// Responds with this text and with places that start there, without any check.
fn respond(responses: &mut Responses, text: &[u8], starts: &[u64]) -> io::Result<()> {
    responses.frame(TEXT, text)?;
    let mut places = vec![PLAIN];
    places.extend(u32::try_from(starts.len()).unwrap_or(u32::MAX).to_le_bytes());
    for start in starts {
        places.extend(start.to_le_bytes());
        places.extend(NO_PAGE.to_le_bytes());
        places.push(NO_LEVEL);
        places.extend(NO_HEADING.to_le_bytes());
    }
    responses.frame(PLACES, &places)
}

/// Responds with a text, with these warnings, and with one page that cannot be read of so many.
fn missing(responses: &mut Responses, warnings: &str, pages: usize) -> io::Result<()> {
    let pages = format!(r#"{{"total": {pages}, "unreadable": 1, "without_picture": 0}}"#);
    responses.frame(TEXT, b"text")?;
    responses.frame(MISSING, format!(r#"{{"warnings": {warnings}, "pages": {pages}}}"#).as_bytes())?;
    responses.frame(PLACES, &[PLAIN, 0, 0, 0, 0])
}

/// Responds with whether a forbidden act worked.
fn report(responses: &mut Responses, outcome: io::Result<()>) -> io::Result<()> {
    let text = match outcome {
        Ok(()) => "it worked".to_owned(),
        Err(error) => format!("refused: {}", error.raw_os_error().unwrap_or_default()),
    };
    respond(responses, text.as_bytes(), &[])
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

fn compute() -> ! {
    let mut number = 0_u64;
    loop {
        number = black_box(number.wrapping_mul(31).wrapping_add(7));
    }
}

/// Uses a second and a half: a few of these exceed the limit of one document.
fn compute_a_while() {
    let used = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the clock exists, and the pointer is valid for the call.
        unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
        time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
    };
    let enough = used() + 1_500;
    while used() < enough {}
}

fn fill_memory() -> ! {
    let mut filled = Vec::new();
    loop {
        filled.push(black_box(vec![1_u8; 1 << 20]));
    }
}

#[expect(unconditional_recursion, reason = "that is the point")]
fn dig(depth: u64) -> [u64; 64] {
    let mut deeper = dig(black_box(depth + 1));
    deeper[0] += depth;
    deeper
}

/// Starts another process, and both hang.
fn fork(responses: &mut Responses) -> io::Result<()> {
    // SAFETY: this process has one thread, so the new one finds no lock held; it only waits to be killed.
    match unsafe { libc::fork() } {
        -1 => report(responses, Err(io::Error::last_os_error())),
        0 => hang(),
        other => {
            writeln!(io::stderr(), "started {other}")?;
            hang()
        }
    }
}
