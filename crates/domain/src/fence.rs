//! Fences: numbers that only grow per ticket. Whoever carries an older one is refused.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The parts of a fence, compared in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FenceStamp {
    /// Rises when a stream or durable consumer was recreated, so that its counters start again.
    pub epoch: u64,
    /// Stream sequence of the wake-up token.
    pub sequence: u64,
    /// Delivery count of the wake-up token, from 1.
    pub delivered: u64,
}

impl fmt::Display for FenceStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.epoch, self.sequence, self.delivered)
    }
}

macro_rules! fence {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(FenceStamp);

        impl $name {
            /// The fence of one delivery of one token.
            pub const fn new(epoch: u64, sequence: u64, delivered: u64) -> Self {
                Self(FenceStamp { epoch, sequence, delivered })
            }

            /// The parts.
            pub const fn stamp(self) -> FenceStamp {
                self.0
            }
        }

        impl From<FenceStamp> for $name {
            fn from(stamp: FenceStamp) -> Self {
                Self(stamp)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

fence! {
    /// Held by the planner that works on a ticket; carried by reports, journal entries and executor calls.
    RunFence
}
fence! {
    /// Held by the reporter that works on a ticket's reports; compared in the ledger. Not comparable with a run fence.
    ReportFence
}
