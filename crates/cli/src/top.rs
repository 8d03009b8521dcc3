//! `landfall top`: how everything stands, again and again.
//!
//! One task asks the server (`seen.rs`); what it saw last is laid out for the terminal as it is now (`frame.rs`) and put on
//! a screen of its own, which is gone without a trace at the end (`screen.rs`).

mod frame;
mod screen;
mod seen;

use std::io::IsTerminal;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use self::frame::{Frame, Size};
use self::screen::{Keys, Screen};
use self::seen::{Looks, Observer};
use crate::Outcome;
use crate::client::{Client, Connection};
use landfall_core::clock::Clock;

/// What is shown is drawn anew at least so often: ages grow also while the server says nothing.
const TICK: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Everybody's files, for administrators.
    #[arg(long)]
    all: bool,
    /// Seconds between two looks, from 0.1 to 3600.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// Print how everything stands now, and end.
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    connection: Connection,
}

fn interval(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| (0.1..=3_600.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "a number of seconds from 0.1 to 3600".to_owned())
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let observer = Observer::new(Client::connect(&args.connection)?, args.all);
    if args.once || as_json || !std::io::stdout().is_terminal() {
        print(observer, args, as_json).await
    } else {
        live(observer, args.interval).await
    }
}

/// One frame after the other, for a script or a file. With JSON each look is a line.
async fn print(mut observer: Observer, args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let mut looks = Looks::new(observer.server(), args.all);
    loop {
        match observer.look().await {
            // A script wants to know that there was no answer, and a person would look at an empty frame.
            Err(error) if args.once || !error.may_pass() => return Err(error.into()),
            Err(error) if as_json => eprintln!("{error}"),
            Ok(seen) if as_json => println!("{}", seen.as_json()),
            look => {
                looks.take(look, Clock::System.now());
                let size = Size { width: screen::width(), height: None };
                println!("{}", Frame { looks: &looks, size, now: Clock::System.now() }.lines().join("\n"));
            }
        }
        if args.once {
            return Ok(Outcome::Good);
        }
        Clock::System.sleep(args.interval).await;
    }
}

async fn live(mut observer: Observer, interval: Duration) -> anyhow::Result<Outcome> {
    let mut looks = Looks::new(observer.server(), observer.all());
    // Whoever may not ask learns it where the sentence stays.
    match observer.look().await {
        Err(error) if !error.may_pass() => return Err(error.into()),
        look => looks.take(look, Clock::System.now()),
    }
    let (tell, mut told) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            Clock::System.sleep(interval).await;
            if tell.send(observer.look().await).await.is_err() {
                return;
            }
        }
    });
    let mut resized = signal(SignalKind::window_change())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut stopped = signal(SignalKind::from_raw(libc::SIGTSTP))?;
    let mut screen = Screen::open()?;
    let mut keys = Keys::listen();
    loop {
        let frame = Frame { looks: &looks, size: screen.size(), now: Clock::System.now() };
        screen.draw(&frame.lines())?;
        tokio::select! {
            look = told.recv() => match look {
                Some(look) => looks.take(look, Clock::System.now()),
                None => anyhow::bail!("nobody asks the server any more"),
            },
            _ = resized.recv() => {}
            () = Clock::System.sleep(TICK) => {}
            () = keys.end() => return Ok(Outcome::Good),
            _ = interrupted.recv() => return Ok(Outcome::Good),
            _ = terminated.recv() => return Ok(Outcome::Good),
            _ = quit.recv() => return Ok(Outcome::Good),
            _ = stopped.recv() => screen = screen::leave_for_a_while(screen)?,
        }
    }
}
