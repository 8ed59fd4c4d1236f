//! Why an executor opens nothing.

/// The disk has too little room for new work.
pub(crate) const DISK_LOW: &str = "the disk has less free than executor.disk_reserve_mib";

/// Whether the network keeps commands from what they must not reach; nothing is opened before it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// The first try is not over.
    Untried,
    /// It could not be tried.
    Unknown,
    /// Names were given, and none of them stands for an address here.
    Unresolved,
    /// Commands reach what they must not.
    Broken,
    /// It does.
    Holds,
}

impl Isolation {
    pub(crate) const fn holds(self) -> bool {
        matches!(self, Self::Holds)
    }

    /// Why nothing is opened, for an operator; empty: it may be. The log has the addresses.
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
