//! Rate limits of an account: checked before each request, updated from each answer.

use std::{sync::Arc, time::Duration};

use domain::{
    InstanceName,
    limits::{LimitClass, LimitGate, LimitObservation, PrimaryQuota, WritePace},
};
use http::HeaderMap;
use webclient::GatedAccount;

use crate::{
    Error, Settings,
    connection::{ApiConnection, GitHubCall},
};

/// Writes that github.com accepts before its secondary rate limit: 80 a minute, 500 an hour.
pub const WRITES: WritePace = WritePace {
    // From GitHub's documentation of rate limits: requests that create content.
    a_minute: 80,
    an_hour: 500,
};

/// Shared gate of rate limits, with the permitted rate of writes.
#[derive(Clone, Debug)]
pub struct GatePolicy {
    /// Gate that admits requests and receives the limits of answers.
    pub gate: Arc<dyn LimitGate>,
    /// Writes in any minute; 0: any number; absent: 80 at github.com, any number elsewhere.
    pub writes_a_minute: Option<u32>,
    /// Writes in any hour; 0: any number; absent: 500 at github.com, any number elsewhere.
    pub writes_an_hour: Option<u32>,
}

impl GatePolicy {
    /// Gate with GitHub's documented limits for writes.
    pub fn by(gate: Arc<dyn LimitGate>) -> Self {
        Self {
            gate,
            writes_a_minute: None,
            writes_an_hour: None,
        }
    }

    /// Enterprise Server has no secondary limits unless its administrator enables them.
    fn pace(&self, settings: &Settings) -> WritePace {
        let usual = if settings.is_github_com() {
            WRITES
        } else {
            WritePace::default()
        };
        WritePace {
            a_minute: self.writes_a_minute.unwrap_or(usual.a_minute),
            an_hour: self.writes_an_hour.unwrap_or(usual.an_hour),
        }
    }
}

/// Limits of one account; without a gate no request is held back.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccountLimits {
    account: GatedAccount,
    pace: Option<WritePace>,
}

impl AccountLimits {
    /// Limits of an account of an instance; `role` is `reader` or `writer`.
    pub(crate) fn of(
        gated: Option<&GatePolicy>,
        role: &str,
        instance: Option<&InstanceName>,
        settings: &Settings,
    ) -> Self {
        Self {
            account: GatedAccount::new(gated.map(|gated| &gated.gate), "github", role, instance),
            pace: gated.map(|gated| gated.pace(settings)),
        }
    }

    /// Limits of one installation: GitHub counts each installation of an App separately.
    pub(crate) fn of_installation(&self, id: u64) -> Self {
        Self {
            account: self.account.part(&format!("installation-{id}")),
            pace: self.pace,
        }
    }

    /// Limits of the account that the project token belongs to.
    pub(crate) fn of_projects(&self) -> Self {
        Self {
            account: self.account.part("projects"),
            pace: self.pace,
        }
    }

    /// Limits without a rate of writes, for calls that create no content, such as requests for tokens.
    pub(crate) fn without_pace(&self) -> Self {
        Self {
            account: self.account.clone(),
            pace: None,
        }
    }

    /// Rate of writes that holds for a call. Only requests that create content count for the secondary limit.
    fn pace_of(&self, call: GitHubCall<'_>) -> Option<WritePace> {
        self.pace.filter(|_| call.is_write())
    }

    /// Returns [`Error::HeldBack`], before anything is sent, for a request that GitHub would refuse.
    pub(crate) async fn admit(&self, call: GitHubCall<'_>) -> Result<(), Error> {
        let admitted = self.account.admit(call.resource(), self.pace_of(call)).await;
        admitted.map_err(|retry_after| Error::HeldBack { retry_after })
    }

    pub(crate) async fn report(&self, call: GitHubCall<'_>, observed: LimitObservation) {
        self.account
            .report(call.resource(), self.pace_of(call), observed)
            .await;
    }
}

/// Connection with its credentials and the limits that apply to them.
#[derive(Clone)]
pub(crate) struct ApiCaller {
    pub(crate) connection: ApiConnection,
    pub(crate) limits: AccountLimits,
}

/// Rate-limit headers of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitHeaders {
    pub(crate) limit: Option<u64>,
    pub(crate) remaining: Option<u64>,
    pub(crate) reset_unix_s: Option<u64>,
    /// Time until the reset, by GitHub's clock.
    pub(crate) reset_in: Option<Duration>,
    pub(crate) retry_after: Option<Duration>,
}

impl LimitHeaders {
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok();
        let number = |name: &str| text(name)?.parse::<u64>().ok();
        let reset_unix_s = number("x-ratelimit-reset");
        let reset_in = reset_unix_s
            .zip(text("date"))
            .and_then(|(at, now)| measure_seconds_until(now, at));
        Self {
            limit: number("x-ratelimit-limit"),
            remaining: number("x-ratelimit-remaining"),
            reset_unix_s,
            reset_in: reset_in.map(Duration::from_secs),
            retry_after: number("retry-after").map(Duration::from_secs),
        }
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.remaining == Some(0)
    }

    /// The time to wait, when the answer names one.
    pub(crate) fn wait(&self) -> Option<Duration> {
        // `retry-after` (secondary limit) comes first: the reset of the primary limit may be up to an hour
        // away.
        self.retry_after.or(self.reset_in.filter(|_| self.is_exhausted()))
    }

    fn quota(&self) -> Option<(PrimaryQuota, Duration)> {
        let quota = PrimaryQuota {
            reset_unix_s: self.reset_unix_s?,
            limit: self.limit?,
            remaining: self.remaining?,
        };
        Some((quota, self.reset_in?))
    }

    /// Limits that the answer reports, with the wait of a refusal. An exhausted quota makes the refusal a
    /// primary one.
    pub(crate) fn observe(&self, refused: Option<Duration>) -> LimitObservation {
        let class = if self.is_exhausted() {
            LimitClass::Primary
        } else {
            LimitClass::Secondary
        };
        LimitObservation {
            quota: self.quota(),
            refused: refused.map(|wait| (class, wait)),
        }
    }
}

/// Seconds from the answer's `Date` header to a Unix time. Our clock may differ from GitHub's.
fn measure_seconds_until(date: &str, unix_s: u64) -> Option<u64> {
    let now = time::OffsetDateTime::parse(date, &time::format_description::well_known::Rfc2822).ok()?;
    Some(unix_s.saturating_sub(u64::try_from(now.unix_timestamp()).ok()?))
}
