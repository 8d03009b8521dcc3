//! Accepts connections up to a limit, each for a limited time.

mod places;
mod tls;
mod write_deadline;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::health;
use crate::config::HttpConfig;
use crate::telemetry::metrics as counted;
use crate::telemetry::occasional::Occasional;
use landfall_core::clock::Clock;
use places::{Place, Places};
pub use tls::Tls;
use write_deadline::WriteDeadline;

const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 32 * 1024;
/// How long requests in progress may continue after the server was told to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may stay in the reserve.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Closes the connection of a request, whatever is still to be written to it. A response that only ends waits until
/// the client has read it; this does not.
#[derive(Debug, Clone, Default)]
pub struct CutOff(CancellationToken);

impl CutOff {
    pub fn cut(&self) {
        self.0.cancel();
    }
}

/// The other end of the connection of a request: a client, or a proxy.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    pub address: IpAddr,
    /// Whether the connection is encrypted.
    pub tls: bool,
}

/// All slots are taken: the request may only ask for health and metrics.
#[derive(Debug, Clone, Copy)]
pub struct Crowded;

/// Serves until `stop`, then lets the requests in progress finish.
pub async fn serve(listener: TcpListener, router: Router, config: &HttpConfig, stop: CancellationToken) {
    serve_with(listener, router, config, None, stop).await;
}

/// The same, with TLS.
pub async fn serve_with(
    listener: TcpListener,
    router: Router,
    config: &HttpConfig,
    tls: Option<Tls>,
    stop: CancellationToken,
) {
    let places = Places::new(config);
    let connections = TaskTracker::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(config.header_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEADER_BYTES);
    let (header_timeout, write_timeout) = (config.header_timeout, config.write_timeout);
    let serving = Serving { http, router, tls, header_timeout, write_timeout, stop: stop.clone() };
    let refusals = Occasional::default();
    loop {
        let Some(accepted) = stop.run_until_cancelled(listener.accept()).await else {
            break;
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // Most likely there are no free descriptors: wait until other connections close.
                Clock::System.sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Send small responses at once.
        drop(stream.set_nodelay(true));
        let Some(place) = places.admit(peer.ip()) else {
            counted::connection_refused("address");
            if let Some(count) = refusals.count(Clock::System.now()) {
                tracing::warn!(
                    address = %peer.ip(),
                    count,
                    "an address has MAX_CONNECTIONS_PER_ADDRESS connections open; further ones are refused"
                );
            }
            continue;
        };
        connections.spawn(serving.clone().run(stream, peer, place));
    }
    drop(listener);
    connections.close();
    tokio::select! {
        () = connections.wait() => {}
        () = Clock::System.sleep(SHUTDOWN_TIMEOUT) => tracing::warn!("some requests were interrupted"),
    }
}

/// What all connections of a listener share.
#[derive(Clone)]
struct Serving {
    http: http1::Builder,
    router: Router,
    tls: Option<Tls>,
    header_timeout: Duration,
    write_timeout: Duration,
    stop: CancellationToken,
}

impl Serving {
    async fn run(self, stream: TcpStream, peer: SocketAddr, place: Place) {
        let stream = WriteDeadline::new(stream, self.write_timeout);
        let make_way = place.make_way();
        let peer = Peer { address: peer.ip().to_canonical(), tls: self.tls.is_some() };
        let Some(tls) = &self.tls else {
            return self.serve(stream, peer, place).await;
        };
        let handshake = tokio::time::timeout(self.header_timeout, tls.acceptor().accept(stream));
        tokio::select! {
            shaken = handshake => match shaken {
                Ok(Ok(stream)) => self.serve(stream, peer, place).await,
                Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => tracing::debug!("a TLS handshake took too long"),
            },
            () = make_way.cancelled() => tracing::debug!("a connection made way for another"),
            () = self.stop.cancelled() => {}
        }
    }

    async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        self,
        stream: S,
        peer: Peer,
        place: Place,
    ) {
        let make_way = place.make_way();
        let place = Arc::new(Mutex::new(place));
        let cut_off = CutOff::default();
        let cut = cut_off.0.clone();
        let (router, of_requests) = (self.router, place.clone());
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let router = router.clone();
            let mut request: Request = request.map(Body::new);
            request.extensions_mut().insert(cut_off.clone());
            request.extensions_mut().insert(peer);
            let crowded = !may_proceed(&of_requests, &request);
            if crowded {
                request.extensions_mut().insert(Crowded);
            }
            async move {
                let mut response = router.oneshot(request).await.expect("a router does not fail");
                if crowded {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(response)
            }
        });
        // A connection that becomes a WebSocket ends here and frees its slot: WebSockets have their own limit.
        let connection = self.http.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = cut.cancelled() => return tracing::debug!("a connection was closed early"),
            () = must_leave(&place, &make_way) => return tracing::debug!("a connection left the reserve"),
            () = self.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                cut.run_until_cancelled(connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended with an error");
        }
    }
}

/// Whether the request has a slot. One that asks how this process is needs none, and takes none.
fn may_proceed(place: &Mutex<Place>, request: &Request) -> bool {
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    if place.has_slot() {
        return true;
    }
    !health::is_monitoring(request.uri().path()) && place.take_slot()
}

/// Ends when a connection has been in the reserve for too long, or must make way; never if it has a slot by then.
async fn must_leave(place: &Mutex<Place>, make_way: &CancellationToken) {
    let has_slot = || place.lock().unwrap_or_else(PoisonError::into_inner).has_slot();
    if !has_slot() {
        // Which of them it was makes no difference.
        drop(tokio::time::timeout(RESERVE_TIMEOUT, make_way.cancelled()).await);
    }
    if has_slot() {
        std::future::pending::<()>().await;
    }
}
