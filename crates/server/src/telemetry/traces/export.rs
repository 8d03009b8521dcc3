//! Sends spans to the collector, many at once, from a queue that is as long as it may be. One that is full drops what
//! comes: a collector that hangs or is down costs spans and a warning, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanEvents, SpanExporter, SpanProcessor};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use landfall_core::clock::Clock;

/// Spans that may wait. One is about a kilobyte.
const MOST_WAITING: usize = 8_192;
const MOST_AT_ONCE: usize = 512;
/// How long the first span of a group waits for others.
const GATHER: Duration = Duration::from_millis(500);
/// What the last spans may take when the process ends.
const LAST_SPANS: Duration = Duration::from_secs(5);

/// Where spans end up when they end.
#[derive(Debug)]
pub struct Queue {
    spans: mpsc::Sender<SpanData>,
    dropped: Arc<AtomicU64>,
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, mut span: SpanData) {
        // There are none, and nobody has to be told how many there could have been.
        span.events = SpanEvents::default();
        if span.span_context.is_sampled() && self.spans.try_send(span).is_err() {
            count(&self.dropped, 1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        // They are on their way, and this may not wait.
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// The task that sends them.
pub struct Exporting {
    finish: CancellationToken,
    task: JoinHandle<()>,
}

impl Exporting {
    /// `endpoint` may hold a key and is kept out of what is logged.
    pub fn start(
        exporter: impl SpanExporter + 'static,
        timeout: Duration,
        endpoint: String,
    ) -> (Self, Queue) {
        let (sender, spans) = mpsc::channel(MOST_WAITING);
        let (finish, dropped) = (CancellationToken::new(), Arc::<AtomicU64>::default());
        let sending =
            Sending { exporter, timeout, endpoint, dropped: dropped.clone(), told: 0, fails: false };
        let task = tokio::spawn(sending.run(spans, finish.clone()));
        (Self { finish, task }, Queue { spans: sender, dropped })
    }

    pub async fn finish(self) {
        self.finish.cancel();
        if tokio::time::timeout(LAST_SPANS, self.task).await.is_err() {
            tracing::warn!("the last spans could not be sent in time");
        }
    }
}

struct Sending<E> {
    exporter: E,
    timeout: Duration,
    endpoint: String,
    dropped: Arc<AtomicU64>,
    /// How many dropped ones were told of.
    told: u64,
    fails: bool,
}

impl<E: SpanExporter> Sending<E> {
    async fn run(mut self, mut spans: mpsc::Receiver<SpanData>, finish: CancellationToken) {
        let mut group = Vec::with_capacity(MOST_AT_ONCE);
        loop {
            tokio::select! {
                received = spans.recv_many(&mut group, MOST_AT_ONCE) => {
                    if received == 0 {
                        return;
                    }
                }
                // From now on only what is here already.
                () = finish.cancelled(), if !spans.is_closed() => {
                    spans.close();
                    continue;
                }
            }
            let gathered = async {
                while group.len() < MOST_AT_ONCE && spans.recv_many(&mut group, MOST_AT_ONCE).await > 0 {}
            };
            tokio::select! {
                () = gathered => {}
                () = Clock::System.sleep(GATHER) => {}
                () = finish.cancelled() => {}
            }
            self.send(std::mem::take(&mut group)).await;
        }
    }

    async fn send(&mut self, group: Vec<SpanData>) {
        let count_of_group = group.len() as u64;
        let sent = tokio::time::timeout(self.timeout, self.exporter.export(group)).await;
        let error = match sent {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string().replace(&self.endpoint, "the collector")),
            Err(_) => Some("no answer in time".to_owned()),
        };
        if error.is_some() {
            count(&self.dropped, count_of_group);
        }
        let dropped = self.dropped.load(Ordering::Relaxed);
        match error {
            // Once for each time that it goes away, however long it stays away.
            Some(error) if !self.fails => {
                self.fails = true;
                tracing::warn!(error, dropped, "spans cannot be sent to the collector and are dropped");
            }
            None if self.fails || dropped > self.told => {
                self.fails = false;
                self.told = dropped;
                tracing::warn!(dropped, "spans are sent to the collector again; some were dropped");
            }
            _ => {}
        }
    }
}

fn count(dropped: &AtomicU64, spans: u64) {
    dropped.fetch_add(spans, Ordering::Relaxed);
    metrics::counter!("trace_spans_dropped_total").increment(spans);
}
