//! Pod of the stand-ins: GitHub, Jira and the model, the users who request and merge work, and a port through
//! which the host orders tickets and reads their progress.

use std::{
    collections::HashSet,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
use e2e::{Note, Vendors};
use secrecy::SecretString;
use testkit::{NamedFront, fixture, tls::Certificate};
use tokio::net::{TcpListener, TcpStream};

use crate::cluster_test::{
    names::{CONTROL_PORT, FILES, INSIDE, Order, PLANTED_PORT, Round, vendors},
    play,
    webhooks::{SteadyWebhooks, WebhookRelay},
};

/// Time limit of a connection attempt.
const ATTEMPT: Duration = Duration::from_secs(3);

/// State behind the control port.
struct Stage {
    vendors: Vendors,
    client: Client,
    /// Base URL of ingest.
    url: String,
    relay: WebhookRelay,
    round: Mutex<Round>,
    /// Number of tickets requested so far, and the problems of earlier rounds.
    earlier: tokio::sync::Mutex<(usize, HashSet<String>)>,
}

impl Stage {
    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves until the process is stopped.
///
/// # Errors
/// When a file is missing or a port is in use.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let names = vendors();
    let read = |name: String| {
        let path = Path::new(FILES).join(name);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let certificates = names.iter().map(|name| {
        let (certificate, key) = (read(format!("{name}.pem"))?, read(format!("{name}.key"))?);
        anyhow::Ok((name.clone(), Certificate { certificate, key }))
    });
    let certificates = certificates.collect::<Result<Vec<_>, _>>()?;
    let front = NamedFront::bind(everywhere(443), &certificates).await?;
    let vendors = Vendors::start_named(front, &names, Note::workflow(), fixture::script());
    let url = format!("http://ingest.{INSIDE}.svc:7401");
    let (relay, relay_url) = WebhookRelay::serve(&url).await?;
    let stage = Stage {
        vendors: vendors.await?,
        client: Client::new(&url, SecretString::from(read("token".to_owned())?))?,
        url,
        relay,
        round: Mutex::new(Round {
            is_over: true,
            ..Round::default()
        }),
        earlier: tokio::sync::Mutex::default(),
    };
    stage.vendors.send_webhooks(&relay_url);
    let planted = TcpListener::bind(everywhere(PLANTED_PORT)).await?;
    tokio::spawn(async move { while planted.accept().await.is_ok() {} });
    let router = Router::new()
        .route("/round", get(look).post(begin))
        .route("/reach", post(reach))
        .with_state(Arc::new(stage));
    let listener = TcpListener::bind(everywhere(CONTROL_PORT)).await?;
    Ok(axum::serve(listener, router).await?)
}

fn everywhere(port: u16) -> SocketAddr {
    (Ipv4Addr::UNSPECIFIED, port).into()
}

async fn look(State(stage): State<Arc<Stage>>) -> Json<Round> {
    Json(stage.round().clone())
}

/// Starts a round unless one is in progress. The body has no content type, because `kubectl` sends none.
async fn begin(State(stage): State<Arc<Stage>>, body: String) -> StatusCode {
    let Ok(order) = serde_json::from_str::<Order>(&body) else {
        return StatusCode::BAD_REQUEST;
    };
    let begun = {
        let mut round = stage.round();
        let is_free = round.is_over;
        if is_free {
            *round = Round {
                tickets: order.tickets,
                ..Round::default()
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
async fn play_round(stage: &Stage, order: &Order) {
    let mut earlier = stage.earlier.lock().await;
    let (first, known) = &mut *earlier;
    let own_before = stage.relay.accepted();
    let steady = order
        .webhooks
        .map(|load| SteadyWebhooks::start(&stage.url, load))
        .transpose();
    let tell = |round: Round| *stage.round() = round;
    let played = match &steady {
        Ok(_) => play::play(&stage.vendors, &stage.client, order, *first, tell).await,
        Err(error) => Err(anyhow::anyhow!("{error:#}")),
    };
    *first += order.tickets;
    let mut round = played.unwrap_or_else(|error| Round {
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
async fn reach(body: String) -> Result<Json<Vec<SocketAddr>>, StatusCode> {
    let addresses: Vec<SocketAddr> = serde_json::from_str(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let attempts = addresses.into_iter().map(|address| async move {
        let attempt = tokio::time::timeout(ATTEMPT, TcpStream::connect(address)).await;
        matches!(attempt, Ok(Ok(_))).then_some(address)
    });
    let reached = futures::future::join_all(attempts).await;
    Ok(Json(reached.into_iter().flatten().collect()))
}
