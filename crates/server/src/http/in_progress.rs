//! How many requests of a client behind a proxy may be in progress. All its connections are the proxy's, so its requests
//! are counted in their place.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};

use super::client_address::{Arrival, ClientAddress, Way};
use super::connections::Crowded;
use super::error::ApiError;
use super::health;
use super::per_address::{Admitted, PerAddress};
use crate::telemetry::metrics as counted;
use landfall_core::refusal::{Refusal, RefusalCode};

/// Refuses a request that has no slot, or whose client has too many in progress. Health and metrics are always available.
pub async fn limit(State(open): State<PerAddress>, request: Request, next: Next) -> Response {
    if health::is_monitoring(request.uri().path()) {
        return next.run(request).await;
    }
    let extensions = request.extensions();
    if extensions.get::<Crowded>().is_some() {
        counted::connection_refused("full");
        let message = "All connections of the server are in use; try again";
        return soon(RefusalCode::ServerBusy, message);
    }
    let by_proxy = Arrival::of(&request).way == Way::TrustedProxy;
    let client = extensions.get::<ClientAddress>().copied().filter(|_| by_proxy);
    let Some(ClientAddress(address)) = client else {
        return next.run(request).await;
    };
    let Some(admitted) = open.admit(address) else {
        counted::connection_refused("address");
        let message = "Too many requests of this address are in progress; try again when one has ended";
        return soon(RefusalCode::TooManyConnections, message);
    };
    next.run(request).await.map(|body| Body::new(Counted { body, _admitted: admitted }))
}

fn soon(code: RefusalCode, message: &str) -> Response {
    let mut refused = ApiError(Refusal::new(code, message).retryable()).into_response();
    refused.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    refused
}

/// A body whose request is in progress until all of it was sent.
struct Counted {
    body: Body,
    _admitted: Admitted,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
