//! Event streams: those who listen, those who join while events are written, and those who do not keep up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use landfall_core::caller::{Reach, TenantUser};
use landfall_core::clock::{Ahead, Clock, SimulatedTime, Time};
use landfall_schedules::delivery::EventsConfig;
use landfall_schedules::delivery::fan_out::{FanOut, Filter, Next};
use landfall_schedules::world::{self, Run, faults::Database};
use landfall_store::{Db, Error, Tx, Write, args};
use shuttle::future::{block_on, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use tokio_util::sync::CancellationToken;

/// Events that each of two writers writes, one in each transaction.
const EVENTS: i64 = 4;
/// No sleep that is shorter keeps anyone from what is there already. Those that are longer are there for lost signals.
const SHORT: Duration = Duration::from_millis(20);

static TOO_SLOW: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);

struct WriteEvent;

impl Write for WriteEvent {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let sql = "INSERT INTO events (at, kind, tenant_id, user_id) VALUES ($1, 'test', 'acme', 'ada')";
        tx.execute(sql, args![Time::UNIX_EPOCH]).await.map(drop)
    }
}

#[test]
fn a_listener_gets_each_event_once_and_in_order_whenever_it_joins() {
    world::check(400, || {
        block_on(async {
            let time = SimulatedTime::starting_at(Time::UNIX_EPOCH, Ahead::default());
            time.enter();
            let db = world::connect(Some(Database::failing(0)));
            db.write(Run(vec!["DELETE FROM events"])).await.expect("the database works");
            let before = last_event(&db).await;
            let config = EventsConfig {
                streams: 10,
                streams_per_user: 10,
                buffer: 2,
                heartbeat: Duration::from_secs(15),
                stall: Duration::from_secs(15),
            };
            let fan_out = FanOut::new(db.clone(), db.wake().clone(), Clock::System, config);
            let stop = CancellationToken::new();
            let distribution = spawn({
                let (fan_out, stop) = (fan_out.clone(), stop.clone());
                async move { fan_out.run(stop).await }
            });
            let over = Arc::new(AtomicBool::new(false));
            let clock = spawn(pass_time(time, over.clone()));
            let last = before + 2 * EVENTS;
            let listeners: Vec<_> = [Some(before), None, Some(before)]
                .into_iter()
                .take(thread_rng().gen_range(1..=3))
                .map(|after| spawn(listen(fan_out.clone(), after, last)))
                .collect();
            let writers = (0..2).map(|_| {
                let db = db.clone();
                spawn(async move {
                    for _ in 0..EVENTS {
                        db.write(WriteEvent).await.expect("the database works");
                    }
                })
            });
            for writer in writers.collect::<Vec<_>>() {
                writer.await.expect("the writer ends");
            }
            for listener in listeners {
                let (after, seen) = listener.await.expect("the listener ends");
                assert_eq!(seen, (after + 1..=last).collect::<Vec<i64>>(), "all events after {after}");
            }
            assert_eq!(fan_out.open_streams(), 0, "every stream is counted out");
            stop.cancel();
            distribution.await.expect("the distribution ends");
            over.store(true, Ordering::Relaxed);
            clock.await.expect("the clock ends");
        });
    });
    assert!(TOO_SLOW.load(Ordering::Relaxed) > 0, "some listeners did not keep up");
    assert!(LIVE.load(Ordering::Relaxed) > 0, "some listeners saw events as they happened");
}

async fn last_event(db: &Db) -> i64 {
    db.read().await.expect("a connection").last_id("events").await.expect("a number")
}

/// Ends the short sleeps, and none that are there for lost signals.
async fn pass_time(time: SimulatedTime, over: Arc<AtomicBool>) {
    while !over.load(Ordering::Relaxed) {
        world::end_sleep_within(&time, SHORT);
        yield_now().await;
    }
}

/// Where a listener began, and the ids of all events that it saw, up to the last. One that is too slow, or that loses its
/// connection, begins again after the last that it has.
async fn listen(fan_out: FanOut, mut after: Option<i64>, last: i64) -> (i64, Vec<i64>) {
    let user = TenantUser::new("acme", "ada");
    let mut seen: Vec<i64> = Vec::new();
    loop {
        let position = seen.last().copied().or(after);
        let stream = fan_out.listen(user.clone(), Reach::User(user.clone()), Filter::default(), position);
        let mut stream = stream.expect("there is room for a stream");
        let mut is_live = false;
        loop {
            if let Some(after) = after
                && seen.last().copied().unwrap_or(after) >= last
            {
                return (after, seen);
            }
            match stream.next().await.expect("the database works") {
                Next::CaughtUp => is_live = true,
                Next::TooSlow => {
                    TOO_SLOW.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                Next::Messages(messages) => {
                    for message in messages {
                        let json: serde_json::Value = serde_json::from_slice(&message.json()).expect("JSON");
                        if json["type"] == "stream:open" {
                            after.get_or_insert(message.id);
                        } else {
                            seen.push(message.id);
                            LIVE.fetch_add(usize::from(is_live), Ordering::Relaxed);
                        }
                    }
                    if after.is_some() && thread_rng().gen_bool(0.3) {
                        break;
                    }
                }
            }
        }
    }
}
