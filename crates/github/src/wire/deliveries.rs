//! JSON of webhook deliveries.

use domain::Timestamp;
use serde::Deserialize;

use crate::{Error, HookDelivery, error::truncate_text};

#[derive(Deserialize)]
pub(crate) struct WireDelivery {
    id: u64,
    guid: String,
    delivered_at: String,
    event: String,
    action: Option<String>,
    #[serde(default)]
    status_code: u16,
    #[serde(default)]
    redelivery: bool,
}

/// One delivery with its payload.
#[derive(Deserialize)]
pub(crate) struct WireDeliveryDetail {
    pub(crate) request: WireDeliveryRequest,
}

#[derive(Deserialize)]
pub(crate) struct WireDeliveryRequest {
    pub(crate) payload: serde_json::Value,
}

impl TryFrom<WireDelivery> for HookDelivery {
    type Error = Error;
    fn try_from(wire: WireDelivery) -> Result<Self, Error> {
        let delivered_at = Timestamp::parse(&wire.delivered_at).ok_or_else(|| Error::Malformed {
            detail: format!("delivered_at {}", truncate_text(&wire.delivered_at)),
        })?;
        Ok(Self {
            id: wire.id,
            guid: wire.guid,
            delivered_at,
            event: wire.event,
            action: wire.action,
            status_code: wire.status_code,
            redelivery: wire.redelivery,
        })
    }
}
