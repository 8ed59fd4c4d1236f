//! Arguments that several commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use domain::{RunId, TicketKey};

/// Output format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Table or lines for people.
    Text,
    /// One JSON value.
    Json,
    /// One JSON object per line.
    Jsonl,
}

/// Pager option for long text.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct PagerOptions {
    /// Print long text at once; without this option a terminal shows it in `$JOURNEYMAN_PAGER`, `$PAGER` or less
    #[arg(long)]
    pub no_pager: bool,
}

/// Location of the settings and the data.
#[derive(Debug, Clone, Args)]
pub struct SettingsArguments {
    /// Settings file [default: journeyman.toml, when it exists]
    #[arg(long = "config", value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    pub settings: Option<PathBuf>,
    /// Folder for data
    #[arg(long, value_name = "DIR", default_value = ".journeyman")]
    pub data: PathBuf,
}

/// Address and token of the API.
#[derive(Debug, Clone, Args)]
pub struct ApiArguments {
    /// Base URL of the API [default: that of the `journeyman up` in .journeyman/, else of the last `journeyman login`]
    #[arg(long = "api", value_name = "URL", env = "JOURNEYMAN_API")]
    pub url: Option<String>,
    /// File that holds the API token, - for standard input (`JOURNEYMAN_TOKEN` may hold the token itself)
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// Ticket at the API.
#[derive(Clone, Debug, Args)]
pub struct TicketArguments {
    /// The ticket: ENG-12, or jira:ENG-12
    #[arg(value_parser = parse_ticket)]
    pub ticket: TicketKey,
    /// Address and token of the API.
    #[command(flatten)]
    pub api: ApiArguments,
}

/// Parses a ticket: `ENG-12` means `jira:ENG-12`, `acme/shop#7` means `github:acme/shop#7`, and `acme/shop/discussions/7` the
/// discussion there.
pub(crate) fn parse_ticket(text: &str) -> Result<TicketKey, String> {
    TicketKey::written(text).map_err(|invalid| invalid.to_string())
}

/// Run or ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunOrTicket {
    /// One run: `jira:ENG-12@57`.
    Run(RunId),
    /// Ticket; commands that need a run take its newest one.
    Ticket(TicketKey),
}

pub(crate) fn parse_run_or_ticket(text: &str) -> Result<RunOrTicket, String> {
    match text.parse() {
        Ok(run) => Ok(RunOrTicket::Run(run)),
        Err(_) => parse_ticket(text).map(RunOrTicket::Ticket),
    }
}

/// Parses an amount in dollars: `2.50`, `$2.50`.
#[cfg(feature = "local")]
pub(crate) fn parse_dollars(text: &str) -> Result<f64, String> {
    let amount: Option<f64> = text.trim_start_matches('$').parse().ok();
    // Settings count millionths, and an amount that rounds to 0 would be no limit.
    amount
        .filter(|usd| usd.is_finite() && *usd >= 0.000_001)
        .ok_or_else(|| "must be at least 0.000001, such as 2.50".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "local")]
    #[test]
    fn dollars_are_never_rounded_to_no_limit() {
        for (text, amount) in [("2.50", 2.5), ("$3", 3.0), ("0.000001", 0.000_001)] {
            assert_eq!(parse_dollars(text), Ok(amount), "{text}");
        }
        for wrong in ["0", "-1", "0.0000004", "inf", "NaN", "$", "two"] {
            assert!(parse_dollars(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn default_instance_keys_need_no_prefix() {
        assert_eq!(parse_ticket("ENG-12").unwrap().to_string(), "jira:ENG-12");
        assert_eq!(
            parse_ticket("acme/shop#7").unwrap().to_string(),
            "github:acme/shop#7"
        );
        assert_eq!(parse_ticket("github:acme/shop#7").unwrap().short(), "acme/shop#7");
        assert_eq!(
            parse_ticket("acme/shop/discussions/7").unwrap().to_string(),
            "github:acme/shop/discussions/7"
        );
        for wrong in ["eng-12", "acme/shop", "acme/shop/discussions/", "shop#7"] {
            assert!(parse_ticket(wrong).is_err(), "{wrong}");
        }
    }
}
