//! Webhook of a Jira site: its secret and its registration.

use anyhow::bail;
use bootstrap::rules::RulesBook;
use domain::cause::chain;
use jira::{Dialect, Settings, hook};
use secrecy::{ExposeSecret, SecretString};

use super::{Arguments, Known, Place, ask, say};
use crate::{
    account_settings::{self, WebhookSender},
    commands::local::setup::store::Store,
    secrets::new_password,
};

/// First secret of the settings, else a new random one, because ingest accepts no unsigned webhooks.
pub(super) fn secret(store: &Store, known: &Known) -> anyhow::Result<SecretString> {
    if let Some(secret) = known.ingest.jira_webhook_secrets.first() {
        return Ok(secret.clone().into());
    }
    let secret = SecretString::from(new_password().0);
    store.set(&[account_settings::webhook_secret(WebhookSender::Jira, &secret)])?;
    Ok(secret)
}

/// Administrator account of the site, if the user has one.
async fn administrator(asked: &Arguments, place: &Place) -> anyhow::Result<Option<Settings>> {
    let file = asked.admin_token_file.as_deref();
    let (email, question) = match place.jira.dialect {
        Dialect::Cloud => {
            let question =
                "Address of a Jira administrator, to register the webhook (empty: you do it yourself)";
            let email = ask::optional(asked.admin_email.clone(), question).await?;
            if email.is_empty() {
                return Ok(None);
            }
            let question = format!("API token of {email}, used once and not kept");
            (email, question)
        }
        Dialect::DataCenter if asked.admin_email.is_some() => {
            bail!("--admin-email: {} has personal access tokens alone", place.jira)
        }
        Dialect::DataCenter => {
            let has_one = match (file, ask::is_possible()) {
                (Some(_), _) => true,
                (None, true) => {
                    ask::confirm(
                        "Is there an administrator's token to register the webhook with",
                        true,
                    )
                    .await?
                }
                (None, false) => false,
            };
            if !has_one {
                return Ok(None);
            }
            let question = "Personal access token of a Jira administrator, used once and not kept";
            (String::new(), question.to_owned())
        }
    };
    Ok(Some(Settings {
        base_url: place.site.clone(),
        deployment: place.jira.dialect,
        email,
        api_token: ask::secret(file, "--admin-token-file", &question).await?,
        ..Settings::default()
    }))
}

/// Registers the webhook, or prints the steps for the user.
pub(super) async fn set_up(
    asked: &Arguments,
    store: &Store,
    place: &Place,
    url: &str,
    secret: &SecretString,
) -> anyhow::Result<()> {
    let site = &place.site;
    let Some(admin) = administrator(asked, place).await? else {
        say(&format!(
            "webhook  register it at {site}/plugins/servlet/webhooks: {url}"
        ));
        say("         events: issue created, issue updated, comment created");
        let place = store.place(WebhookSender::Jira.setting());
        say(&format!("         its secret is in {}", place.display()));
        return Ok(());
    };
    let projects = projects(store)?;
    let wanted = hook::Webhook {
        url,
        secret: secret.expose_secret(),
        projects: &projects,
    };
    let is_new = hook::register(&admin, &wanted).await.map_err(|(call, error)| {
        let page = format!("{site}/plugins/servlet/webhooks");
        anyhow::anyhow!(
            "{call}: {}; register the webhook {url} at {page} yourself",
            chain(&error)
        )
    })?;
    let what = if is_new {
        "registered"
    } else {
        "brought up to date"
    };
    let of = match projects.is_empty() || !place.jira.dialect.filters_webhooks() {
        true => "all projects".to_owned(),
        false => projects.join(", "),
    };
    say(&format!("webhook  {what}: {url} for {of}"));
    Ok(())
}

/// Projects of the rules on the default site. `doctor` reports invalid rules.
fn projects(store: &Store) -> anyhow::Result<Vec<String>> {
    let Known { rules, .. } = Known::read(store)?;
    let Ok(book) = RulesBook::read(&rules.dir, &bootstrap::rules::Connections::default()) else {
        return Ok(Vec::new());
    };
    let at_the_site = book.repositories().filter(|rules| rules.jira.instance.is_none());
    let keys = at_the_site.map(|rules| rules.jira.project_key.clone());
    let mut keys: Vec<String> = keys.filter(|key| !key.is_empty()).collect();
    keys.sort();
    keys.dedup();
    Ok(keys)
}
