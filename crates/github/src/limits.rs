//! The limits that hold for who calls: asked before each request, told of each answer.

use std::{sync::Arc, time::Duration};

use domain::{
    Instance,
    limits::{Heard, Knock, LimitClass, LimitGate, Pace, Quota},
};
use http::HeaderMap;
use octocrab::Octocrab;

use crate::{Error, Settings, call::Call};

/// What github.com bears of writes before its secondary limit.
pub const WRITES: Pace = Pace {
    a_minute: 80,
    an_hour: 500,
};

/// Who keeps the limits, and how many writes an account makes.
#[derive(Clone, Debug)]
pub struct Gated {
    /// Whom to ask and tell.
    pub gate: Arc<dyn LimitGate>,
    /// Writes in any minute; 0: any number; absent: 80 at github.com, any number elsewhere.
    pub writes_a_minute: Option<u32>,
    /// Writes in any hour; 0: any number; absent: 500 at github.com, any number elsewhere.
    pub writes_an_hour: Option<u32>,
}

impl Gated {
    /// With GitHub's own limits of writes.
    pub fn by(gate: Arc<dyn LimitGate>) -> Self {
        Self {
            gate,
            writes_a_minute: None,
            writes_an_hour: None,
        }
    }

    /// Enterprise Server has no secondary limits, unless its administrator wants them.
    fn pace(&self, settings: &Settings) -> Pace {
        let usual = if settings.is_github_com() {
            WRITES
        } else {
            Pace::default()
        };
        Pace {
            a_minute: self.writes_a_minute.unwrap_or(usual.a_minute),
            an_hour: self.writes_an_hour.unwrap_or(usual.an_hour),
        }
    }
}

/// The limits of one account; without a gate none is known before GitHub tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    gate: Option<Arc<dyn LimitGate>>,
    account: Arc<str>,
    pace: Option<Pace>,
}

impl Limits {
    /// Those of an account of an instance, `reader` or `writer`.
    pub(crate) fn of(
        gated: Option<&Gated>,
        role: &str,
        instance: Option<&Instance>,
        settings: &Settings,
    ) -> Self {
        let Some(gated) = gated else {
            return Self::default();
        };
        let instance = instance.map_or("default", Instance::as_str);
        Self {
            gate: Some(Arc::clone(&gated.gate)),
            account: format!("github:{role}:{instance}").into(),
            pace: Some(gated.pace(settings)),
        }
    }

    /// Each installation of an App has limits of its own.
    pub(crate) fn of_installation(&self, id: u64) -> Self {
        Self {
            account: format!("{}:installation-{id}", self.account).into(),
            ..self.clone()
        }
    }

    /// The account that the token for projects belongs to.
    pub(crate) fn of_projects(&self) -> Self {
        Self {
            account: format!("{}:projects", self.account).into(),
            ..self.clone()
        }
    }

    /// For calls that create nothing, such as those that make tokens.
    pub(crate) fn without_pace(&self) -> Self {
        Self {
            pace: None,
            ..self.clone()
        }
    }

    fn knock(&self, call: Call<'_>) -> Knock<'_> {
        Knock {
            account: &self.account,
            resource: call.resource(),
            pace: self.pace.filter(|_| call.is_write()),
        }
    }

    /// Refuses what GitHub would refuse; nothing was sent then.
    pub(crate) async fn admit(&self, call: Call<'_>) -> Result<(), Error> {
        let Some(gate) = &self.gate else { return Ok(()) };
        let admitted = gate.admit(self.knock(call)).await;
        admitted.map_err(|retry_after| Error::HeldBack { retry_after })
    }

    pub(crate) async fn hear(&self, call: Call<'_>, heard: Heard) {
        if let Some(gate) = &self.gate
            && heard != Heard::default()
        {
            gate.hear(self.knock(call), heard).await;
        }
    }
}

/// Who calls: a connection with its credentials, and the limits that hold for them.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) crab: Arc<Octocrab>,
    pub(crate) limits: Limits,
}

/// What the headers of an answer say of limits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitHeaders {
    pub(crate) limit: Option<u64>,
    pub(crate) remaining: Option<u64>,
    pub(crate) reset_unix_s: Option<u64>,
    /// By GitHub's own clock.
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
            .and_then(|(at, now)| seconds_between(now, at));
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

    /// How long to wait, when the answer says so.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.retry_after.or(self.reset_in.filter(|_| self.is_exhausted()))
    }

    fn quota(&self) -> Option<(Quota, Duration)> {
        let quota = Quota {
            reset_unix_s: self.reset_unix_s?,
            limit: self.limit?,
            remaining: self.remaining?,
        };
        Some((quota, self.reset_in?))
    }

    /// What an answer told, and how long its refusal asks to wait, if it is one for a limit.
    pub(crate) fn heard(&self, refused: Option<Duration>) -> Heard {
        let class = if self.is_exhausted() {
            LimitClass::Primary
        } else {
            LimitClass::Secondary
        };
        Heard {
            quota: self.quota(),
            refused: refused.map(|wait| (class, wait)),
        }
    }
}

/// By GitHub's own clock, as its `Date` header tells it.
fn seconds_between(date: &str, unix_s: u64) -> Option<u64> {
    let now = time::OffsetDateTime::parse(date, &time::format_description::well_known::Rfc2822).ok()?;
    Some(unix_s.saturating_sub(u64::try_from(now.unix_timestamp()).ok()?))
}
