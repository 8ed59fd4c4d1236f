//! Pod of the stand-ins: GitHub, Jira and the model, the users who request and merge work, and a port through
//! which the host orders tickets and reads their progress.

use std::{
    collections::HashSet,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use api::Client;
use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    routing::{get, post},
};
use e2e::{NoteTicket, StandInVendors};
use parking_lot::{Mutex, MutexGuard};
use secrecy::SecretString;
use testkit::{NamedFront, fixture, tls::TestCertificate};
use tokio::net::{TcpListener, TcpStream};

use crate::cluster_test::{
    names::{CONTROL_PORT, FILES, INSIDE, PLANTED_PORT, TicketOrder, TicketRound, list_vendor_hosts},
    play,
    webhooks::{SteadyWebhooks, WebhookRelay},
};

/// Time limit of a connection attempt.
const ATTEMPT: Duration = Duration::from_secs(3);

/// State behind the control port.
struct ClusterStage {
    vendors: StandInVendors,
    client: Client,
    /// Base URL of ingest.
    url: String,
    relay: WebhookRelay,
    round: Mutex<TicketRound>,
    /// Number of tickets requested so far, and the problems of earlier rounds.
    earlier: tokio::sync::Mutex<(usize, HashSet<String>)>,
}

impl ClusterStage {
    fn round(&self) -> MutexGuard<'_, TicketRound> {
        self.round.lock()
    }
}

/// Serves until the process is stopped.
///
/// # Errors
/// When a file is missing or a port is in use.
pub(crate) async fn serve_stand_ins() -> anyhow::Result<()> {
    let names = list_vendor_hosts();
    let read = |name: String| {
        let path = Path::new(FILES).join(name);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let certificates = names.iter().map(|name| {
        let (certificate, key) = (read(format!("{name}.pem"))?, read(format!("{name}.key"))?);
        anyhow::Ok((name.clone(), TestCertificate { certificate, key }))
    });
    let certificates = certificates.collect::<Result<Vec<_>, _>>()?;
    let front = NamedFront::bind(build_wildcard_address(443), &certificates).await?;
    let vendors = StandInVendors::start_named(
        front,
        &names,
        NoteTicket::workflow(),
        fixture::build_shop_script(),
    );
    let url = format!("http://ingest.{INSIDE}.svc:7401");
    let (relay, relay_url) = WebhookRelay::serve(&url).await?;
    let stage = ClusterStage {
        vendors: vendors.await?,
        client: Client::new(&url, SecretString::from(read("token".to_owned())?))?,
        url,
        relay,
        round: Mutex::new(TicketRound {
            is_over: true,
            ..TicketRound::default()
        }),
        earlier: tokio::sync::Mutex::default(),
    };
    stage.vendors.send_webhooks(&relay_url);
    let planted = TcpListener::bind(build_wildcard_address(PLANTED_PORT)).await?;
    tokio::spawn(async move { while planted.accept().await.is_ok() {} });
    let router = Router::new()
        .route("/round", get(get_round).post(begin_round))
        .route("/reach", post(reach_addresses))
        .with_state(Arc::new(stage));
    let listener = TcpListener::bind(build_wildcard_address(CONTROL_PORT)).await?;
    Ok(axum::serve(listener, router).await?)
}

fn build_wildcard_address(port: u16) -> SocketAddr {
    (Ipv4Addr::UNSPECIFIED, port).into()
}

async fn get_round(State(stage): State<Arc<ClusterStage>>) -> Json<TicketRound> {
    Json(stage.round().clone())
}

/// Starts a round unless one is in progress. The body has no content type, because `kubectl` sends none.
async fn begin_round(State(stage): State<Arc<ClusterStage>>, body: String) -> StatusCode {
    let Ok(order) = serde_json::from_str::<TicketOrder>(&body) else {
        return StatusCode::BAD_REQUEST;
    };
    let begun = {
        let mut round = stage.round();
        let is_free = round.is_over;
        if is_free {
            *round = TicketRound {
                tickets: order.tickets,
                ..TicketRound::default()
            };
        }
        is_free
    };
    if !begun {
        return StatusCode::CONFLICT;
    }
    tokio::spawn(async move { play_round(&stage, &order).await });
    StatusCode::ACCEPTED
}

/// Plays a round to its end, with its additional webhooks.
async fn play_round(stage: &ClusterStage, order: &TicketOrder) {
    let mut earlier = stage.earlier.lock().await;
    let (first, known) = &mut *earlier;
    let own_before = stage.relay.accepted();
    let steady = order
        .webhooks
        .map(|load| SteadyWebhooks::start(&stage.url, load))
        .transpose();
    let tell = |round: TicketRound| *stage.round() = round;
    let played = match &steady {
        Ok(_) => play::play_tickets(&stage.vendors, &stage.client, order, *first, tell).await,
        Err(error) => Err(anyhow::anyhow!("{error:#}")),
    };
    *first += order.tickets;
    let mut round = played.unwrap_or_else(|error| TicketRound {
        lost: vec![format!("the round: {error:#}")],
        ..stage.round().clone()
    });
    // A problem without a ticket would count again in every later round.
    round.lost.retain(|problem| known.insert(problem.clone()));
    if let Ok(Some(steady)) = steady {
        round.webhooks = steady.finish().await;
    }
    round.own_webhooks = stage.relay.accepted() - own_before;
    round.is_over = true;
    *stage.round() = round;
}

/// Returns the addresses that this pod reaches. No network policy restricts it.
async fn reach_addresses(body: String) -> Result<Json<Vec<SocketAddr>>, StatusCode> {
    let addresses: Vec<SocketAddr> = serde_json::from_str(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let attempts = addresses.into_iter().map(|address| async move {
        let attempt = tokio::time::timeout(ATTEMPT, TcpStream::connect(address)).await;
        matches!(attempt, Ok(Ok(_))).then_some(address)
    });
    let reached = futures::future::join_all(attempts).await;
    Ok(Json(reached.into_iter().flatten().collect()))
}
