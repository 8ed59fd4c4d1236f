//! What can happen to the cluster while tickets are under way.

/// One kind of round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Event {
    /// Nothing
    Nothing,
    /// Executors are scaled up, down and up
    Scale,
    /// Every workload is restarted at once
    Restart,
    /// A node is drained
    Drain,
    /// A NATS server is killed
    Kill,
    /// A command of a ticket tries to reach everything
    Contained,
    /// The autoscaler scales the executors; takes the component `keda`, and is not among all
    Autoscale,
}

impl Event {
    /// All that every cluster can, in the order in which they are played.
    pub(crate) const ALL: [Self; 6] = [
        Self::Nothing,
        Self::Scale,
        Self::Restart,
        Self::Drain,
        Self::Kill,
        Self::Contained,
    ];

    /// Its name in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Scale => "executors 2 → 4 → 1 → 3",
            Self::Restart => "rollout restart of all seven workloads at once",
            Self::Drain => "drain of a node",
            Self::Kill => "a NATS server killed",
            Self::Contained => "a command tries every address",
            Self::Autoscale => "the autoscaler follows",
        }
    }
}
