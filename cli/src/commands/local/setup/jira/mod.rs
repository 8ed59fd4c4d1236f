//! The two accounts of a Jira site, and its webhook.

mod requesters;
mod webhook;

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use domain::{TrackerAccount, cause::format_error_chain};
use jira::{JiraDialect, JiraReader, JiraWriter, Settings, hook};
use secrecy::ExposeSecret;

use super::{KnownSettings, build_hook_url, print_result, prompt, store::SetupStore};
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

/// One of the two accounts.
struct RequestedAccount {
    section: &'static str,
    settings: Settings,
    /// Previous settings of the account.
    before: Settings,
    /// True for a new account, which must be stored.
    is_new: bool,
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
        (None, _) => ask_for_site().await?,
    };
    let place = JiraLocation::of(&site, &asked, &known.jira_reader).await?;
    let given = AccountArguments {
        email: asked.reader_email.clone(),
        token: asked.reader_token_file.clone(),
        expires: asked.reader_expires.clone(),
    };
    let reader = resolve_account("reader", &known.jira_reader, &place, given).await?;
    let found = JiraReader::new(&reader.settings)?.myself().await;
    let reads = report_account("reader", found, &reader.settings)?;
    let given = AccountArguments {
        email: asked.writer_email.clone(),
        token: asked.writer_token_file.clone(),
        expires: asked.writer_expires.clone(),
    };
    let writer = resolve_account("writer", &known.jira_writer, &place, given).await?;
    let found = JiraWriter::new(&writer.settings)?.myself().await;
    let writes = report_account("writer", found, &writer.settings)?;
    if reads.id == writes.id {
        bail!(
            "reader and writer are both {}; they must be two accounts",
            reads.display_name
        );
    }
    // Both accounts are tested before the first one is stored.
    for account in [&reader, &writer] {
        store_account(store, account)?;
    }
    let secret = webhook::find_or_create_secret(store, &known)?;
    store.set(&[account_settings::build_own_accounts_setting(&[
        reads.id, writes.id,
    ])])?;
    Box::pin(requesters::choose_requesters(
        asked.requesters.clone(),
        &known,
        &reader.settings,
        store,
    ))
    .await?;
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
        let otherwise = match asked.data_center {
            true => JiraDialect::DataCenter,
            false if is_known => known.deployment,
            false => JiraDialect::Cloud,
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
        match self.site == self.base_url {
            true => "",
            false => &self.site,
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

/// Arguments for one account.
struct AccountArguments {
    email: Option<String>,
    token: Option<PathBuf>,
    expires: Option<String>,
}

/// Account of the settings, unless the arguments name another one.
async fn resolve_account(
    role: &str,
    known: &Settings,
    place: &JiraLocation,
    given: AccountArguments,
) -> anyhow::Result<RequestedAccount> {
    let AccountArguments {
        email,
        token,
        expires,
    } = given;
    let section = match role {
        "reader" => "jira_reader",
        _ => "jira_writer",
    };
    let is_known = !known.api_token.expose_secret().trim().is_empty()
        && known.base_url.trim_end_matches('/') == place.base_url
        && known.deployment == place.jira.dialect;
    // An unchanged account is tested, but not stored again.
    if is_known && email.is_none() && token.is_none() && expires.is_none() {
        return Ok(RequestedAccount {
            section,
            settings: known.clone(),
            before: known.clone(),
            is_new: false,
        });
    }
    let flag = format!("--{role}-email");
    let (email, question) = match place.jira.dialect {
        JiraDialect::Cloud => {
            let question = format!("Address of the account that is the {role}");
            let email = prompt::ask_text(email, &flag, &question).await?;
            let question = format!("API token of {email}");
            (email, question)
        }
        JiraDialect::DataCenter if email.is_some() => {
            bail!("{flag}: {} has personal access tokens alone", place.jira)
        }
        JiraDialect::DataCenter => {
            let question = format!("Personal access token of the account that is the {role}");
            (String::new(), question)
        }
    };
    let flag = format!("--{role}-token-file");
    let api_token = prompt::ask_secret(token.as_deref(), &flag, &question).await?;
    let question = "Day on which this token ends, e.g. 2027-01-31 (empty: not known)";
    let settings = Settings {
        base_url: place.base_url.clone(),
        site_url: place.site_url().to_owned(),
        deployment: place.jira.dialect,
        email,
        api_token,
        expires: ask_for_day(expires, question).await?,
        allow_insecure: known.allow_insecure,
    };
    settings
        .check(section)
        .map_err(|(key, problem)| anyhow::anyhow!("{key}: {problem}"))?;
    Ok(RequestedAccount {
        section,
        settings,
        before: known.clone(),
        is_new: true,
    })
}

/// Day from the flag or from the user; an invalid answer is asked again.
async fn ask_for_day(given: Option<String>, question: &str) -> anyhow::Result<String> {
    let is_given = given.is_some();
    let mut answer = prompt::ask_optional_text(given, question).await?;
    // The check of the account rejects an invalid flag.
    while !is_given && !answer.is_empty() && !jira::is_day(&answer) {
        print_result(&format!(
            "         {answer:?} is not a day of the form 2027-01-31"
        ));
        answer = prompt::ask_optional_text(None, question).await?;
    }
    Ok(answer)
}

/// Site from the user; an invalid address is asked again.
async fn ask_for_site() -> anyhow::Result<String> {
    loop {
        let answer = prompt::ask_text(None, "--site", "Jira site, e.g. https://acme.atlassian.net").await?;
        let url = url::Url::parse(&answer).ok();
        if url.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host()) {
            return Ok(answer);
        }
        print_result(&format!(
            "         {answer:?} is not an address such as https://acme.atlassian.net"
        ));
    }
}

/// Identity of the account. The error contains the page on which its tokens are made.
fn report_account(
    role: &str,
    found: Result<TrackerAccount, jira::Error>,
    settings: &Settings,
) -> anyhow::Result<TrackerAccount> {
    let account = found.with_context(|| {
        let site = &settings.base_url;
        let page = match settings.deployment {
            JiraDialect::Cloud => "https://id.atlassian.com/manage-profile/security/api-tokens".to_owned(),
            JiraDialect::DataCenter => format!("Personal Access Tokens at {site}/secure/ViewProfile.jspa"),
        };
        format!("the {role} account at {site} (its tokens: {page})")
    })?;
    print_result(&format!(
        "{role}   {} at {}",
        account.display_name, settings.base_url
    ));
    Ok(account)
}

fn store_account(store: &SetupStore, asked: &RequestedAccount) -> anyhow::Result<()> {
    if !asked.is_new {
        return Ok(());
    }
    store.set(&account_settings::build_jira_account_settings(
        asked.section,
        &asked.settings,
        &asked.before,
    ))
}
