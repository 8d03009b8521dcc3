//! Sends spans to the collector in batches, from a bounded queue. A full queue drops new spans: a collector that
//! hangs or is down costs spans and a warning, and nothing else.

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

/// The maximum number of waiting spans. A span is about a kilobyte.
const QUEUE_SIZE: usize = 8_192;
const BATCH_SIZE: usize = 512;
/// How long the first span of a batch waits for others.
const BATCH_DELAY: Duration = Duration::from_millis(500);
/// How long the last spans may take when the process ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Receives spans when they end.
#[derive(Debug)]
pub struct Queue {
    spans: mpsc::Sender<SpanData>,
    dropped: Arc<AtomicU64>,
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, mut span: SpanData) {
        // There are no events; this also clears the number of dropped ones.
        span.events = SpanEvents::default();
        if span.span_context.is_sampled() && self.spans.try_send(span).is_err() {
            count(&self.dropped, 1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        // The spans are in the queue, and this must not block.
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
    /// `endpoint` may contain a key and is kept out of the log.
    pub fn start(
        exporter: impl SpanExporter + 'static,
        timeout: Duration,
        endpoint: String,
    ) -> (Self, Queue) {
        let (sender, spans) = mpsc::channel(QUEUE_SIZE);
        let (finish, dropped) = (CancellationToken::new(), Arc::<AtomicU64>::default());
        let sending =
            Sending { exporter, timeout, endpoint, dropped: dropped.clone(), reported: 0, fails: false };
        let task = tokio::spawn(sending.run(spans, finish.clone()));
        (Self { finish, task }, Queue { spans: sender, dropped })
    }

    pub async fn finish(self) {
        self.finish.cancel();
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, self.task).await.is_err() {
            tracing::warn!("the last spans could not be sent in time");
        }
    }
}

struct Sending<E> {
    exporter: E,
    timeout: Duration,
    endpoint: String,
    dropped: Arc<AtomicU64>,
    /// How many dropped spans were reported.
    reported: u64,
    fails: bool,
}

impl<E: SpanExporter> Sending<E> {
    async fn run(mut self, mut spans: mpsc::Receiver<SpanData>, finish: CancellationToken) {
        let mut group = Vec::with_capacity(BATCH_SIZE);
        loop {
            tokio::select! {
                received = spans.recv_many(&mut group, BATCH_SIZE) => {
                    if received == 0 {
                        return;
                    }
                }
                // From now on only the spans that are already in the queue.
                () = finish.cancelled(), if !spans.is_closed() => {
                    spans.close();
                    continue;
                }
            }
            let gathered = async {
                while group.len() < BATCH_SIZE && spans.recv_many(&mut group, BATCH_SIZE).await > 0 {}
            };
            tokio::select! {
                () = gathered => {}
                () = Clock::System.sleep(BATCH_DELAY) => {}
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
            Err(_) => Some("no response in time".to_owned()),
        };
        if error.is_some() {
            count(&self.dropped, count_of_group);
        }
        let dropped = self.dropped.load(Ordering::Relaxed);
        match error {
            // One warning for each outage, however long it is.
            Some(error) if !self.fails => {
                self.fails = true;
                tracing::warn!(error, dropped, "spans cannot be sent to the collector and are dropped");
            }
            None if self.fails || dropped > self.reported => {
                self.fails = false;
                self.reported = dropped;
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
