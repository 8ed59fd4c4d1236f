//! Fences: numbers per ticket that only increase. Operations with an older fence are rejected.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The parts of a fence, compared in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FenceStamp {
    /// Increases when a stream or durable consumer is recreated, because its counters restart then.
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
            /// Creates the fence of one delivery of one token.
            pub const fn new(epoch: u64, sequence: u64, delivered: u64) -> Self {
                Self(FenceStamp { epoch, sequence, delivered })
            }

            /// The comparable parts of the fence.
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
    /// Fence of the planner that works on a ticket. Reports, journal entries and executor calls carry it.
    RunFence
// Two types, so that code cannot compare the fences of different streams.
}
fence! {
    /// Fence of the reporter that works on a ticket's reports. The ledger compares it. It is not comparable
    /// with a run fence.
    ReporterFence
}
