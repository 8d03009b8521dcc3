//! Live events: as a WebSocket, or as server-sent events.

mod delivery;
mod outlet;

use axum::Json;
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::mpsc;

use super::connections::CutOff;
use super::request::{Params, batch_id};
use crate::app::App;
use crate::auth::Identity;
use crate::delivery::fan_out::{Filter, Subscription};
use crate::http::error::ApiError;
use delivery::Delivering;
use landfall_api::events::{StreamQuery, Ticket};
use landfall_core::event::EventKind;
use landfall_core::refusal::{Refusal, RefusalCode};
use outlet::Outlet;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Asks proxies not to buffer events.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// A client only sends signs of life.
const MAX_CLIENT_BYTES: usize = 4 * 1024;
/// Allocated when the stream is opened, and kept until it ends.
const SOCKET_BUFFER: usize = 1024;
/// Frames between the task that writes them and the connection.
const FRAMES: usize = 16;
/// The reconnect delay for browsers, in milliseconds.
const RETRY: Bytes = Bytes::from_static(b"retry: 1000\n\n");

/// A ticket to open a stream, for clients that cannot send headers.
///
/// It is valid for 30 seconds and only opens streams, as the query parameter `ticket`.
#[utoipa::path(
    post, path = "/events/ticket", operation_id = "issueTicket", tag = "events",
    responses((status = 200, body = Ticket))
)]
pub async fn ticket(State(app): State<App>, identity: Identity) -> Json<Ticket> {
    Json(app.tickets.issue(identity, app.clock.now()))
}

/// Events, live: as a WebSocket, or as server-sent events.
///
/// Each message of a WebSocket, and each `data` of a server-sent event, is a `StreamMessage`. A stream continues
/// after the id in `Last-Event-ID` or `after`, or begins now.
#[utoipa::path(
    get, path = "/api/v2/uploads/events", operation_id = "streamEvents", tag = "events", params(StreamQuery),
    responses(
        (status = 101, description = "A WebSocket. Each of its messages is a `StreamMessage`"),
        (status = 200, body = String, content_type = "text/event-stream",
            description = "Server-sent events. The `data` of each is a `StreamMessage`"),
        (status = "4XX", description = "INVALID_CURSOR INVALID_UPGRADE NOT_ACCEPTABLE INVALID_TICKET TICKET_EXPIRED \
            BATCH_NOT_FOUND TOO_MANY_EVENT_STREAMS EVENT_STREAMS_EXHAUSTED")
    )
)]
pub async fn stream(
    State(app): State<App>,
    identity: Result<Identity, ApiError>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    Extension(cut_off): Extension<CutOff>,
    headers: HeaderMap,
    Params(query): Params<StreamQuery>,
) -> Result<Response, ApiError> {
    let identity = match (identity, &query.ticket) {
        (Ok(identity), _) => identity,
        (Err(_), Some(ticket)) => app.tickets.verify(ticket, app.clock.now())?,
        (Err(refusal), None) => return Err(refusal),
    };
    let kind = Kind::wanted(&headers, upgrade)?;
    let subscription = subscribe(&app, &identity, &headers, &query)?;
    let delivering = Delivering {
        subscription,
        until: identity.until,
        clock: app.clock.clone(),
        config: app.config.events.clone(),
        closing: app.fan_out.closing(),
        follow: query.follow.unwrap_or(true),
    };
    let underway = app.fan_out.underway();
    Ok(match kind {
        Kind::WebSocket(upgrade) => upgrade
            .max_message_size(MAX_CLIENT_BYTES)
            .max_frame_size(MAX_CLIENT_BYTES)
            .read_buffer_size(SOCKET_BUFFER)
            .write_buffer_size(0)
            .on_upgrade(async move |socket| {
                delivering.run(Outlet::web_socket(socket)).await;
                drop(underway);
            }),
        Kind::ServerSent => {
            let (frames, body) = mpsc::channel::<Bytes>(FRAMES);
            frames.try_send(RETRY).expect("it is empty");
            tokio::spawn(async move {
                delivering.run(Outlet::server_sent(frames, cut_off)).await;
                drop(underway);
            });
            let body = stream::unfold(body, async |mut body| {
                let frame = body.recv().await?;
                Some((Ok::<_, std::convert::Infallible>(frame), body))
            });
            let headers = [
                (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
                (ACCEL_BUFFERING, HeaderValue::from_static("no")),
            ];
            (headers, Body::from_stream(body)).into_response()
        }
    })
}

enum Kind {
    WebSocket(WebSocketUpgrade),
    ServerSent,
}

impl Kind {
    fn wanted(
        headers: &HeaderMap,
        upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    ) -> Result<Self, Refusal> {
        let says = |name: HeaderName, word: &str| {
            let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
            values.flat_map(|value| value.split(',')).any(|part| {
                let part = part.split(';').next().unwrap_or_default();
                part.trim().eq_ignore_ascii_case(word)
            })
        };
        match upgrade {
            Ok(upgrade) => Ok(Self::WebSocket(upgrade)),
            Err(why) if says(header::UPGRADE, "websocket") => {
                let message = format!("The WebSocket cannot be opened: {}", why.body_text());
                Err(Refusal::new(RefusalCode::InvalidUpgrade, message))
            }
            Err(_) if says(header::ACCEPT, "text/event-stream") => Ok(Self::ServerSent),
            Err(_) => {
                let message = "Open a WebSocket, or send Accept: text/event-stream";
                Err(Refusal::new(RefusalCode::NotAcceptable, message))
            }
        }
    }
}

fn subscribe(
    app: &App,
    identity: &Identity,
    headers: &HeaderMap,
    query: &StreamQuery,
) -> Result<Subscription, Refusal> {
    let caller = &identity.caller;
    let reach = caller.reach(query.scope.unwrap_or_default())?;
    let filter = Filter {
        types: types(query.types.as_deref())?,
        batch: query.batch_id.as_deref().map(batch_id).transpose()?,
    };
    // A browser that reconnects sends the header and the original address: the header is newer.
    let last = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty());
    let after = match last {
        Some(value) => Some(value.to_str().unwrap_or_default()),
        None => query.after.as_deref(),
    };
    app.fan_out.listen(caller.owner(), reach, filter, after.map(event_id).transpose()?)
}

fn event_id(text: &str) -> Result<i64, Refusal> {
    let unknown = || Refusal::new(RefusalCode::InvalidCursor, "An event's id is a whole number");
    text.parse().ok().filter(|id| *id >= 0).ok_or_else(unknown)
}

fn types(text: Option<&str>) -> Result<Vec<EventKind>, Refusal> {
    let names = text.into_iter().flat_map(|text| text.split(',')).map(str::trim);
    let known = |name: &str| {
        name.parse().map_err(|_| {
            let all: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
            let message = format!("There are no events of the type {name:?}; there are {}", all.join(", "));
            Refusal::new(RefusalCode::InvalidRequest, message)
        })
    };
    names.map(known).collect()
}
