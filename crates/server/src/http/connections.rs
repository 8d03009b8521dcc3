//! Accepts connections up to a limit, each for a limited time.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::config::HttpConfig;
use landfall_core::clock::Clock;

const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 32 * 1024;
/// How long requests in progress may continue after the server was told to stop.
const SHUTDOWN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Closes the connection of a request, whatever is still to be written to it. A response that only ends waits until
/// the client has read it; this does not.
#[derive(Debug, Clone, Default)]
pub struct CutOff(CancellationToken);

impl CutOff {
    pub fn cut(&self) {
        self.0.cancel();
    }
}

/// Serves until `stop`, then lets the requests in progress finish.
pub async fn serve(listener: TcpListener, router: Router, config: &HttpConfig, stop: CancellationToken) {
    let room = Arc::new(Semaphore::new(config.max_connections));
    let connections = TaskTracker::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(config.header_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEADER_BYTES);
    loop {
        // Without a free slot the next connection waits in the kernel's queue, not in our memory.
        let accepted = async {
            let place = room.clone().acquire_owned().await.expect("never closed");
            (listener.accept().await, place)
        };
        let Some((connection, place)) = stop.run_until_cancelled(accepted).await else {
            break;
        };
        let stream = match connection {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // Most likely there are no free descriptors: wait until other connections close.
                Clock::System.sleep(std::time::Duration::from_millis(50)).await;
                continue;
            }
        };
        // Send small responses at once.
        drop(stream.set_nodelay(true));
        let router = router.clone();
        let cut_off = CutOff::default();
        let cut = cut_off.0.clone();
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let router = router.clone();
            let mut request: Request = request.map(Body::new);
            request.extensions_mut().insert(cut_off.clone());
            async move { Ok::<_, Infallible>(router.oneshot(request).await.expect("a router does not fail")) }
        });
        // A connection that becomes a WebSocket ends here and frees its slot: WebSockets have their own limit.
        let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let stop = stop.clone();
        connections.spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = cut.cancelled() => return tracing::debug!("a connection was closed early"),
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    cut.run_until_cancelled(connection).await.unwrap_or(Ok(()))
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended with an error");
            }
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    tokio::select! {
        () = connections.wait() => {}
        () = Clock::System.sleep(SHUTDOWN_TIMEOUT) => tracing::warn!("some requests were interrupted"),
    }
}
