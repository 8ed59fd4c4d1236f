//! Arguments of `eval`.

use std::path::PathBuf;

use clap::Args;

use crate::args::OutputFormat;

/// Play tasks with known solutions, grade them by their tests, and print the resolved share and the
/// cost
#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct Arguments {
    /// The data set: one JSON object per line and instance
    #[arg(value_name = "DATASET")]
    pub(super) dataset: PathBuf,
    /// The model, by its provider's name for it
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// The provider's address
    #[arg(long, value_name = "URL")]
    pub(super) base_url: Option<String>,
    /// Settings file; only its model and limits count
    #[arg(long, value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    pub(super) settings: Option<PathBuf>,
    /// Rules for every instance, without `repo:`
    #[arg(long = "config", value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,
    /// Concurrent instances
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) jobs: u16,
    /// Runs of each instance
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) runs: u32,
    /// Start no run once this amount is spent, in dollars; active runs may still cost something
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    pub(super) max_cost: Option<f64>,
    /// Folder for results and journals
    #[arg(long, value_name = "DIR", default_value = "eval-results")]
    pub(super) out: PathBuf,
    /// Keep existing results, and play the missing ones
    #[arg(long)]
    pub(super) resume: bool,
    /// Results folder of another evaluation to compare with, instance by instance
    #[arg(long, value_name = "RESULTS")]
    pub(super) compare: Option<PathBuf>,
    /// Output format of the result
    #[arg(long, short, value_enum, default_value = "text")]
    pub(super) output: OutputFormat,
}

fn parse_dollars(text: &str) -> Result<f64, String> {
    let amount: Option<f64> = text.trim_start_matches('$').parse().ok();
    amount
        .filter(|usd| usd.is_finite() && *usd > 0.0)
        .ok_or_else(|| "must be more than 0, such as 2.50".to_owned())
}
