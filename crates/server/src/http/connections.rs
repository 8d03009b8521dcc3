//! Accepts connections, as many as there is room for, and gives none of them for ever.

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

const MOST_HEADERS: usize = 64;
const MOST_HEADER_BYTES: usize = 32 * 1024;
/// How long requests under way may go on after the server was told to stop.
const LAST_ANSWERS: std::time::Duration = std::time::Duration::from_secs(10);

/// Ends the connection that a request came by, whatever is still to be written to it. An answer that comes to its end
/// waits for its reader; this does not.
#[derive(Debug, Clone, Default)]
pub struct CutOff(CancellationToken);

impl CutOff {
    pub fn cut(&self) {
        self.0.cancel();
    }
}

/// Serves until `stop`, then lets the requests under way finish.
pub async fn serve(listener: TcpListener, router: Router, config: &HttpConfig, stop: CancellationToken) {
    let room = Arc::new(Semaphore::new(config.max_connections));
    let connections = TaskTracker::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(config.header_timeout)
        .max_headers(MOST_HEADERS)
        .max_buf_size(MOST_HEADER_BYTES);
    loop {
        // Without room the next connection waits in the kernel's queue, not in our memory.
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
                // Most likely out of descriptors: give others time to close theirs.
                Clock::System.sleep(std::time::Duration::from_millis(50)).await;
                continue;
            }
        };
        // Small answers leave at once.
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
        // One that becomes a WebSocket ends here and gives its place back: those have a limit of their own.
        let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let stop = stop.clone();
        connections.spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = cut.cancelled() => return tracing::debug!("a connection was cut off"),
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    cut.run_until_cancelled(connection).await.unwrap_or(Ok(()))
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended badly");
            }
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    tokio::select! {
        () = connections.wait() => {}
        () = Clock::System.sleep(LAST_ANSWERS) => tracing::warn!("some requests were cut off"),
    }
}
