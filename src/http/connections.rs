//! Accepts connections, as many as there is room for, and gives none of them for ever.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::clock::Clock;
use crate::config::HttpConfig;

const MOST_HEADERS: usize = 64;
const MOST_HEADER_BYTES: usize = 32 * 1024;
/// How long requests under way may go on after the server was told to stop.
const LAST_ANSWERS: std::time::Duration = std::time::Duration::from_secs(10);

/// Serves until `stop`, then lets the requests under way finish.
pub async fn serve(listener: TcpListener, router: Router, config: &HttpConfig, stop: CancellationToken) {
    let room = Arc::new(Semaphore::new(config.max_connections));
    let graceful = GracefulShutdown::new();
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
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let router = router.clone();
            let request: Request = request.map(Body::new);
            async move { Ok::<_, Infallible>(router.oneshot(request).await.expect("a router does not fail")) }
        });
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended badly");
            }
            drop(place);
        });
    }
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = Clock::System.sleep(LAST_ANSWERS) => tracing::warn!("some requests were cut off"),
    }
}
