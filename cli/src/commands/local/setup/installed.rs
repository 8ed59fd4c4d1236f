//! Installation of the Apps, which the user does on their pages.

use std::time::Duration;

use anyhow::{Context, bail};
use github::{
    Settings,
    registration::{self, Role, Standing},
};
use tokio::time::Instant;

use super::say;

// Interval of the polls for the installation.
const LOOK: Duration = Duration::from_secs(2);
// Time for the user to install both Apps.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

pub(super) fn install_url(app: &str) -> String {
    format!("{app}/installations/new")
}

/// Opens a browser. A failure is not fatal, because the address is printed too.
pub(super) fn open(url: &str) {
    if let Err(error) = webbrowser::open(url) {
        say(&format!("     (no browser was opened: {error})"));
    }
}

/// Waits for the installation of an App, on the organization if one is named. Returns the login of the App's
/// account.
pub(super) async fn installed(
    role: Role,
    settings: &Settings,
    org: Option<&str>,
    opens: bool,
) -> anyhow::Result<Option<String>> {
    if settings.app_id.is_none() {
        say(&format!(
            "{}   has a token in place of an App, which stays",
            role.as_str()
        ));
        return Ok(None);
    }
    let began = Instant::now();
    let mut is_told = false;
    loop {
        let standing = registration::standing(settings).await.with_context(|| {
            format!(
                "the App of [{0}] does not answer; remove app_id and private_key of [{0}] to make another one",
                role.section()
            )
        })?;
        let url = install_url(&standing.html_url);
        match place(&standing, org) {
            Place::Installed(account) => {
                say(&format!(
                    "{}   {} is installed at {account}",
                    role.as_str(),
                    standing.slug
                ));
                return Ok(Some(format!("{}[bot]", standing.slug)));
            }
            Place::Suspended(account) => {
                bail!(
                    "{} is suspended at {account}: let it work again at {url}",
                    standing.slug
                )
            }
            Place::Nowhere if !is_told => {
                say(&format!("install  {url}"));
                if opens {
                    open(&url);
                }
                is_told = true;
            }
            Place::Nowhere => {}
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
enum Place<'a> {
    Installed(&'a str),
    Suspended(&'a str),
    Nowhere,
}

fn place<'a>(standing: &'a Standing, org: Option<&str>) -> Place<'a> {
    let is_ours = |account: &str| org.is_none_or(|org| org.eq_ignore_ascii_case(account));
    let mut ours = standing.installed.iter().filter(|it| is_ours(&it.account));
    match ours.clone().find(|it| !it.is_suspended).or(ours.next()) {
        Some(it) if it.is_suspended => Place::Suspended(&it.account),
        Some(it) => Place::Installed(&it.account),
        None => Place::Nowhere,
    }
}

#[cfg(test)]
mod tests {
    use github::registration::Installed;

    use super::*;

    #[test]
    fn an_app_is_installed_suspended_or_nowhere() {
        let standing = |places: &[(&str, bool)]| Standing {
            slug: "a".to_owned(),
            html_url: String::new(),
            installed: places
                .iter()
                .map(|(account, is_suspended)| Installed {
                    account: (*account).to_owned(),
                    is_suspended: *is_suspended,
                })
                .collect(),
        };
        let both = standing(&[("other", false), ("Acme", true)]);
        assert_eq!(place(&both, Some("acme")), Place::Suspended("Acme"));
        assert_eq!(place(&both, None), Place::Installed("other"));
        assert_eq!(place(&both, Some("third")), Place::Nowhere);
    }
}
