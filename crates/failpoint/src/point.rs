//! Failpoints by site, kind, phase and number of the pass.

use std::{fmt, str::FromStr};

/// Phase of the await.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailpointPhase {
    /// The request is not sent yet.
    Before,
    /// The answer has arrived and the caller has not received it yet.
    After,
}

impl FailpointPhase {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// One pass of a site, as text `queue.journal.append[run_started]/before#1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FailpointPass {
    /// Name of the site, one of [`crate::SITES`].
    pub site: String,
    /// Kind of the operation, for sites with several kinds; otherwise empty.
    pub kind: String,
    /// Phase of the await.
    pub phase: FailpointPhase,
    /// Number of the pass, from 1, among those of the same site, kind and phase.
    pub nth: u32,
}

impl FailpointPass {
    /// Site and kind as text, `site` or `site[kind]`.
    pub fn place(&self) -> String {
        if self.kind.is_empty() {
            self.site.clone()
        } else {
            format!("{}[{}]", self.site, self.kind)
        }
    }
}

impl fmt::Display for FailpointPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.place(), self.phase.as_str(), self.nth)
    }
}

/// Error: the text is not a point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a point such as queue.object.put/before#1")]
pub struct InvalidFailpoint(String);

impl FromStr for FailpointPass {
    type Err = InvalidFailpoint;

    fn from_str(text: &str) -> Result<Self, InvalidFailpoint> {
        parse_failpoint(text).ok_or_else(|| InvalidFailpoint(text.to_owned()))
    }
}

fn parse_failpoint(text: &str) -> Option<FailpointPass> {
    let (rest, nth) = text.rsplit_once('#')?;
    let (place, phase) = rest.rsplit_once('/')?;
    let (site, kind) = match place.split_once('[') {
        Some((site, kind)) => (site, kind.strip_suffix(']')?),
        None => (place, ""),
    };
    let phase = [FailpointPhase::Before, FailpointPhase::After]
        .into_iter()
        .find(|known| known.as_str() == phase)?;
    Some(FailpointPass {
        site: site.to_owned(),
        kind: kind.to_owned(),
        phase,
        nth: nth.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_reads_back_what_it_writes() {
        for text in [
            "queue.object.put/before#1",
            "queue.journal.append[run_started]/after#12",
        ] {
            assert_eq!(text.parse::<FailpointPass>().unwrap().to_string(), text);
        }
        for text in ["", "a/before", "a/during#1", "a[b/after#1", "a/after#x"] {
            assert!(text.parse::<FailpointPass>().is_err(), "{text}");
        }
    }
}
