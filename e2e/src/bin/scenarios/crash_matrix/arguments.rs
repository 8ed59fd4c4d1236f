//! The command line.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{Args, Subcommand};
use failpoint::Point;

use crate::crash_matrix::stage::{NatsServers, Story};

/// Ends Journeyman at every failpoint of a story, starts it again and compares how the story ends.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Stories played at once; one more than there are cores when absent.
    #[arg(long)]
    pub(crate) jobs: Option<usize>,
    /// Only the points whose name contains this text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Only one of so many points, in the order in which the stories pass them.
    #[arg(long, value_name = "N")]
    pub(crate) every: Option<NonZeroUsize>,
    /// Leave out the first so many points, which were played before.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: usize,
    /// NATS servers under each story.
    #[arg(long, value_enum, value_name = "N", default_value_t = NatsServers::One)]
    pub(crate) servers: NatsServers,
    /// Only these stories; which sites they leave out is then no failure.
    #[arg(long, value_enum, value_name = "STORY")]
    pub(crate) story: Vec<Story>,
    /// Print the points and play nothing but the story that finds them.
    #[arg(long)]
    pub(crate) list: bool,
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// The five services in one process, with settings from standard input.
    #[command(hide = true)]
    Services {
        /// The data folder.
        #[arg(long)]
        data: PathBuf,
        #[command(flatten)]
        watch: Watch,
    },
}

/// What the services' process does at its failpoints.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Watch {
    /// Note the points that are passed, and print them at the end.
    #[arg(long)]
    pub(crate) record: bool,
    /// End at this point.
    #[arg(long)]
    pub(crate) arm: Option<Point>,
}
