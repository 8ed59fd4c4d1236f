//! Command line of the crash matrix.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{Args, Subcommand};
use failpoint::FailpointPass;

use crate::crash_matrix::stage::{MatrixStory, NatsServers};

/// Ends Journeyman at every failpoint of a story, starts it again and compares how the story ends.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Stories played at once; by default one more than there are cores.
    #[arg(long)]
    pub(crate) jobs: Option<usize>,
    /// Only points whose name contains this text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Only every Nth point, in the order in which the stories pass them.
    #[arg(long, value_name = "N")]
    pub(crate) every: Option<NonZeroUsize>,
    /// Only points whose name contains this text, of the stories that have such points; the other options select from
    /// the other stories.
    #[arg(long, value_name = "TEXT")]
    pub(crate) pick: Vec<String>,
    /// Leave out the first N points.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: usize,
    /// NATS servers of each story.
    #[arg(long, value_enum, value_name = "N", default_value_t = NatsServers::One)]
    pub(crate) servers: NatsServers,
    /// Only these stories. Sites that they do not pass are then no failure.
    #[arg(long, value_enum, value_name = "STORY")]
    pub(crate) story: Vec<MatrixStory>,
    /// Print the points without any crash.
    #[arg(long)]
    pub(crate) list: bool,
    #[command(subcommand)]
    pub(crate) role: Option<MatrixRole>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MatrixRole {
    /// The five services in one process, with settings from standard input.
    #[command(hide = true)]
    Services {
        /// Data folder of the services.
        #[arg(long)]
        data: PathBuf,
        #[command(flatten)]
        watch: FailpointMode,
    },
}

/// Failpoint mode of the services' process.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct FailpointMode {
    /// Record the passed points and print them at the end.
    #[arg(long)]
    pub(crate) record: bool,
    /// Abort at this point.
    #[arg(long)]
    pub(crate) arm: Option<FailpointPass>,
}
