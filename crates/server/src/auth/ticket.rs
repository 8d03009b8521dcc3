//! Tickets for event streams. A browser cannot send a header with a WebSocket or an `EventSource`, and a token in
//! an address would stay in logs and histories for as long as it is valid. A ticket is valid for half a minute and
//! only opens a stream, which then ends with the token that the ticket was issued for.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::{Credential, Identity};
use landfall_api::events::Ticket;
use landfall_core::caller::{Caller, Role};
use landfall_core::clock::Time;
use landfall_core::refusal::{Refusal, RefusalCode};

const LIFETIME: TimeDelta = TimeDelta::seconds(30);

#[derive(Clone)]
pub struct Tickets {
    key: [u8; 32],
}

/// The signed content.
#[derive(Serialize, Deserialize)]
struct TicketClaims {
    user: String,
    tenant: String,
    role: Role,
    /// When the stream ends, and the ticket with it.
    until: Time,
    expires: Time,
}

impl Tickets {
    pub fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    pub fn issue(&self, identity: Identity, now: Time) -> Ticket {
        let expires_at = identity.until.min(now + LIFETIME);
        let Identity { caller: Caller { user, tenant, role }, until, .. } = identity;
        let claims = TicketClaims { user, tenant, role, until, expires: expires_at };
        let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims).expect("claims are plain JSON"));
        let signature = hex::encode(self.mac(&text).finalize().into_bytes());
        Ticket { ticket: format!("{text}.{signature}"), expires_at }
    }

    pub fn verify(&self, ticket: &str, now: Time) -> Result<Identity, Refusal> {
        let wrong = || Refusal::new(RefusalCode::InvalidTicket, "This ticket was not issued by this server");
        let (text, signature) = ticket.split_once('.').ok_or_else(wrong)?;
        let signature = hex::decode(signature).map_err(|_| wrong())?;
        self.mac(text).verify_slice(&signature).map_err(|_| wrong())?;
        let claims = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
        let claims: TicketClaims = serde_json::from_slice(&claims).map_err(|_| wrong())?;
        if now >= claims.expires {
            return Err(Refusal::new(RefusalCode::TicketExpired, "This ticket has expired; get a fresh one"));
        }
        let TicketClaims { user, tenant, role, until, .. } = claims;
        Ok(Identity { caller: Caller { user, tenant, role }, until, credential: Credential::Ticket })
    }

    fn mac(&self, text: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes a key of any length");
        mac.update(text.as_bytes());
        mac
    }
}
