//! Deliveries of webhooks to our App, as GitHub records them.

use domain::{InstanceName, Timestamp};
use serde::Deserialize;
use webclient::truncate_service_text;

use crate::{Error, HookDelivery, client::GitHubClients, transport::PAGE};

// Pages of one part of the log.
const MAX_DELIVERY_PAGES: usize = 10;

/// Part of the log of deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryLogPart {
    /// Attempts to deliver webhooks, newest first.
    pub attempts: Vec<HookDelivery>,
    /// Place of the next part; absent after the last one.
    pub next: Option<DeliveryCursor>,
}

/// Place in the log of deliveries at which a part begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryCursor(String);

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
    /// Lists an instance's attempts to deliver webhooks to our App since then, newest first, in parts of at most
    /// 1,000. The first part begins with the latest attempt, each other one at the cursor of the part before it.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without an App: a token has no deliveries.
    pub async fn hook_deliveries(
        &self,
        instance: Option<&InstanceName>,
        since: Timestamp,
        from: Option<&DeliveryCursor>,
    ) -> Result<DeliveryLogPart, Error> {
        let mut attempts: Vec<HookDelivery> = Vec::new();
        let mut next = from.cloned();
        for _ in 0..MAX_DELIVERY_PAGES {
            let path = match &next {
                // Deliveries have cursors instead of page numbers, so the next page is known only from the
                // answer.
                Some(DeliveryCursor(query)) => format!("/app/hook/deliveries?{query}"),
                None => format!("/app/hook/deliveries?per_page={PAGE}"),
            };
            let (found, following) = self
                .clients
                .on(instance)?
                .get_as_app::<Vec<WireDelivery>>(&path)
                .await?;
            next = following.map(DeliveryCursor);
            for wire in found {
                let attempt = HookDelivery::try_from(wire)?;
                // The list is newest first, so all further attempts are older.
                if attempt.delivered_at < since {
                    return Ok(DeliveryLogPart { attempts, next: None });
                }
                attempts.push(attempt);
            }
            if next.is_none() {
                break;
            }
        }
        Ok(DeliveryLogPart { attempts, next })
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
