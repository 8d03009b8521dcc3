//! `landfall top`: shows the state of the server, refreshed all the time.
//!
//! One task polls the server (`snapshot.rs`). The last snapshot is laid out for the size of the terminal (`frame.rs`) and
//! drawn on the alternate screen, which disappears at the end (`screen.rs`).

mod frame;
mod screen;
mod snapshot;

use std::io::IsTerminal;
use std::time::Duration;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use self::frame::{Frame, Size};
use self::screen::{Keys, Screen};
use self::snapshot::{Poller, Recent};
use crate::Outcome;
use crate::client::{Client, Connection};
use landfall_core::clock::Clock;

/// The frame is redrawn at least this often: ages grow even if the server does not respond.
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files of all users, for administrators.
    #[arg(long)]
    all: bool,
    /// Seconds between two polls, from 0.1 to 3600.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// Print one frame and exit.
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
    let poller = Poller::new(Client::connect(&args.connection)?, args.all);
    if args.once || as_json || !std::io::stdout().is_terminal() {
        print(poller, args, as_json).await
    } else {
        live(poller, args.interval).await
    }
}

/// Prints frames one after the other, for a script or a file. With JSON, each snapshot is one line.
async fn print(mut poller: Poller, args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let mut recent = Recent::new(poller.server(), args.all);
    loop {
        match poller.poll().await {
            // There is no frame to print without a first snapshot, and some errors are permanent.
            Err(error) if args.once || !error.is_transient() => return Err(error.into()),
            Err(error) if as_json => eprintln!("{error}"),
            Ok(snapshot) if as_json => println!("{}", json!(snapshot)),
            polled => {
                recent.add(polled, Clock::System.now());
                let size = Size { width: screen::width(), height: None };
                println!("{}", Frame { recent: &recent, size, now: Clock::System.now() }.lines().join("\n"));
            }
        }
        if args.once {
            return Ok(Outcome::Good);
        }
        Clock::System.sleep(args.interval).await;
    }
}

async fn live(mut poller: Poller, interval: Duration) -> anyhow::Result<Outcome> {
    let mut recent = Recent::new(poller.server(), poller.all());
    // Before the screen is opened: an error that will not pass must stay visible.
    match poller.poll().await {
        Err(error) if !error.is_transient() => return Err(error.into()),
        polled => recent.add(polled, Clock::System.now()),
    }
    let (sender, mut polls) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            Clock::System.sleep(interval).await;
            if sender.send(poller.poll().await).await.is_err() {
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
        let frame = Frame { recent: &recent, size: screen.size(), now: Clock::System.now() };
        screen.draw(&frame.lines())?;
        tokio::select! {
            polled = polls.recv() => match polled {
                Some(polled) => recent.add(polled, Clock::System.now()),
                None => anyhow::bail!("the task that polls the server has ended"),
            },
            _ = resized.recv() => {}
            () = Clock::System.sleep(REDRAW_INTERVAL) => {}
            () = keys.quit() => return Ok(Outcome::Good),
            _ = interrupted.recv() => return Ok(Outcome::Good),
            _ = terminated.recv() => return Ok(Outcome::Good),
            _ = quit.recv() => return Ok(Outcome::Good),
            _ = stopped.recv() => screen = screen::suspend(screen)?,
        }
    }
}
