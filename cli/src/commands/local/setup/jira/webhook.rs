//! Webhook of a Jira site: its secret and its registration.

use anyhow::bail;
use bootstrap::rules::RulesBook;
use domain::cause::format_error_chain;
use jira::{Error, JiraDialect, Settings, hook};
use secrecy::{ExposeSecret, SecretString};

use super::{Arguments, JiraLocation, KnownSettings, accounts::check_email, print_result, prompt};
use crate::{
    account_settings::{self, WebhookSender},
    commands::local::setup::store::SetupStore,
    secrets::generate_password,
};

/// First secret of the settings, else a new random one, because ingest accepts no unsigned webhooks.
pub(super) fn find_or_create_secret(
    store: &SetupStore,
    known: &KnownSettings,
) -> anyhow::Result<SecretString> {
    if let Some(secret) = known.ingest.jira_webhook_secrets.first() {
        return Ok(secret.clone().into());
    }
    let secret = SecretString::from(generate_password().0);
    store.set(&[account_settings::build_webhook_secret_setting(
        WebhookSender::Jira,
        &secret,
    )])?;
    Ok(secret)
}

/// Administrator account of the site, if the user has one.
async fn ask_administrator(asked: &Arguments, place: &JiraLocation) -> anyhow::Result<Option<Settings>> {
    let file = asked.admin_token_file.as_deref();
    let (email, question) = match place.jira.dialect {
        JiraDialect::Cloud => {
            let question =
                "Address of a Jira administrator, to register the webhook (empty: you do it yourself)";
            let mut email = prompt::ask_optional_text(asked.admin_email.clone(), question).await?;
            while let Err(problem) = check_email(&email) {
                match (email.is_empty(), &asked.admin_email) {
                    (true, _) => return Ok(None),
                    (false, Some(_)) => bail!("--admin-email: {problem}"),
                    (false, None) => print_result(&format!("         {problem}")),
                }
                email = prompt::ask_optional_text(None, question).await?;
            }
            let question = format!("API token of {email}, used once and not kept");
            (email, question)
        }
        JiraDialect::DataCenter if asked.admin_email.is_some() => {
            bail!("--admin-email: {} has personal access tokens alone", place.jira)
        }
        JiraDialect::DataCenter => {
            let has_one = match (file, prompt::can_ask()) {
                (Some(_), _) => true,
                (None, true) => {
                    prompt::ask_confirmation(
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
        api_token: prompt::ask_secret(file, "--admin-token-file", &question).await?,
        ..Settings::default()
    }))
}

/// Registers the webhook, or prints the steps for the user.
pub(super) async fn set_up_webhook(
    asked: &Arguments,
    store: &SetupStore,
    place: &JiraLocation,
    url: &str,
    secret: &SecretString,
) -> anyhow::Result<()> {
    let site = &place.site;
    let projects = list_project_keys(store)?;
    let wanted = hook::WebhookRegistration {
        url,
        secret: secret.expose_secret(),
        projects: &projects,
    };
    let is_new = loop {
        let Some(admin) = ask_administrator(asked, place).await? else {
            print_result(&format!(
                "webhook  register it at {site}/plugins/servlet/webhooks: {url}"
            ));
            print_result("         events: issue created, issue updated, comment created");
            let place = store.place(WebhookSender::Jira.setting());
            print_result(&format!("         its secret is in {}", place.display()));
            print_result("         without an administrator: docs/start/jira-automation.md");
            return Ok(());
        };
        let (call, error) = match hook::register_webhook(&admin, &wanted).await {
            Ok(is_new) => break is_new,
            Err(refused) => refused,
        };
        // Another administrator repairs a refusal of the account, and nothing else.
        let is_refused = matches!(error, Error::Unauthorized { .. } | Error::Forbidden { .. });
        let problem = format!("{call}: {}", format_error_chain(&error));
        if !(is_refused && prompt::can_ask() && asked.admin_token_file.is_none()) {
            let page = format!("{site}/plugins/servlet/webhooks");
            bail!("{problem}; register the webhook {url} at {page} yourself");
        }
        print_result(&format!("         {problem}"));
    };
    let what = if is_new {
        "registered"
    } else {
        "brought up to date"
    };
    let of = if projects.is_empty() || !place.jira.dialect.filters_webhooks() {
        "all projects".to_owned()
    } else {
        projects.join(", ")
    };
    print_result(&format!("webhook  {what}: {url} for {of}"));
    Ok(())
}

/// Projects of the rules on the default site. `doctor` reports invalid rules.
fn list_project_keys(store: &SetupStore) -> anyhow::Result<Vec<String>> {
    let KnownSettings { rules, .. } = KnownSettings::read(store)?;
    let Ok(book) = RulesBook::read(&rules.dir, &bootstrap::rules::ConfiguredInstances::default()) else {
        return Ok(Vec::new());
    };
    let at_the_site = book.repositories().filter(|rules| rules.jira.instance.is_none());
    let keys = at_the_site.map(|rules| rules.jira.project_key.clone());
    let mut keys: Vec<String> = keys.filter(|key| !key.is_empty()).collect();
    keys.sort();
    keys.dedup();
    Ok(keys)
}
