//! Reasons why an executor accepts no work.

/// Reason: the disk has too little space for new work.
pub(crate) const DISK_LOW: &str = "the disk has less free than executor.disk_reserve_mib";

/// Result of the isolation test. The executor accepts no work before it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetworkIsolation {
    /// The first test is not finished.
    Untried,
    /// The test failed.
    Unknown,
    /// The settings contain only names, and none of them resolves here.
    Unresolved,
    /// Commands can reach a forbidden address.
    Broken,
    /// No forbidden address is reachable.
    Holds,
}

impl NetworkIsolation {
    pub(crate) const fn holds(self) -> bool {
        matches!(self, Self::Holds)
    }

    /// Returns the reason why the executor accepts no work, for an operator; empty if it does. The log has
    /// the addresses.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Untried => "whether commands reach forbidden addresses is being tried",
            Self::Unknown => "whether commands reach forbidden addresses could not be tried",
            Self::Unresolved => {
                "no name in executor.forbidden_addresses resolves here, so the network was not tried; name addresses"
            }
            Self::Broken => "commands reach addresses that executor.forbidden_addresses names",
            Self::Holds => "",
        }
    }
}
