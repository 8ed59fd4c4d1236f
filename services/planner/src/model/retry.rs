//! When a model call is tried again, and how its failure is told.

use std::time::Duration;

use domain::Reply;
use serde::Deserialize;
use tokio::time::Instant;

use super::ModelError;

const TRIES: u32 = 5;
const GARBAGE_TRIES: u32 = 2;
const BUDGET: Duration = Duration::from_secs(300);
const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
const CLASS_CHARS: usize = 64;

/// Why one try failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Worth trying again, not before `after` when the provider says so.
    Transient { what: String, after: Option<Duration> },
    /// The answer was not what the dialect says.
    Garbage(&'static str),
    /// No try will help.
    Refused(String),
}

impl Failure {
    /// Worth trying again.
    pub(super) fn transient(what: &str) -> Self {
        Self::Transient {
            what: what.to_owned(),
            after: None,
        }
    }

    fn told(&self) -> ModelError {
        let words = match self {
            Self::Transient { what, .. } => format!("the model provider {what}"),
            Self::Garbage(what) => format!("the model provider sent an answer that cannot be read ({what})"),
            Self::Refused(class) => format!("the model provider refused the request ({class})"),
        };
        ModelError {
            words,
            transient: !matches!(self, Self::Refused(_)),
        }
    }
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        // The error's own text would show the URL, which may carry a gateway's key; its causes are for the operator.
        let causes = domain::cause::with_causes("the connection failed", std::error::Error::source(&error));
        tracing::warn!(error = causes, "no reply from the model provider");
        Self::transient(if error.is_connect() {
            "cannot be reached"
        } else {
            "broke the connection"
        })
    }
}

/// Tries until it works, cannot work, or tries and time are used up.
pub(super) async fn run<F, Fut>(mut attempt: F) -> Result<Reply, ModelError>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<Reply, Failure>>,
{
    let start = Instant::now();
    let (mut tries, mut garbage) = (0, 0);
    loop {
        let failure = match attempt().await {
            Ok(reply) => return Ok(reply),
            Err(failure) => failure,
        };
        tries += 1;
        garbage += u32::from(matches!(failure, Failure::Garbage(_)));
        let delay = delay(&failure, tries);
        let over = tries >= TRIES || garbage >= GARBAGE_TRIES || start.elapsed() + delay > BUDGET;
        if over || matches!(failure, Failure::Refused(_)) {
            return Err(failure.told());
        }
        tracing::warn!(tries, delay_ms = delay.as_millis(), problem = %failure.told(), "model call failed, trying again");
        tokio::time::sleep(delay).await;
    }
}

/// Exponential with jitter; the provider's own wish goes first.
fn delay(failure: &Failure, tries: u32) -> Duration {
    if let Failure::Transient {
        after: Some(after), ..
    } = failure
    {
        return *after;
    }
    let ceiling = FIRST_DELAY
        .saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1)))
        .min(LONGEST_DELAY);
    let share = uuid::Uuid::new_v4().as_u128() % 1000;
    ceiling / 2 + ceiling.mul_f64(f64::from(u32::try_from(share).unwrap_or(0)) / 2000.0)
}

/// The response when it is a success; else the failure that its status tells.
pub(super) async fn accepted(
    response: reqwest::Response,
    idle: Duration,
) -> Result<reqwest::Response, Failure> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let code = status.as_u16();
    let after = retry_after(&response);
    let wish = response
        .headers()
        .get("x-should-retry")
        .and_then(|value| value.to_str().ok());
    if wish == Some("true") || (wish != Some("false") && is_transient(status)) {
        return Err(Failure::Transient {
            what: format!("is overloaded or in trouble ({code})"),
            after,
        });
    }
    let class = match tokio::time::timeout(idle, response.bytes()).await {
        Ok(Ok(body)) => error_class(&body),
        Ok(Err(_)) | Err(_) => None,
    };
    Err(Failure::Refused(class.map_or_else(
        || code.to_string(),
        |class| format!("{code} {class}"),
    )))
}

fn is_transient(status: reqwest::StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 409 | 429) || status.is_server_error()
}

fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    let header = |name: &str| {
        response
            .headers()
            .get(name)?
            .to_str()
            .ok()?
            .trim()
            .parse::<f64>()
            .ok()
    };
    let seconds = header("retry-after-ms")
        .map(|ms| ms / 1000.0)
        .or_else(|| header("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorDetail,
}

#[derive(Deserialize)]
struct ErrorDetail {
    #[serde(rename = "type")]
    class: String,
}

/// The class that both dialects put at `error.type`, when it looks like one.
fn error_class(body: &[u8]) -> Option<String> {
    let class = serde_json::from_slice::<ErrorBody>(body).ok()?.error.class;
    let plain = class.len() <= CLASS_CHARS && class.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain.then_some(class)
}
