//! The two accounts at a Jira site. The site tests each one, and the terminal asks again for a refused one.

use std::path::PathBuf;

use anyhow::{Context, bail};
use domain::{TrackerAccount, cause::format_error_chain};
use jira::{Error, JiraDialect, JiraReader, JiraWriter, Settings};
use secrecy::ExposeSecret;

use super::{JiraLocation, print_result, prompt};
use crate::{account_settings, commands::local::setup::store::SetupStore};

/// Role of one of the two accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccountRole {
    Reader,
    Writer,
}

impl AccountRole {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Writer => "writer",
        }
    }

    const fn section(self) -> &'static str {
        match self {
            Self::Reader => "jira_reader",
            Self::Writer => "jira_writer",
        }
    }

    async fn fetch_identity(self, settings: &Settings) -> Result<TrackerAccount, Error> {
        match self {
            Self::Reader => JiraReader::new(settings)?.myself().await,
            Self::Writer => JiraWriter::new(settings)?.myself().await,
        }
    }
}

/// Arguments for one account.
pub(super) struct AccountArguments {
    pub(super) email: Option<String>,
    pub(super) token: Option<PathBuf>,
    pub(super) expires: Option<String>,
}

/// Account that the site accepted.
pub(super) struct ConnectedAccount {
    pub(super) settings: Settings,
    pub(super) identity: TrackerAccount,
    role: AccountRole,
    /// Previous settings of the account.
    before: Settings,
    /// True for a new account, which must be stored.
    is_new: bool,
}

impl ConnectedAccount {
    /// Stores a new account.
    pub(super) fn store(&self, store: &SetupStore) -> anyhow::Result<()> {
        if !self.is_new {
            return Ok(());
        }
        store.set(&account_settings::build_jira_account_settings(
            self.role.section(),
            &self.settings,
            &self.before,
        ))
    }
}

/// Account of the settings, unless the arguments name another one. `other` is the account of the other role, which must differ.
/// The terminal asks for other credentials when the site refuses the account.
pub(super) async fn connect_account(
    role: AccountRole,
    known: &Settings,
    place: &JiraLocation,
    given: &AccountArguments,
    other: Option<&TrackerAccount>,
) -> anyhow::Result<ConnectedAccount> {
    let is_cloud = place.jira.dialect == JiraDialect::Cloud;
    if given.email.is_some() && !is_cloud {
        bail!(
            "--{}-email: {} has personal access tokens alone",
            role.as_str(),
            place.jira
        );
    }
    let is_known = !known.api_token.expose_secret().trim().is_empty()
        && known.base_url.trim_end_matches('/') == place.base_url
        && known.deployment == place.jira.dialect;
    // An unchanged account is tested, but not stored again.
    let mut is_new = !is_known || given.email.is_some() || given.token.is_some() || given.expires.is_some();
    let mut settings = if is_new {
        ask_account(role, known, place, given, &known.email).await?
    } else {
        known.clone()
    };
    let can_ask_again = prompt::can_ask() && (given.token.is_none() || (is_cloud && given.email.is_none()));
    let identity = loop {
        let problem = match role.fetch_identity(&settings).await {
            Ok(found) if other.is_some_and(|other| other.id == found.id) => anyhow::anyhow!(
                "reader and writer are both {}; they must be two accounts",
                found.display_name
            ),
            Ok(found) => break found,
            // Other credentials do not repair a connection.
            Err(error) if !matches!(error, Error::Unauthorized { .. } | Error::Forbidden { .. }) => {
                return Err(error).with_context(|| describe_account(role, &settings));
            }
            Err(error) => anyhow::Error::new(error).context(describe_account(role, &settings)),
        };
        if !can_ask_again {
            return Err(problem);
        }
        print_result(&format!("         {}", format_error_chain(problem.as_ref())));
        settings = ask_account(role, known, place, given, &settings.email).await?;
        is_new = true;
    };
    if is_new {
        settings.expires = ask_for_day(given.expires.clone()).await?;
    }
    print_result(&format!(
        "{}   {} at {}",
        role.as_str(),
        identity.display_name,
        settings.base_url
    ));
    Ok(ConnectedAccount {
        settings,
        identity,
        role,
        before: known.clone(),
        is_new,
    })
}

/// Credentials from the arguments, else from the user.
async fn ask_account(
    role: AccountRole,
    known: &Settings,
    place: &JiraLocation,
    given: &AccountArguments,
    proposal: &str,
) -> anyhow::Result<Settings> {
    let name = role.as_str();
    let (email, question) = match place.jira.dialect {
        JiraDialect::Cloud => {
            let question = format!("Address of the account that is the {name}");
            let proposal = Some(proposal.to_owned()).filter(|address| !address.is_empty());
            let flag = format!("--{name}-email");
            let email =
                prompt::ask_checked_text(given.email.clone(), &flag, &question, proposal, check_email)
                    .await?;
            let question = format!("API token of {email}");
            (email, question)
        }
        JiraDialect::DataCenter => {
            let question = format!("Personal access token of the account that is the {name}");
            (String::new(), question)
        }
    };
    let flag = format!("--{name}-token-file");
    let settings = Settings {
        base_url: place.base_url.clone(),
        site_url: place.site_url().to_owned(),
        deployment: place.jira.dialect,
        email,
        api_token: prompt::ask_secret(given.token.as_deref(), &flag, &question).await?,
        expires: given.expires.clone().unwrap_or_default(),
        allow_insecure: known.allow_insecure,
    };
    settings
        .check(role.section())
        .map_err(|(key, problem)| anyhow::anyhow!("{key}: {problem}"))?;
    Ok(settings)
}

/// Error for a text that is not a mail address.
pub(super) fn check_email(answer: &str) -> Result<(), String> {
    let is_address = answer
        .split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !answer.contains(' '));
    if is_address {
        Ok(())
    } else {
        Err(format!(
            "{answer:?} is not a mail address such as journeyman-reader@acme.example"
        ))
    }
}

/// Day from the flag or from the user; an invalid answer is asked again.
async fn ask_for_day(given: Option<String>) -> anyhow::Result<String> {
    let question = "Day on which this token ends, e.g. 2027-01-31 (empty: not known)";
    let is_given = given.is_some();
    let mut answer = prompt::ask_optional_text(given, question).await?;
    // The check of the account has rejected an invalid flag.
    while !is_given && !answer.is_empty() && !jira::is_day(&answer) {
        print_result(&format!(
            "         {answer:?} is not a day of the form 2027-01-31"
        ));
        answer = prompt::ask_optional_text(None, question).await?;
    }
    Ok(answer)
}

/// Context of an error, with the page on which tokens are made.
fn describe_account(role: AccountRole, settings: &Settings) -> String {
    let (name, site) = (role.as_str(), &settings.base_url);
    let page = match settings.deployment {
        JiraDialect::Cloud => "https://id.atlassian.com/manage-profile/security/api-tokens".to_owned(),
        JiraDialect::DataCenter => format!("Personal Access Tokens at {site}/secure/ViewProfile.jspa"),
    };
    format!("the {name} account at {site} (its tokens: {page})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_address_has_name_and_host() {
        assert_eq!(check_email("ada@acme.example"), Ok(()));
        for wrong in ["", "ada", "@acme.example", "ada@", "ada lovelace@acme.example"] {
            assert!(check_email(wrong).is_err(), "{wrong}");
        }
    }
}
