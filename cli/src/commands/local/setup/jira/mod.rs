//! The two accounts of a Jira site, and its webhook.

mod accounts;
mod criteria_field;
mod requesters;
mod webhook;

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use domain::cause::format_error_chain;
use jira::{Error, JiraDialect, Settings, hook};

use self::accounts::{AccountArguments, AccountRole, connect_account};
use super::{KnownSettings, build_hook_url, is_web_address, print_result, prompt, store::SetupStore};
use crate::account_settings;

/// Set and test the two Jira accounts, and register the webhook; a working configuration stays
#[derive(Debug, Default, Args)]
pub(super) struct Arguments {
    /// The site, e.g. `https://acme.atlassian.net`
    #[arg(long, value_name = "URL")]
    site: Option<String>,
    /// The site is a Jira Data Center; needed only when the site does not report it
    #[arg(long, conflicts_with = "gateway")]
    data_center: bool,
    /// Base URL of the API, when the tokens have scopes: `https://api.atlassian.com/ex/jira/<id>` [default: the site]
    #[arg(long, value_name = "URL")]
    gateway: Option<String>,
    /// Mail address of the account that reads; not for a Data Center
    #[arg(long, value_name = "EMAIL")]
    reader_email: Option<String>,
    /// File with its API token, for a Data Center its personal access token
    #[arg(long, value_name = "FILE")]
    reader_token_file: Option<PathBuf>,
    /// Expiry day of that token, e.g. 2027-01-31
    #[arg(long, value_name = "DAY")]
    reader_expires: Option<String>,
    /// Mail address of the account that writes; not for a Data Center
    #[arg(long, value_name = "EMAIL")]
    writer_email: Option<String>,
    /// File with its API token, for a Data Center its personal access token
    #[arg(long, value_name = "FILE")]
    writer_token_file: Option<PathBuf>,
    /// Expiry day of that token
    #[arg(long, value_name = "DAY")]
    writer_expires: Option<String>,
    /// Jira group whose members may request work, or `*` for every account that can act on a ticket
    #[arg(long, value_name = "GROUP")]
    requesters: Option<String>,
    /// Address of Journeyman for the webhook; without it polls find the events
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Mail address of an administrator, who registers the webhook; without one you register it yourself. Not for a Data
    /// Center
    #[arg(long, value_name = "EMAIL", requires = "public_url")]
    admin_email: Option<String>,
    /// File with the administrator's token: used once, and not stored
    #[arg(long, value_name = "FILE", requires = "public_url")]
    admin_token_file: Option<PathBuf>,
}

pub(super) async fn set_up_jira(asked: Arguments, store: &SetupStore) -> anyhow::Result<()> {
    let known = KnownSettings::read(store)?;
    let public = asked
        .public_url
        .as_deref()
        .map(|public| build_hook_url(public, "Jira"))
        .transpose()?;
    let site = match (&asked.site, find_site_pages(&known.jira_reader)) {
        (None, known) if !known.is_empty() => known.to_owned(),
        (Some(site), _) => site.clone(),
        (None, _) => ask_for_site(known.jira_reader.allow_insecure).await?,
    };
    let place = JiraLocation::of(&site, &asked, &known.jira_reader).await?;
    let given = AccountArguments {
        email: asked.reader_email.clone(),
        token: asked.reader_token_file.clone(),
        expires: asked.reader_expires.clone(),
    };
    let reader = connect_account(AccountRole::Reader, &known.jira_reader, &place, &given, None);
    let reader = Box::pin(reader).await?;
    let given = AccountArguments {
        email: asked.writer_email.clone(),
        token: asked.writer_token_file.clone(),
        expires: asked.writer_expires.clone(),
    };
    let other = Some(&reader.identity);
    let writer = connect_account(AccountRole::Writer, &known.jira_writer, &place, &given, other);
    let writer = Box::pin(writer).await?;
    // Both accounts are tested before the first one is stored.
    for account in [&reader, &writer] {
        account.store(store)?;
    }
    let secret = webhook::find_or_create_secret(store, &known)?;
    store.set(&[account_settings::build_own_accounts_setting(&[
        reader.identity.id,
        writer.identity.id,
    ])])?;
    Box::pin(requesters::choose_requesters(
        asked.requesters.clone(),
        &known,
        &reader.settings,
        store,
    ))
    .await?;
    let proposal = criteria_field::propose_criteria_field(&reader.settings, &known.rules.dir);
    Box::pin(proposal).await?;
    match public {
        Some(_) if !place.jira.signs_webhooks() => {
            print_result(&format!(
                "webhook  none: {} does not sign its webhooks, as 10.0 and later do, and what is not signed is refused",
                place.jira
            ));
            print_result("         polls find what happens");
            Ok(())
        }
        Some(url) => webhook::set_up_webhook(&asked, store, &place, &url, &secret).await,
        None => {
            print_result("webhook  none: polls find what happens; --public-url URL makes it instant");
            Ok(())
        }
    }
}

/// Base URL of the site's web pages.
fn find_site_pages(known: &Settings) -> &str {
    match known.site_url.as_str() {
        "" => &known.base_url,
        site => site,
    }
}

/// Site with its pages, its API and its kind of Jira.
struct JiraLocation {
    site: String,
    base_url: String,
    jira: hook::JiraSite,
}

impl JiraLocation {
    /// Place of the site. The gateway of the settings applies only to the site of the settings.
    async fn of(site: &str, asked: &Arguments, known: &Settings) -> anyhow::Result<Self> {
        let bare = |url: &str| url.trim_end_matches('/').to_owned();
        let site = bare(site);
        let base_url = match asked.gateway.as_deref() {
            Some(gateway) => bare(gateway),
            None if bare(find_site_pages(known)) == site => bare(&known.base_url),
            None => site.clone(),
        };
        let is_known = bare(&known.base_url) == base_url;
        let otherwise = if asked.data_center {
            JiraDialect::DataCenter
        } else if is_known {
            known.deployment
        } else {
            JiraDialect::Cloud
        };
        let jira = detect_site(&site, otherwise).await;
        if asked.data_center && jira.dialect == JiraDialect::Cloud {
            bail!("{site} is a Jira Cloud; leave --data-center out");
        }
        if jira.dialect == JiraDialect::DataCenter {
            if asked.gateway.is_some() {
                bail!("{site} is a {jira}, which has no gateway; leave --gateway out");
            }
            print_result(&format!("site     {jira} at {site}"));
        }
        Ok(Self { site, base_url, jira })
    }

    /// Value of `site_url`; empty when it equals `base_url`.
    fn site_url(&self) -> &str {
        if self.site == self.base_url {
            ""
        } else {
            &self.site
        }
    }
}

/// Kind of Jira that the site reports, else `otherwise`. If the site is unreachable, the test of the accounts reports the
/// reason.
async fn detect_site(site: &str, otherwise: JiraDialect) -> hook::JiraSite {
    let asked = Settings {
        base_url: site.to_owned(),
        ..Settings::default()
    };
    match hook::fetch_site(&asked).await {
        Ok(site) => site,
        Err(error) => {
            print_result(&format!(
                "site     {site} did not report which Jira it is ({}); assumed to be a {}",
                format_error_chain(&error),
                hook::JiraSite::unknown(otherwise)
            ));
            hook::JiraSite::unknown(otherwise)
        }
    }
}

/// Site from the user. An address that is no site, or does not answer, is asked again.
async fn ask_for_site(allow_insecure: bool) -> anyhow::Result<String> {
    let mut proposal = None;
    loop {
        let question = "Jira site, e.g. https://acme.atlassian.net";
        let check = move |answer: &str| check_site_address(answer, allow_insecure);
        let site = prompt::ask_checked_text(None, "--site", question, proposal, check).await?;
        let asked = Settings {
            base_url: site.clone(),
            ..Settings::default()
        };
        match hook::fetch_site(&asked).await {
            Err(error @ (Error::Unavailable { .. } | Error::NotFound { .. } | Error::Malformed { .. })) => {
                print_result(&format!(
                    "         {site} does not answer as a Jira: {}",
                    format_error_chain(&error)
                ))
            }
            // A site may refuse this question without credentials; the test of the accounts reports the reason.
            Ok(_) | Err(_) => return Ok(site),
        }
        proposal = Some(site);
    }
}

/// Error for an address that the accounts could not use.
fn check_site_address(answer: &str, allow_insecure: bool) -> Result<(), String> {
    if !is_web_address(answer) {
        return Err(format!(
            "{answer:?} is not an address such as https://acme.atlassian.net"
        ));
    }
    let settings = Settings {
        base_url: answer.to_owned(),
        api_token: "unknown yet".to_owned().into(),
        allow_insecure,
        ..Settings::default()
    };
    settings.check("jira_reader").map_err(|(_, problem)| problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn site_is_encrypted_address() {
        assert_eq!(check_site_address("https://acme.atlassian.net", false), Ok(()));
        assert_eq!(check_site_address("http://127.0.0.1:8080", false), Ok(()));
        assert_eq!(check_site_address("http://jira.acme.example", true), Ok(()));
        for (wrong, part) in [
            ("acme", "is not an address such as"),
            ("ftp://acme.example", "is not an address such as"),
            ("http://jira.acme.example", "sends credentials unencrypted"),
        ] {
            let problem = check_site_address(wrong, false).unwrap_err();
            assert!(problem.contains(part), "{wrong}: {problem}");
        }
    }
}
