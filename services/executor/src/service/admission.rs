//! Admission of calls: their grant and their deadline.

use std::{sync::Arc, time::Duration};

use domain::RunFence;
use grant::{Grant, GrantAudience, GrantVerifier};
use proto::executor::Fence;
use tonic::{Request, Status, metadata::MetadataMap, service::Interceptor};

/// Longest time of a tool call.
pub(crate) const MAX_CALL: Duration = Duration::from_secs(600);

/// Interceptor that verifies the grant of every call before its message is read, and attaches it to the
/// request.
#[derive(Clone)]
pub(crate) struct GrantInterceptor(Arc<GrantVerifier>);

impl GrantInterceptor {
    pub(crate) fn new(verifier: GrantVerifier) -> Self {
        Self(Arc::new(verifier))
    }
}

impl Interceptor for GrantInterceptor {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let (token, now) = (bearer_token(request.metadata())?, bootstrap::read_wall_clock());
        // Only the verified audience of a token distinguishes the two kinds of grants. Nearly all calls are about a
        // workspace, so the grant of a run is tried first.
        match self.0.verify(token, GrantAudience::Executor, now) {
            Ok(grant) => {
                request.extensions_mut().insert(grant);
            }
            Err(refused) if self.0.verify_status(token, now).is_err() => {
                return Err(Status::unauthenticated(refused.to_string()));
            }
            Err(_) => {
                request.extensions_mut().insert(StatusGrant);
            }
        }
        Ok(request)
    }
}

/// Mark of a call that was admitted with a status grant.
#[derive(Clone)]
struct StatusGrant;

/// Returns the grant of a call. A call with a status grant is refused, because such a grant opens no
/// workspace.
pub(crate) fn grant_of<T>(request: &Request<T>) -> Result<Grant, Status> {
    let grant = request.extensions().get().cloned();
    grant.ok_or_else(|| Status::unauthenticated("a status grant opens no workspace"))
}

/// Refuses a call about the executor itself unless it has a status grant.
pub(crate) fn may_see_status<T>(request: &Request<T>) -> Result<(), Status> {
    match request.extensions().get::<StatusGrant>() {
        Some(StatusGrant) => Ok(()),
        None => Err(Status::unauthenticated("a status grant is needed")),
    }
}

fn bearer_token(metadata: &MetadataMap) -> Result<&str, Status> {
    let header = metadata
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    header
        .and_then(|header| header.strip_prefix("Bearer "))
        .ok_or_else(|| Status::unauthenticated("a grant is needed: authorization: Bearer <grant>"))
}

/// Returns the request's fence, which must be the grant's.
pub(crate) fn check_request_fence(grant: &Grant, fence: Option<Fence>) -> Result<RunFence, Status> {
    let fence = RunFence::from(fence.ok_or_else(|| Status::invalid_argument("fence is missing"))?);
    if fence == grant.fence {
        Ok(fence)
    } else {
        Err(Status::permission_denied("the grant is for another fence"))
    }
}

/// Returns the caller's time limit from `grpc-timeout`, at most `most`.
pub(crate) fn time_limit(metadata: &MetadataMap, most: Duration) -> Duration {
    let text = metadata
        .get("grpc-timeout")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    parse_timeout(text).unwrap_or(most).min(most)
}

fn parse_timeout(text: &str) -> Option<Duration> {
    // One digit sequence and one unit letter, such as `100m` (gRPC over HTTP/2, `TimeoutValue` and
    // `TimeoutUnit`).
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number.checked_mul(3600)?),
        "M" => Duration::from_secs(number.checked_mul(60)?),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_units_parse_and_are_capped() {
        let limit = |text: &str| {
            let mut metadata = MetadataMap::new();
            metadata.insert("grpc-timeout", text.parse().unwrap());
            time_limit(&metadata, MAX_CALL)
        };
        assert_eq!(limit("5S"), Duration::from_secs(5));
        assert_eq!(limit("250m"), Duration::from_millis(250));
        for text in ["3H", "99999999H", "x", "5é", "S"] {
            assert_eq!(limit(text), MAX_CALL, "{text}");
        }
        assert_eq!(time_limit(&MetadataMap::new(), MAX_CALL), MAX_CALL);
    }
}
