//! Maintenance: loops over all tickets that one process of the cluster runs.

pub(crate) mod census;
pub(crate) mod projector;
pub(crate) mod sweeper;
