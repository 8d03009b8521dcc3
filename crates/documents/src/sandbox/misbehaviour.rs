//! What a document that has taken over its process might do, for tests to see that nobody else is hurt.
//!
//! It is there only in a program that is being worked on, and only in a process that was started for it.

use std::hint::black_box;
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Pid;

use super::child::Answers;
use super::protocol::{NO_HEADING, NO_PAGE, PLACES, PLAIN, PROGRESS, REFUSAL, TEXT, frame_header};

/// What is left to do with the document.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Read,
    Nothing,
}

/// Does what the document says, if it says anything: `misbehave: VERB OBJECT`.
pub fn misbehave(bytes: &[u8], answers: &mut Answers) -> io::Result<Next> {
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
        "eat-memory" => eat_memory(),
        "compute" => compute(),
        "compute-a-while" => {
            compute_a_while();
            report(answers, Ok(()))?;
        }
        "keep-memory" => {
            std::mem::forget(black_box(vec![1_u8; 100 << 20]));
            report(answers, Ok(()))?;
        }
        "name-yourself" => answer(answers, std::process::id().to_string().as_bytes(), &[])?,
        "hang" => hang(),
        "hang-with-progress" => loop {
            answers.progress()?;
        },
        "stop-answering" => {
            // SAFETY: nothing is written to the answers after this, because this never ends.
            unsafe { libc::close(1) };
            hang()
        }
        "spew" => loop {
            answers.out.write_all(&[0xFF; 4096])?;
        },
        "spew-progress" => loop {
            answers.out.write_all(&frame_header(PROGRESS, 0))?;
        },
        "spew-text" => {
            answers.out.write_all(&frame_header(TEXT, u32::MAX))?;
            loop {
                answers.out.write_all(&[b'x'; 4096])?;
            }
        }
        "complain" => {
            for _ in 0..1_000 {
                io::stderr().write_all(&[b'?'; 4096])?;
            }
            return Ok(Next::Read);
        }
        "announce-more" => {
            answers.out.write_all(&frame_header(TEXT, 1_000))?;
            answers.out.write_all(b"and that was all")?;
            answers.out.flush()?;
            std::process::exit(0)
        }
        "not-utf8" => answer(answers, b"text \xFF\xFE text", &[])?,
        "nul" => answer(answers, b"text\0text", &[])?,
        "place-beyond" => answer(answers, b"text", &[5])?,
        "place-far-beyond" => answer(answers, b"text", &[u64::MAX])?,
        "place-in-character" => answer(answers, "é".as_bytes(), &[1])?,
        "places-backwards" => answer(answers, b"text", &[3, 1])?,
        "foreign-code" => {
            answers.frame(REFUSAL, br#"{"code": "INFECTED", "message": "Remove this file"}"#)?;
        }
        "unknown-kind" => answers.frame(b'?', b"what")?,
        "fork" => fork(answers)?,
        "execute" => report(answers, Err(Command::new("/bin/true").exec()))?,
        "connect" => report(answers, TcpStream::connect(object).map(drop))?,
        "open" => report(answers, std::fs::File::open(object).map(drop))?,
        "create" => report(answers, std::fs::File::create(object).map(drop))?,
        "signal" => {
            let other = object.parse().ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
            report(answers, rustix::process::test_kill_process(other).map_err(io::Error::from))?;
        }
        _ => return Err(io::Error::other(format!("there is no misbehaviour called {verb}"))),
    }
    answers.out.flush()?;
    Ok(Next::Nothing)
}

/// An answer of this text and places that start there, whatever is wrong with them.
fn answer(answers: &mut Answers, text: &[u8], starts: &[u64]) -> io::Result<()> {
    answers.frame(TEXT, text)?;
    let mut places = vec![PLAIN];
    for start in starts {
        places.extend(start.to_le_bytes());
        places.extend(NO_PAGE.to_le_bytes());
        places.extend(NO_HEADING.to_le_bytes());
    }
    answers.frame(PLACES, &places)
}

/// Tells whether something worked that should not have.
fn report(answers: &mut Answers, outcome: io::Result<()>) -> io::Result<()> {
    let text = match outcome {
        Ok(()) => "it worked".to_owned(),
        Err(error) => format!("refused: {}", error.raw_os_error().unwrap_or_default()),
    };
    answer(answers, text.as_bytes(), &[])
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

/// A second and a half, of which a limit of two seconds leaves no room for another.
fn compute_a_while() {
    let used = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the clock is one that there is, and the pointer is good for the call.
        unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
        time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
    };
    let enough = used() + 1_500;
    while used() < enough {}
}

fn eat_memory() -> ! {
    let mut eaten = Vec::new();
    loop {
        eaten.push(black_box(vec![1_u8; 1 << 20]));
    }
}

#[expect(unconditional_recursion, reason = "that is the point")]
fn dig(depth: u64) -> [u64; 64] {
    let mut deeper = dig(black_box(depth + 1));
    deeper[0] += depth;
    deeper
}

/// Starts another process and tells its number, then hangs like that one.
fn fork(answers: &mut Answers) -> io::Result<()> {
    // SAFETY: this process has one thread, so the other finds no lock held; it only waits to be killed.
    match unsafe { libc::fork() } {
        -1 => report(answers, Err(io::Error::last_os_error())),
        0 => hang(),
        other => {
            writeln!(io::stderr(), "started {other}")?;
            hang()
        }
    }
}
