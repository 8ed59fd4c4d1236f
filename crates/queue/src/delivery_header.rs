//! Header of a delivery's message with all fields except the body.

use async_nats::HeaderMap;
use domain::{RecordKind, ServiceOrigin, StoredRecord, Timestamp, record_format};
use serde::{Deserialize, Serialize};

use crate::error::Error;

const HEADER: &str = "Journeyman-Delivery";

/// Fields of a delivery except its body.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DeliveryHeader {
    pub(crate) source: ServiceOrigin,
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) received_at: Timestamp,
}

impl StoredRecord for DeliveryHeader {
    const KIND: RecordKind = RecordKind::Delivery;
}

impl DeliveryHeader {
    pub(crate) fn write(&self, headers: &mut HeaderMap) -> Result<(), Error> {
        headers.insert(
            HEADER,
            record_format::encode_stored_text(self).map_err(|error| Error::corrupt("a delivery", error))?,
        );
        Ok(())
    }

    /// Reads the header of a message; `what` names it in errors.
    pub(crate) fn read(headers: Option<&HeaderMap>, what: &str) -> Result<Self, Error> {
        let text = headers
            .and_then(|headers| headers.get(HEADER))
            .ok_or_else(|| Error::corrupt(what, "the delivery's header is missing"))?;
        record_format::decode_stored_record(text.as_str().as_bytes())
            .map_err(|problem| Error::undecodable(what.to_owned(), Self::KIND, problem))
    }
}

/// True when a message is a delivery or a dead letter about one.
pub(crate) fn is_delivery(headers: &HeaderMap) -> bool {
    headers.get(HEADER).is_some()
}

/// Copies the header of one message to another.
pub(crate) fn copy_delivery_header(from: Option<&HeaderMap>, to: &mut HeaderMap) {
    if let Some(meta) = from.and_then(|headers| headers.get(HEADER)) {
        to.insert(HEADER, meta.clone());
    }
}
