//! Arguments of `serve` and `watch`.

use std::path::PathBuf;

use clap::Args;

use super::Settings;

/// `up`, with what a server is usually told on its command line.
#[derive(Debug, Clone, Args)]
pub struct Serve {
    /// Port for webhooks and the API, at the address of `ingest.listen` [default: that of the settings, else 7401]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Folder with one rules file for each repository [default: that of the settings]
    #[arg(long, value_name = "DIR")]
    pub config_dir: Option<PathBuf>,
    /// Where the settings are.
    #[command(flatten)]
    pub settings: Settings,
}

/// Work on whatever asks for it, found by polls alone.
#[derive(Debug, Clone, Args)]
pub struct Watch {
    /// The rules file of the only repository to watch [default: every repository of the settings]
    #[arg(long = "config", value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub interval: u32,
    /// Settings file [default: journeyman.toml, when it exists]
    #[arg(long, value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    pub settings: Option<PathBuf>,
    /// Folder for data
    #[arg(long, value_name = "DIR", default_value = ".journeyman")]
    pub data: PathBuf,
}
