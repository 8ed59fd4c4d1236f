//! A session: proxy requests of one client connection, on behalf of one run.

use std::{convert::Infallible, sync::Arc};

use axum::{
    body::Body,
    http::{Request, Response, StatusCode},
};
use hyper::{body::Incoming, service::service_fn, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    connection::{self, TimedStream},
    exchange::{MeteredExchange, SessionCaller},
    forward,
    problem::{EgressProblem, OpenHosts, RefusalReason, text_response},
    proxy::EgressProxy,
    request_decision::{self, ProxyRequest, RequestTarget},
    tunnel,
};

struct ProxySession {
    proxy: Arc<EgressProxy>,
    caller: Arc<SessionCaller>,
    tunnels: TaskTracker,
    /// Ends the tunnels.
    cut: CancellationToken,
}

/// Serves the upgraded connection until it ends, is idle for too long, or the proxy stops.
pub(crate) async fn serve_session(proxy: Arc<EgressProxy>, caller: Arc<SessionCaller>, upgrading: OnUpgrade) {
    let Some(Ok(upgraded)) = proxy.cut.run_until_cancelled(upgrading).await else {
        return;
    };
    let activity = caller.activity.clone();
    let io = TokioIo::new(TimedStream::new(TokioIo::new(upgraded), activity.clone()));
    let session = Arc::new(ProxySession {
        cut: proxy.cut.child_token(),
        proxy: Arc::clone(&proxy),
        caller,
        tunnels: TaskTracker::new(),
    });
    let answering = Arc::clone(&session);
    let service = service_fn(move |request| {
        let session = Arc::clone(&answering);
        async move { Ok::<_, Infallible>(session.answer(request).await) }
    });
    let whole = async {
        Box::pin(connection::serve_http(
            io,
            service,
            proxy.limits.header,
            &proxy.shutdown,
        ))
        .await;
        // A tunnel takes the connection away from hyper, so `serve_http` returns while the tunnel still runs.
        session.tunnels.close();
        session.tunnels.wait().await;
    };
    tokio::select! {
        () = whole => {}
        () = activity.quiet(proxy.limits.idle) => tracing::debug!("session was idle"),
        () = proxy.cut.cancelled() => {}
    }
    // Idle and stopped sessions still have tunnels. Their tasks end here, so that each logs its bytes before the slot
    // is free.
    session.cut.cancel();
    session.tunnels.close();
    session.tunnels.wait().await;
}

impl ProxySession {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let answered = match request_decision::parse_proxy_request(request.method(), request.uri()) {
            Ok(ProxyRequest::Tunnel(target)) => self.tunnel(target, request).await,
            Ok(ProxyRequest::Plain(target)) => self.plain(&target, request).await,
            Ok(ProxyRequest::Mirror { name, rest }) => self.mirror(&name, &rest, request).await,
            Err(words) => Err(EgressProblem::Malformed(words)),
        };
        answered.unwrap_or_else(|problem| self.explain(&problem))
    }

    async fn tunnel(
        &self,
        target: RequestTarget,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, EgressProblem> {
        let what = target.to_string();
        self.require_open_target(&target)?;
        let limits = &self.proxy.limits;
        let upstream = self.proxy.dial(&target).await?;
        let exchange = MeteredExchange::new(&self.caller, what, "tunnel");
        let (cut, hello_limit) = (self.cut.clone(), limits.header);
        let upgrading = hyper::upgrade::on(request);
        self.tunnels.spawn(async move {
            let carrying = tunnel::carry_tunnel(upgrading, upstream, &target.host, &exchange, hello_limit);
            cut.run_until_cancelled(carrying).await;
        });
        Ok(Response::new(Body::empty()))
    }

    async fn plain(
        &self,
        target: &RequestTarget,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, EgressProblem> {
        let what = target.to_string();
        self.require_open_target(target)?;
        let (request, _) = request.into_parts();
        forward::only_reads(&what, &request)?;
        self.proxy.check_plain(target).await?;
        let exchange = MeteredExchange::new(&self.caller, what, "plain");
        self.proxy.forwarder.plain(target, &request, exchange).await
    }

    async fn mirror(
        &self,
        name: &str,
        rest: &str,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, EgressProblem> {
        let what = forward::mirror_label(name);
        let mirror = self.proxy.mirrors.get(name);
        let mirror = mirror
            .filter(|mirror| mirror.is_open_to(&self.caller.grant.repository))
            .ok_or_else(|| EgressProblem::refused(&what, RefusalReason::NotOpen))?;
        self.require_quota(&what)?;
        let (request, _) = request.into_parts();
        forward::only_reads(&what, &request)?;
        let exchange = MeteredExchange::new(&self.caller, what, "mirror");
        self.proxy
            .forwarder
            .mirror(mirror, rest, &request, exchange)
            .await
    }

    /// Refuses a target that the rules do not open, and a run whose quota is exhausted.
    fn require_open_target(&self, target: &RequestTarget) -> Result<(), EgressProblem> {
        let what = target.to_string();
        request_decision::check_target(target, &self.caller.grant.network)
            .map_err(|reason| EgressProblem::refused(&what, reason))?;
        self.require_quota(&what)
    }

    /// Refuses a run whose quota is exhausted, before anything is dialed for it.
    fn require_quota(&self, what: &str) -> Result<(), EgressProblem> {
        let run = &self.caller.slot.run;
        // Zero bytes: the check uses nothing of the quota.
        let checked = run.send(0).and_then(|()| run.receive(0));
        checked.map_err(|reason| EgressProblem::refused(what, reason))
    }

    fn explain(&self, problem: &EgressProblem) -> Response<Body> {
        match problem {
            EgressProblem::Refused(refusal) => {
                self.caller.refuse(refusal);
                let grant = &self.caller.grant;
                let open = OpenHosts {
                    network: &grant.network,
                    mirrors: self.proxy.mirrors_open_to(&grant.repository),
                };
                let words = refusal.words(&grant.repository);
                text_response(StatusCode::FORBIDDEN, &format!("{words}; {open}"))
            }
            EgressProblem::Malformed(words) => text_response(StatusCode::BAD_REQUEST, words),
            EgressProblem::Unreachable(words) => text_response(StatusCode::BAD_GATEWAY, words),
        }
    }
}
