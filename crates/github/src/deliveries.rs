//! Deliveries of webhooks to our App, as GitHub records them.

use domain::{InstanceName, Timestamp};
use serde::Deserialize;
use webclient::truncate_service_text;

use crate::{Error, HookDelivery, client::GitHubClients, transport::PAGE};

const MAX_DELIVERY_PAGES: usize = 10;

#[derive(Deserialize)]
struct WireDelivery {
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
struct WireDeliveryDetail {
    request: WireDeliveryRequest,
}

#[derive(Deserialize)]
struct WireDeliveryRequest {
    payload: serde_json::Value,
}

impl TryFrom<WireDelivery> for HookDelivery {
    type Error = Error;
    fn try_from(wire: WireDelivery) -> Result<Self, Error> {
        let delivered_at = Timestamp::parse(&wire.delivered_at).ok_or_else(|| Error::Malformed {
            detail: format!("delivered_at {}", truncate_service_text(&wire.delivered_at)),
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

/// Reader of the deliveries of webhooks; cheap to clone.
#[derive(Clone, Debug)]
pub struct DeliveryReader {
    pub(crate) clients: GitHubClients,
}

impl DeliveryReader {
    /// Lists an instance's attempts to deliver webhooks to our App since then, newest first; at most the
    /// 1,000 latest.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without an App: a token has no deliveries.
    pub async fn hook_deliveries(
        &self,
        instance: Option<&InstanceName>,
        since: Timestamp,
    ) -> Result<Vec<HookDelivery>, Error> {
        let mut deliveries: Vec<HookDelivery> = Vec::new();
        let mut path = format!("/app/hook/deliveries?per_page={PAGE}");
        for _ in 0..MAX_DELIVERY_PAGES {
            let (found, next) = self
                .clients
                .on(instance)?
                .get_as_app::<Vec<WireDelivery>>(&path)
                .await?;
            for wire in found {
                let delivery = HookDelivery::try_from(wire)?;
                // The list is newest first, so all further deliveries are older.
                if delivery.delivered_at < since {
                    return Ok(deliveries);
                }
                deliveries.push(delivery);
            }
            match next {
                // Deliveries have cursors instead of page numbers, so the next page is known only from the
                // answer.
                Some(query) => path = format!("/app/hook/deliveries?{query}"),
                None => break,
            }
        }
        Ok(deliveries)
    }

    /// Reads the webhook body of one attempt of [`Self::hook_deliveries`], as JSON.
    ///
    /// # Errors
    /// [`Error::NotFound`] when GitHub no longer stores it, [`Error::Unauthorized`] without an App.
    pub async fn hook_payload(
        &self,
        instance: Option<&InstanceName>,
        id: u64,
    ) -> Result<serde_json::Value, Error> {
        let path = format!("/app/hook/deliveries/{id}");
        let (found, _) = self
            .clients
            .on(instance)?
            .get_as_app::<WireDeliveryDetail>(&path)
            .await?;
        Ok(found.request.payload)
    }
}
