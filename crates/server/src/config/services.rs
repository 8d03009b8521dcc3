//! The virus scanner, and a service that extracts text in place of the built-in readers.

use std::time::Duration;

use super::declared::group;
use super::reader::{Reader, milliseconds};
use crate::stages::gateway::GatewayConfig;
use crate::stages::scan::Address;

group! { "Virus scanner and extraction service" {
    CLAMD_ADDRESS = "": "The address of clamd, `host:port` or the path of its socket; if set, clamd scans every file first, and files wait while clamd is down."
    EXTRACT_GATEWAY_URL = "": "The URL of a service that extracts the text of documents, instead of the built-in readers."
    EXTRACT_GATEWAY_HEALTH_URL = "": "The URL that answers 2xx while this service is well; it is asked when a document fails in its last attempt, or while the service is tried again after an outage, and if the service is well, the document is the cause, otherwise the file waits."
    GATEWAY_TIMEOUT_MS = "120000": "How long this service may take for one document; less than EXTRACT_TIMEOUT_MS, which ends the whole stage."
} }

pub(super) fn read_scanner(read: &mut Reader) -> Option<Address> {
    read.optional(CLAMD_ADDRESS, str::parse::<Address>)
}

/// The stage ends a call that takes longer than the stage may.
pub(super) fn check_gateway(read: &mut Reader, gateway: Option<&GatewayConfig>, extract_timeout: Duration) {
    let Some(gateway) = gateway.filter(|gateway| gateway.timeout >= extract_timeout) else { return };
    let (call, stage) = (gateway.timeout.as_millis(), extract_timeout.as_millis());
    let message = format!(
        "GATEWAY_TIMEOUT_MS is {call} and EXTRACT_TIMEOUT_MS is {stage}, so every call ends after {stage} ms: raise \
         EXTRACT_TIMEOUT_MS above {call}, or lower GATEWAY_TIMEOUT_MS"
    );
    read.warn(GATEWAY_TIMEOUT_MS, message);
}

pub(super) fn read_gateway(read: &mut Reader) -> Option<GatewayConfig> {
    let timeout = read.with(GATEWAY_TIMEOUT_MS, milliseconds);
    let health_url = read.url(EXTRACT_GATEWAY_HEALTH_URL);
    read.url(EXTRACT_GATEWAY_URL).map(|url| GatewayConfig { url, health_url, timeout })
}
