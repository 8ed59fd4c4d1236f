//! Retries of model calls.

use std::time::Duration;

use domain::ModelReply;
use tokio::time::Instant;

use super::{
    failure::{AttemptFailure, ProviderError, ProviderErrorKind, RefusalCause},
    retry_hint,
    target::ModelTarget,
};

const GARBAGE_TRIES: u32 = 2;
// Unreachable: unknown name, closed port, or network down.
const UNREACHABLE_TRIES: u32 = 3;
const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
// Maximum of bytes that are read of an error body.
const MOST_ERROR_BYTES: usize = 64 * 1024;

/// Attempts and time for one provider.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryPatience {
    tries: u32,
    budget: Duration,
}

impl RetryPatience {
    /// Patience with the last provider of a chain.
    pub(super) const LONG: Self = Self {
        tries: 5,
        budget: Duration::from_secs(300),
    };
    /// Patience with a provider that has a fallback.
    pub(super) const SHORT: Self = Self {
        tries: 3,
        budget: Duration::from_secs(20),
    };

    /// Returns the longest duration of all attempts if one lasts `attempt`. No attempt starts after the
    /// budget, and everything repeats when the provider refuses its earlier thinking, and when it refuses
    /// the images.
    pub(super) fn longest(self, attempt: Duration) -> Duration {
        (self.budget + attempt) * 3
    }
}

/// Repeats the attempt until it succeeds, fails for good, or attempts or time are exhausted.
pub(super) async fn run_with_retries<F, Fut>(
    patience: RetryPatience,
    asked: &ModelTarget,
    mut attempt: F,
) -> Result<ModelReply, AttemptFailure>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<ModelReply, AttemptFailure>>,
{
    let start = Instant::now();
    let (mut tries, mut garbage, mut unreachable) = (0, 0, 0);
    loop {
        let failure = match attempt().await {
            Ok(reply) => return Ok(reply),
            Err(failure @ (AttemptFailure::Final(..) | AttemptFailure::StaleThinking)) => {
                return Err(failure);
            }
            Err(failure) => failure,
        };
        tries += 1;
        garbage += u32::from(matches!(failure, AttemptFailure::Garbage(_)));
        unreachable += u32::from(matches!(
            failure,
            AttemptFailure::Transient {
                is_unreachable: true,
                ..
            }
        ));
        let delay = retry_delay(&failure, tries);
        let is_late = start.elapsed() + delay > patience.budget;
        let is_clear = garbage >= GARBAGE_TRIES || unreachable >= UNREACHABLE_TRIES;
        if tries >= patience.tries || is_clear || is_late {
            return Err(failure);
        }
        tracing::warn!(tries, delay_ms = delay.as_millis(), problem = %failure.describe(asked), "model call failed, trying again");
        tokio::time::sleep(delay).await;
    }
}

/// Returns an exponential delay with jitter, or the delay that the provider asks for.
fn retry_delay(failure: &AttemptFailure, tries: u32) -> Duration {
    if let AttemptFailure::Transient {
        after: Some(after), ..
    } = failure
    {
        return *after;
    }
    let ceiling = FIRST_DELAY
        .saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1)))
        .min(LONGEST_DELAY);
    // The random half separates planners whose calls failed together.
    ceiling / 2 + ceiling.mul_f64(fastrand::f64() / 2.0)
}

/// Returns a successful response, or the failure that status and body describe.
pub(super) async fn accept_response(
    response: reqwest::Response,
    idle: Duration,
) -> Result<reqwest::Response, AttemptFailure> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let code = status.as_u16();
    let after = retry_hint::read_headers(response.headers());
    let header = |name: &str| {
        let value = response.headers().get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let wish = header("x-should-retry");
    let class =
        header("x-amzn-errortype").map(|class| class.split(':').next().unwrap_or_default().to_owned());
    // Without the body, the status alone decides.
    let body = tokio::time::timeout(idle, read_error_body(response))
        .await
        .unwrap_or_default();
    let said = ProviderError::read(&body, class.as_deref());
    let is_about_images = said.says_no_images();
    let known = said
        .kind()
        .filter(|_| is_about_images || !status.is_server_error());
    let is_final = matches!(
        known,
        Some(ProviderErrorKind::Final(
            RefusalCause::NoCredit | RefusalCause::NoModel | RefusalCause::AboveRateLimit { .. }
        ))
    );
    let waits_in_vain = is_final || is_about_images;
    let transient = matches!(code, 408 | 409 | 424 | 425 | 429) || status.is_server_error();
    let is_asked_for = wish.as_deref() == Some("true");
    if !waits_in_vain && (is_asked_for || (wish.as_deref() != Some("false") && transient)) {
        return Err(said.passing(&format!("is overloaded or in trouble ({code})"), after));
    }
    Err(match known {
        Some(ProviderErrorKind::StaleThinking) => AttemptFailure::StaleThinking,
        // For credentials, account and model the status is more reliable than the class, unless the message
        // itself is specific.
        Some(ProviderErrorKind::Final(cause)) if waits_in_vain || !matches!(code, 401..=404) => {
            said.refusal(cause, Some(code))
        }
        _ => match cause_of_status(code) {
            Some(cause) => said.refusal(cause, Some(code)),
            None => said.passing(&format!("is overloaded or in trouble ({code})"), after),
        },
    })
}

fn cause_of_status(code: u16) -> Option<RefusalCause> {
    match code {
        401 | 403 => Some(RefusalCause::CredentialsRefused),
        402 => Some(RefusalCause::NoCredit),
        404 => Some(RefusalCause::NoModel),
        413 => Some(RefusalCause::ContextTooLong),
        429 | 500..=599 => None,
        _ => Some(RefusalCause::Request),
    }
}

async fn read_error_body(mut response: reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = MOST_ERROR_BYTES.saturating_sub(body.len());
        body.extend(chunk.iter().take(room));
        if room == 0 {
            break;
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn retry_time_is_read_from_header_or_body() {
        let google = r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota.","details":[{"retryDelay":"7s"}]}}]"#;
        let openai = r#"{"error":{"code":"rate_limit_exceeded","message":"Please try again in 1.5s."}}"#;
        for (header, body, wanted) in [
            (Some(("retry-after", "3")), openai, 3_000),
            (Some(("llm_provider-retry-after", "4")), "", 4_000),
            (None, google, 7_000),
            (None, openai, 1_500),
        ] {
            let mut builder = axum::http::Response::builder().status(429);
            if let Some((name, value)) = header {
                builder = builder.header(name, value);
            }
            let response = builder.body(body).unwrap();
            let failure = accept_response(response.into(), Duration::from_secs(1))
                .await
                .unwrap_err();
            let AttemptFailure::Transient { after, .. } = failure else {
                panic!("{failure:?}");
            };
            assert_eq!(after, Some(Duration::from_millis(wanted)), "{body}");
        }
    }
}
