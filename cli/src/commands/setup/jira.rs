//! The two accounts of a Jira site, and its webhook.

use std::path::PathBuf;

use anyhow::{Context, bail};
use bootstrap::rules::RulesBook;
use clap::Args;
use domain::{Account, cause::chain};
use jira::{Reader, Settings, Writer, hook};
use secrecy::{ExposeSecret, SecretString};

use super::{
    Known, ask, hook_url, say,
    store::{Store, in_file},
};
use crate::secrets::new_password;

const WEBHOOK_SECRETS: &str = "jira_webhook_secrets";

/// Name the two Jira accounts, try them, and register the webhook; what works already stays
#[derive(Debug, Default, Args)]
pub(super) struct Arguments {
    /// The site, e.g. `https://acme.atlassian.net`
    #[arg(long, value_name = "URL")]
    site: Option<String>,
    /// Where the API is, when the tokens have scopes: `https://api.atlassian.com/ex/jira/<id>` [default: the site]
    #[arg(long, value_name = "URL")]
    gateway: Option<String>,
    /// Address of the account that reads
    #[arg(long, value_name = "EMAIL")]
    reader_email: Option<String>,
    /// File with its API token
    #[arg(long, value_name = "FILE")]
    reader_token_file: Option<PathBuf>,
    /// Day on which that token ends, e.g. 2027-01-31
    #[arg(long, value_name = "DAY")]
    reader_expires: Option<String>,
    /// Address of the account that writes
    #[arg(long, value_name = "EMAIL")]
    writer_email: Option<String>,
    /// File with its API token
    #[arg(long, value_name = "FILE")]
    writer_token_file: Option<PathBuf>,
    /// Day on which that token ends
    #[arg(long, value_name = "DAY")]
    writer_expires: Option<String>,
    /// Address of Journeyman for the webhook; without it polls find what happens
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Address of an administrator, who registers the webhook; without one you register it yourself
    #[arg(long, value_name = "EMAIL", requires = "public_url")]
    admin_email: Option<String>,
    /// File with the administrator's API token: used once, and not kept
    #[arg(long, value_name = "FILE", requires = "admin_email")]
    admin_token_file: Option<PathBuf>,
}

/// One of the two accounts.
struct Asked {
    section: &'static str,
    settings: Settings,
    /// `site_url` and `expires` of the account before it.
    before: (String, String),
    /// Whether it was given now, and has to be kept.
    is_new: bool,
}

pub(super) async fn run(asked: Arguments, store: &Store) -> anyhow::Result<()> {
    let known = Known::read(store)?;
    let public = asked
        .public_url
        .as_deref()
        .map(|public| hook_url(public, "Jira"))
        .transpose()?;
    let site = match (&asked.site, pages(&known.jira_reader)) {
        (None, known) if !known.is_empty() => known.to_owned(),
        _ => {
            ask::text(
                asked.site.clone(),
                "--site",
                "Jira site, e.g. https://acme.atlassian.net",
            )
            .await?
        }
    };
    let place = Place::of(&site, asked.gateway.as_deref(), &known.jira_reader);
    let given = Given {
        email: asked.reader_email.clone(),
        token: asked.reader_token_file.clone(),
        expires: asked.reader_expires.clone(),
    };
    let reader = account("reader", &known.jira_reader, &place, given).await?;
    let found = Reader::new(&reader.settings)?.myself().await;
    let reads = tried("reader", found, &reader.settings).await?;
    let given = Given {
        email: asked.writer_email.clone(),
        token: asked.writer_token_file.clone(),
        expires: asked.writer_expires.clone(),
    };
    let writer = account("writer", &known.jira_writer, &place, given).await?;
    let found = Writer::new(&writer.settings)?.myself().await;
    let writes = tried("writer", found, &writer.settings).await?;
    if reads.id == writes.id {
        bail!(
            "reader and writer are both {}; they must be two accounts",
            reads.display_name
        );
    }
    for account in [&reader, &writer] {
        keep(store, account)?;
    }
    let secret = webhook_secret(store, &known)?;
    store.add_own_accounts(&[reads.id, writes.id])?;
    match public {
        Some(url) => webhook(&asked, store, &place.site, &url, &secret).await,
        None => {
            say("webhook  none: polls find what happens; --public-url URL makes it instant");
            Ok(())
        }
    }
}

/// Where people see the site of these settings.
fn pages(known: &Settings) -> &str {
    match known.site_url.as_str() {
        "" => &known.base_url,
        site => site,
    }
}

/// A site: its pages, and where its API is.
struct Place {
    site: String,
    base_url: String,
}

impl Place {
    /// The gateway of the settings stays that of their site.
    fn of(site: &str, gateway: Option<&str>, known: &Settings) -> Self {
        let bare = |url: &str| url.trim_end_matches('/').to_owned();
        let site = bare(site);
        let base_url = match gateway {
            Some(gateway) => bare(gateway),
            None if bare(pages(known)) == site => bare(&known.base_url),
            None => site.clone(),
        };
        Self { site, base_url }
    }

    /// What the settings say beside `base_url`.
    fn site_url(&self) -> &str {
        match self.site == self.base_url {
            true => "",
            false => &self.site,
        }
    }
}

/// What the command line says of an account.
struct Given {
    email: Option<String>,
    token: Option<PathBuf>,
    expires: Option<String>,
}

/// The account of the settings, unless another one is given.
async fn account(role: &str, known: &Settings, place: &Place, given: Given) -> anyhow::Result<Asked> {
    let Given {
        email,
        token,
        expires,
    } = given;
    let section = match role {
        "reader" => "jira_reader",
        _ => "jira_writer",
    };
    let is_known = !known.api_token.expose_secret().trim().is_empty()
        && known.base_url.trim_end_matches('/') == place.base_url;
    if is_known && email.is_none() && token.is_none() && expires.is_none() {
        return Ok(Asked {
            section,
            settings: known.clone(),
            before: (known.site_url.clone(), known.expires.clone()),
            is_new: false,
        });
    }
    let flag = format!("--{role}-email");
    let email = ask::text(
        email,
        &flag,
        &format!("Address of the account that is the {role}"),
    )
    .await?;
    let flag = format!("--{role}-token-file");
    let api_token = ask::secret(token.as_deref(), &flag, &format!("API token of {email}")).await?;
    let question = "Day on which this token ends, e.g. 2027-01-31 (empty: not known)";
    let settings = Settings {
        base_url: place.base_url.clone(),
        site_url: place.site_url().to_owned(),
        email,
        api_token,
        expires: ask::optional(expires, question).await?,
        allow_insecure: known.allow_insecure,
    };
    settings
        .check(section)
        .map_err(|(key, problem)| anyhow::anyhow!("{key}: {problem}"))?;
    Ok(Asked {
        section,
        settings,
        before: (known.site_url.clone(), known.expires.clone()),
        is_new: true,
    })
}

/// Who the account is; a site that is no Jira Cloud is told as that.
async fn tried(
    role: &str,
    found: Result<Account, jira::Error>,
    settings: &Settings,
) -> anyhow::Result<Account> {
    if matches!(hook::is_cloud(settings).await, Ok(false)) {
        bail!(
            "{} is a Jira Data Center; Journeyman speaks with Jira Cloud",
            settings.base_url
        );
    }
    let account = found.with_context(|| {
        let page = "https://id.atlassian.com/manage-profile/security/api-tokens";
        format!("the {role} account at {} (its tokens: {page})", settings.base_url)
    })?;
    say(&format!(
        "{role}   {} at {}",
        account.display_name, settings.base_url
    ));
    Ok(account)
}

fn keep(store: &Store, asked: &Asked) -> anyhow::Result<()> {
    if !asked.is_new {
        return Ok(());
    }
    let Settings {
        base_url,
        site_url,
        email,
        api_token,
        expires,
        ..
    } = &asked.settings;
    let section = asked.section;
    let path = store.keep(&format!("{section}.token"), api_token)?;
    let mut settings = vec![
        (section, "base_url", base_url.as_str().into()),
        (section, "email", email.as_str().into()),
        (section, "api_token", in_file(&path)),
    ];
    // What is empty is written only over what was there.
    for (key, value, before) in [
        ("site_url", site_url, &asked.before.0),
        ("expires", expires, &asked.before.1),
    ] {
        if value != before {
            settings.push((section, key, value.as_str().into()));
        }
    }
    store.set(settings)
}

/// The newest secret of the settings; a random one where there is none, as ingest takes no unsigned webhooks.
fn webhook_secret(store: &Store, known: &Known) -> anyhow::Result<SecretString> {
    if let Some(secret) = known.ingest.jira_webhook_secrets.first() {
        return Ok(secret.clone().into());
    }
    let secret = SecretString::from(new_password().0);
    let path = store.keep(WEBHOOK_SECRETS, &secret)?;
    store.set(vec![("ingest", WEBHOOK_SECRETS, in_file(&path))])?;
    Ok(secret)
}

async fn webhook(
    asked: &Arguments,
    store: &Store,
    site: &str,
    url: &str,
    secret: &SecretString,
) -> anyhow::Result<()> {
    let question = "Address of a Jira administrator, to register the webhook (empty: you do it yourself)";
    let email = ask::optional(asked.admin_email.clone(), question).await?;
    if email.is_empty() {
        say(&format!(
            "webhook  register it at {site}/plugins/servlet/webhooks: {url}"
        ));
        say("         events: issue created, issue updated, comment created");
        let place = store.place(WEBHOOK_SECRETS);
        say(&format!("         its secret is in {}", place.display()));
        return Ok(());
    }
    let question = format!("API token of {email}, used once and not kept");
    let file = asked.admin_token_file.as_deref();
    let api_token = ask::secret(file, "--admin-token-file", &question).await?;
    let admin = Settings {
        base_url: site.to_owned(),
        email,
        api_token,
        ..Settings::default()
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
    let of = match projects.is_empty() {
        true => "all projects".to_owned(),
        false => projects.join(", "),
    };
    say(&format!("webhook  {what}: {url} for {of}"));
    Ok(())
}

/// The projects of the rules at the default site; what is wrong with rules `doctor` says.
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
