//! Installation of the Apps, which the user does on their pages.

use std::time::Duration;

use anyhow::{Context, bail};
use github::{
    Settings,
    registration::{self, AppRole, RegisteredApp},
};
use tokio::time::Instant;

use super::print_result;

// Interval of the polls for the installation.
const LOOK: Duration = Duration::from_secs(2);
// Time for the user to install both Apps.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

pub(super) fn build_install_url(app: &str) -> String {
    format!("{app}/installations/new")
}

/// Opens a browser. A failure is not fatal, because the address is printed too.
pub(super) fn open_browser(url: &str) {
    if let Err(error) = webbrowser::open(url) {
        print_result(&format!("     (no browser was opened: {error})"));
    }
}

/// Waits for the installation of an App, on the organization if one is named. Returns the login of the App's
/// account.
pub(super) async fn await_installation(
    role: AppRole,
    settings: &Settings,
    org: Option<&str>,
    opens: bool,
) -> anyhow::Result<Option<String>> {
    if settings.app_id.is_none() {
        print_result(&format!(
            "{}   has a token in place of an App, which stays",
            role.as_str()
        ));
        return Ok(None);
    }
    let began = Instant::now();
    let mut is_reported = false;
    loop {
        let standing = registration::fetch_registered_app(settings).await.with_context(|| {
            format!(
                "the App of [{0}] does not answer; remove app_id and private_key of [{0}] to make another one",
                role.section()
            )
        })?;
        let url = build_install_url(&standing.html_url);
        match find_installation(&standing, org) {
            InstallationStatus::Installed(account) => {
                print_result(&format!(
                    "{}   {} is installed at {account}",
                    role.as_str(),
                    standing.slug
                ));
                return Ok(Some(format!("{}[bot]", standing.slug)));
            }
            InstallationStatus::Suspended(account) => {
                bail!(
                    "{} is suspended at {account}: let it work again at {url}",
                    standing.slug
                )
            }
            InstallationStatus::Nowhere if !is_reported => {
                print_result(&format!("install  {url}"));
                if opens {
                    open_browser(&url);
                }
                is_reported = true;
            }
            InstallationStatus::Nowhere => {}
        }
        anyhow::ensure!(
            began.elapsed() < PATIENCE,
            "{} is not installed: install it at {url}, then run the command again",
            standing.slug
        );
        tokio::time::sleep(LOOK).await;
    }
}

#[derive(Debug, PartialEq, Eq)]
enum InstallationStatus<'a> {
    Installed(&'a str),
    Suspended(&'a str),
    Nowhere,
}

fn find_installation<'a>(standing: &'a RegisteredApp, org: Option<&str>) -> InstallationStatus<'a> {
    let is_ours = |account: &str| org.is_none_or(|org| org.eq_ignore_ascii_case(account));
    let mut ours = standing.installed.iter().filter(|it| is_ours(&it.account));
    // Without an organization every account matches, and one active installation is enough.
    match ours.clone().find(|it| !it.is_suspended).or(ours.next()) {
        Some(it) if it.is_suspended => InstallationStatus::Suspended(&it.account),
        Some(it) => InstallationStatus::Installed(&it.account),
        None => InstallationStatus::Nowhere,
    }
}

#[cfg(test)]
mod tests {
    use github::registration::InstalledAccount;

    use super::*;

    #[test]
    fn an_app_is_installed_suspended_or_nowhere() {
        let standing = |places: &[(&str, bool)]| RegisteredApp {
            slug: "a".to_owned(),
            html_url: String::new(),
            installed: places
                .iter()
                .map(|(account, is_suspended)| InstalledAccount {
                    account: (*account).to_owned(),
                    is_suspended: *is_suspended,
                })
                .collect(),
        };
        let both = standing(&[("other", false), ("Acme", true)]);
        assert_eq!(
            find_installation(&both, Some("acme")),
            InstallationStatus::Suspended("Acme")
        );
        assert_eq!(
            find_installation(&both, None),
            InstallationStatus::Installed("other")
        );
        assert_eq!(
            find_installation(&both, Some("third")),
            InstallationStatus::Nowhere
        );
    }
}
