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
    answer,
    connection::{self, Activity, Watched},
    decide::{self, Ask, Target},
    exchange::{Caller, Exchange},
    forward,
    problem::{Open, Problem, Reason},
    proxy::Proxy,
    tunnel,
};

struct Session {
    proxy: Arc<Proxy>,
    caller: Arc<Caller>,
    tunnels: TaskTracker,
    /// Ends the tunnels.
    cut: CancellationToken,
}

/// Serves the upgraded connection until it ends, is idle for too long, or the proxy stops.
pub(crate) async fn serve(proxy: Arc<Proxy>, caller: Arc<Caller>, upgrading: OnUpgrade) {
    let Some(Ok(upgraded)) = proxy.cut.run_until_cancelled(upgrading).await else {
        return;
    };
    let activity = Activity::new();
    let io = TokioIo::new(Watched::new(TokioIo::new(upgraded), activity.clone()));
    let session = Arc::new(Session {
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
        Box::pin(connection::serve(
            io,
            service,
            proxy.limits.header,
            &proxy.shutdown,
        ))
        .await;
        // A tunnel takes the connection away from hyper, so `connection::serve` returns while the tunnel still runs.
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

impl Session {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let answered = match decide::read(request.method(), request.uri()) {
            Ok(Ask::Tunnel(target)) => self.tunnel(target, request).await,
            Ok(Ask::Plain(target)) => self.plain(&target, request).await,
            Ok(Ask::Mirror { name, rest }) => self.mirror(&name, &rest, request).await,
            Err(words) => Err(Problem::Malformed(words)),
        };
        answered.unwrap_or_else(|problem| self.explain(&problem))
    }

    async fn tunnel(&self, target: Target, request: Request<Incoming>) -> Result<Response<Body>, Problem> {
        let what = target.to_string();
        self.open(&target)?;
        let limits = &self.proxy.limits;
        let upstream = tunnel::dial(&self.proxy.checked, &target, limits.connect).await?;
        let exchange = Exchange::new(&self.caller, what, "tunnel");
        let (cut, hello_limit) = (self.cut.clone(), limits.header);
        let upgrading = hyper::upgrade::on(request);
        self.tunnels.spawn(async move {
            let carrying = tunnel::carry(upgrading, upstream, &target.host, &exchange, hello_limit);
            cut.run_until_cancelled(carrying).await;
        });
        Ok(Response::new(Body::empty()))
    }

    async fn plain(&self, target: &Target, request: Request<Incoming>) -> Result<Response<Body>, Problem> {
        let what = target.to_string();
        self.open(target)?;
        let (request, _) = request.into_parts();
        forward::only_reads(&what, &request)?;
        let exchange = Exchange::new(&self.caller, what, "plain");
        self.proxy.forwarder.plain(target, &request, exchange).await
    }

    async fn mirror(
        &self,
        name: &str,
        rest: &str,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Problem> {
        let what = forward::what(name);
        let mirror = self.proxy.mirrors.get(name);
        let mirror = mirror
            .filter(|mirror| mirror.is_open_to(&self.caller.grant.repository))
            .ok_or_else(|| Problem::refused(&what, Reason::NotOpen))?;
        self.has_quota(&what)?;
        let (request, _) = request.into_parts();
        forward::only_reads(&what, &request)?;
        let exchange = Exchange::new(&self.caller, what, "mirror");
        self.proxy
            .forwarder
            .mirror(mirror, rest, &request, exchange)
            .await
    }

    fn open(&self, target: &Target) -> Result<(), Problem> {
        let what = target.to_string();
        decide::decide(target, &self.caller.grant.network)
            .map_err(|reason| Problem::refused(&what, reason))?;
        self.has_quota(&what)
    }

    /// Refuses a run whose quota is exhausted, before anything is dialed for it.
    fn has_quota(&self, what: &str) -> Result<(), Problem> {
        let run = &self.caller.seat.run;
        // Zero bytes: the question must not use up the quota.
        let has_some = run.send(0).and_then(|()| run.receive(0));
        has_some.map_err(|reason| Problem::refused(what, reason))
    }

    fn explain(&self, problem: &Problem) -> Response<Body> {
        match problem {
            Problem::Refused(refusal) => {
                self.caller.refuse(refusal);
                let grant = &self.caller.grant;
                let open = Open {
                    network: &grant.network,
                    mirrors: self.proxy.mirrors_open_to(&grant.repository),
                };
                let words = refusal.words(&grant.repository);
                answer::line(StatusCode::FORBIDDEN, &format!("{words}; {open}"))
            }
            Problem::Malformed(words) => answer::line(StatusCode::BAD_REQUEST, words),
            Problem::Unreachable(words) => answer::line(StatusCode::BAD_GATEWAY, words),
        }
    }
}
