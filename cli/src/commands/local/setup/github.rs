//! The two GitHub Apps: registered from manifests by one click each, then installed.

use anyhow::{Context, bail};
use clap::Args;
use domain::{CommitAuthor, cause::format_error_chain};
use github::{
    Settings,
    registration::{self, AppRole, NewApp},
};
use secrecy::SecretString;
use tokio::sync::{mpsc, oneshot};
use url::Url;

use super::{
    KnownSettings, build_hook_url,
    installation::{await_installation, build_install_url, open_browser},
    page::{ManifestPage, ReturnedCode},
    print_result, prompt,
    store::SetupStore,
};
use crate::{
    account_settings::{self, GithubApp, WebhookSender},
    secrets::generate_password,
};

/// Register and install the two GitHub Apps, by a click each; continues an incomplete setup
#[derive(Debug, Default, Args)]
pub(super) struct Arguments {
    /// Organization that owns the Apps
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// Host of a GitHub Enterprise Server [default: github.com, or that of the settings]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Address of Journeyman for webhooks; without it polls find the events
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Only print addresses, open no browser
    #[arg(long)]
    no_browser: bool,
}

/// Addresses of a GitHub server.
#[derive(Debug, PartialEq, Eq)]
struct GithubServer {
    api_url: String,
    git_url: String,
    /// Origin of its web pages.
    web: String,
}

impl GithubServer {
    /// Addresses of the given host, or those of the settings.
    fn of(host: Option<&str>, known: &Settings) -> anyhow::Result<Self> {
        let (api_url, git_url) = match host {
            None => (known.api_url.clone(), known.git_url.clone()),
            Some("github.com") => {
                let usual = Settings::default();
                (usual.api_url, usual.git_url)
            }
            Some(host) => {
                let git_url = format!("https://{host}");
                let is_host = Url::parse(&git_url).is_ok_and(|url| {
                    url.path() == "/"
                        && url.query().is_none()
                        && url.username().is_empty()
                        && !host.ends_with('/')
                });
                anyhow::ensure!(
                    is_host,
                    "--host {host}: give the name alone, e.g. ghe.acme.example"
                );
                // GitHub Enterprise Cloud with data residency (ghe.com) serves the API on a subdomain, GitHub
                // Enterprise Server below a path.
                let api_url = if host.ends_with(".ghe.com") {
                    format!("https://api.{host}")
                } else {
                    format!("https://{host}/api/v3")
                };
                (api_url, git_url)
            }
        };
        let web = Url::parse(&git_url).with_context(|| format!("{git_url} is not a URL"))?;
        Ok(Self {
            api_url,
            web: web.origin().ascii_serialization(),
            git_url,
        })
    }
}

pub(super) async fn set_up_github(asked: Arguments, store: &SetupStore) -> anyhow::Result<()> {
    let known = KnownSettings::read(store)?;
    let server = GithubServer::of(asked.host.as_deref(), &known.github_reader)?;
    let hook = asked
        .public_url
        .as_deref()
        .map(|public| build_hook_url(public, "GitHub"))
        .transpose()?;
    let opens = !asked.no_browser;
    let mut missing = Vec::new();
    for role in AppRole::ALL {
        if select_account_settings(role, &known).is_without_account()
            && !adopt_stored_app(role, store, &server)?
        {
            missing.push(role);
        }
    }
    let needs_org = !missing.is_empty() || asked.org.is_some();
    let org = if needs_org {
        Some(Box::pin(ask_org(asked.org, &server)).await?)
    } else {
        None
    };
    // The page is served until both Apps are installed, because its last state links to the installation.
    let _page = match (missing.as_slice(), &org) {
        ([], _) | (_, None) => None,
        (missing, Some(org)) => {
            let made = AppRegistration {
                store,
                server: &server,
                org,
                hook: hook.as_deref(),
                opens,
            };
            Some(made.all(missing).await?)
        }
    };
    let known = KnownSettings::read(store)?;
    if known.ingest.github_webhook_secrets.is_empty() {
        // Ingest refuses unsigned webhooks and requires a secret, even while no webhook exists.
        keep_webhook_secret(store, &generate_password().0.into())?;
    }
    // A newly registered reader App has its webhook from the manifest.
    if let (Some(url), false) = (&hook, missing.contains(&AppRole::Reader)) {
        set_hook_address(&KnownSettings::read(store)?, url, store).await?;
    }
    let opens = opens && missing.is_empty();
    let mut own = Vec::new();
    for role in AppRole::ALL {
        own.extend(
            await_installation(role, select_account_settings(role, &known), org.as_deref(), opens).await?,
        );
    }
    store.set(&[account_settings::build_own_accounts_setting(&own)])?;
    set_commit_author(&KnownSettings::read(store)?, &server, store).await
}

/// Organization from the flag or from the user. A name that GitHub does not know is asked again.
async fn ask_org(given: Option<String>, server: &GithubServer) -> anyhow::Result<String> {
    let is_given = given.is_some();
    let mut given = given;
    loop {
        let question = "Organization that owns the Apps";
        let org = prompt::ask_checked_text(given.take(), "--org", question, None, check_org_name).await?;
        // A server that requires a login refuses the question. Its page for the App then reports an unknown name.
        if !matches!(registration::has_account(&server.api_url, &org).await, Ok(false)) {
            return Ok(org);
        }
        let problem = format!("{} has no organization {org:?}", server.web);
        anyhow::ensure!(!is_given, "--org: {problem}");
        print_result(&format!("         {problem}"));
    }
}

fn check_org_name(answer: &str) -> Result<(), String> {
    if registration::is_valid_owner(answer) {
        Ok(())
    } else {
        Err(format!("{answer:?} is not the name of an organization"))
    }
}

/// Sets the writer App's account as the author of commits, unless the settings name one.
async fn set_commit_author(
    known: &KnownSettings,
    server: &GithubServer,
    store: &SetupStore,
) -> anyhow::Result<()> {
    if let Some(author) = &known.rules.commit_author {
        print_result(&format!("author   {author}"));
        return Ok(());
    }
    let writer = &known.github_writer;
    if writer.app_id.is_none() {
        print_result("author   commits name no account: a token is no App. Set rules.commit_author");
        return Ok(());
    }
    let slug = registration::fetch_registered_app(writer).await?.slug;
    let number = registration::fetch_bot_id(&server.api_url, &slug).await;
    let host = Url::parse(&server.web).ok();
    let host = host.as_ref().and_then(Url::host_str).unwrap_or_default();
    let author = match number {
        Ok(number) => CommitAuthor::of_github(host, number, &format!("{slug}[bot]")),
        Err(error) => {
            let error = format_error_chain(&error);
            print_result(&format!(
                "author   GitHub did not return the number of {slug}[bot] ({error}): set rules.commit_author"
            ));
            return Ok(());
        }
    };
    let Some(author) = author else { return Ok(()) };
    store.set(&[account_settings::build_commit_author_setting(&author)])?;
    print_result(&format!("author   commits are by {author}"));
    Ok(())
}

fn select_account_settings(role: AppRole, known: &KnownSettings) -> &Settings {
    match role {
        AppRole::Reader => &known.github_reader,
        AppRole::Writer => &known.github_writer,
    }
}

/// Context of the registrations.
struct AppRegistration<'a> {
    store: &'a SetupStore,
    server: &'a GithubServer,
    org: &'a str,
    hook: Option<&'a str>,
    opens: bool,
}

impl AppRegistration<'_> {
    /// Registers the Apps one after the other in one browser page. Returns the page.
    async fn all(&self, roles: &[AppRole]) -> anyhow::Result<ManifestPage> {
        let mut page = ManifestPage::open().await?;
        let mut typed = if self.opens {
            None
        } else {
            Some(prompt::read_typed_lines())
        };
        let mut waiting: Option<oneshot::Sender<()>> = None;
        let mut links = Vec::new();
        for (place, role) in roles.iter().enumerate() {
            self.show(&page, *role);
            match waiting.take() {
                // The browser may be closed; the user can open the page again.
                Some(seen) => {
                    let _ = seen.send(());
                }
                None => self.invite(&page.url()),
            }
            let returned = self.code(&mut page, *role, &mut typed).await?;
            let made = registration::convert_manifest_code(&self.server.api_url, &returned.code).await;
            let made = made
                .map_err(anyhow::Error::from)
                .and_then(|app| self.check_owner(&app).map(|()| app))
                .and_then(|app| self.keep(*role, &app).map(|path| (app, path)));
            let (app, path) = made.inspect_err(|_| {
                page.show(
                    "This step failed. The terminal shows the reason; run the command again.",
                    &[],
                );
            })?;
            let (step, steps) = (place + 1, roles.len());
            print_result(&format!(
                "{step}/{steps} {}   created {:?} (id {}), key saved in {path}",
                role.as_str(),
                app.slug,
                app.id,
            ));
            links.push((format!("Install {}", app.slug), build_install_url(&app.html_url)));
            waiting = Some(returned.seen);
        }
        page.show(
            "Both Apps are there. Install each on the same repositories:",
            &links,
        );
        // The browser may be closed by now, and then nothing waits for the signal.
        let _ = waiting.map(|seen| seen.send(()));
        Ok(page)
    }

    /// Waits for the code, from the callback or pasted by a user whose browser is on another machine.
    async fn code(
        &self,
        page: &mut ManifestPage,
        role: AppRole,
        typed: &mut Option<mpsc::Receiver<String>>,
    ) -> anyhow::Result<ReturnedCode> {
        let Some(typed) = typed.as_mut().filter(|_| prompt::can_ask()) else {
            return page.returned().await;
        };
        let file = self
            .store
            .leave(&format!("setup-{}.html", role.as_str()), &page.form())?;
        let file = file.display();
        print_result(&format!(
            "     or open {file} on another machine, and paste the address that it leads to:"
        ));
        loop {
            // Both branches are cancel safe: neither a line nor a callback is lost when the other one wins.
            let line = tokio::select! {
                returned = page.returned() => return returned,
                Some(line) = typed.recv() => line,
            };
            match page.pasted(&line) {
                Some(returned) => return Ok(returned),
                None => print_result(
                    "     that is not the address with code and state, e.g. http://127.0.0.1:41877/callback?code=…",
                ),
            }
        }
    }

    fn show(&self, page: &ManifestPage, role: AppRole) {
        let home = format!("{}/{}", self.server.web, self.org);
        let manifest = registration::build_manifest(role, self.org, &home, &page.callback(), self.hook);
        let action = format!("{}/organizations/{}/settings/apps/new", self.server.web, self.org);
        page.send(&action, &manifest);
    }

    fn invite(&self, url: &str) {
        let port = Url::parse(url)
            .ok()
            .and_then(|url| url.port())
            .unwrap_or_default();
        print_result(&format!(
            "open {url} in a browser on this machine and confirm both Apps"
        ));
        if !self.opens {
            print_result(&format!(
                "     from another machine, first: ssh -L {port}:127.0.0.1:{port} <this machine>"
            ));
        } else {
            open_browser(url);
        }
    }

    /// Checks the owner of the App. A code from another person would register their App, and they would know its key.
    fn check_owner(&self, app: &NewApp) -> anyhow::Result<()> {
        let owner = app.owner();
        if owner.eq_ignore_ascii_case(self.org) {
            return Ok(());
        }
        bail!(
            "the App {:?} that came back is of {owner:?} and not of {:?}: nothing of it was kept; delete it if it is yours, and run \
             the command again",
            app.slug,
            self.org
        )
    }

    /// Stores the App. The key goes first, because GitHub returns it only once. The file name contains the App id, so
    /// that a later setup finds the key even when the settings could not be written.
    fn keep(&self, role: AppRole, app: &NewApp) -> anyhow::Result<String> {
        if let Some(secret) = &app.webhook_secret {
            keep_webhook_secret(self.store, secret)?;
        }
        store_app(self.store, role, app.id, Some(&app.pem), self.server)?;
        let path = self.store.place(&GithubApp::key_file(role, app.id));
        Ok(path.display().to_string())
    }
}

/// Adopts the stored key of an App from an interrupted setup.
fn adopt_stored_app(role: AppRole, store: &SetupStore, server: &GithubServer) -> anyhow::Result<bool> {
    let names = store.kept()?;
    let id_of = |name: &String| {
        let id = name.strip_prefix(role.section())?.strip_prefix('.')?;
        id.strip_suffix(".pem")?.parse::<u64>().ok()
    };
    let ids: Vec<u64> = names.iter().filter_map(id_of).collect();
    match ids.as_slice() {
        [] => Ok(false),
        [id] => {
            store_app(store, role, *id, None, server)?;
            print_result(&format!(
                "{}   its key was saved already (id {id})",
                role.as_str()
            ));
            Ok(true)
        }
        _ => bail!(
            "{} has the keys of several Apps for {}: remove those that are not used",
            store.place("").display(),
            role.section()
        ),
    }
}

fn store_app(
    store: &SetupStore,
    role: AppRole,
    id: u64,
    key: Option<&SecretString>,
    server: &GithubServer,
) -> anyhow::Result<()> {
    let app = GithubApp {
        role,
        id,
        private_key: key.cloned(),
        api_url: server.api_url.clone(),
        git_url: server.git_url.clone(),
    };
    store.set(&app.settings())
}

fn keep_webhook_secret(store: &SetupStore, secret: &SecretString) -> anyhow::Result<()> {
    store.set(&[account_settings::build_webhook_secret_setting(
        WebhookSender::Github,
        secret,
    )])
}

/// Sets the webhook address of an existing App. Only a person can choose its events.
async fn set_hook_address(known: &KnownSettings, url: &str, store: &SetupStore) -> anyhow::Result<()> {
    let reader = &known.github_reader;
    let Some(secret) = known.ingest.github_webhook_secrets.first() else {
        bail!(
            "ingest.github_webhook_secrets in {} is empty: run the command again",
            store.file.display()
        );
    };
    if reader.app_id.is_none() {
        print_result(
            "webhook  a token has none: make one for each repository or organization, as `journeyman docs permissions` says",
        );
        return Ok(());
    }
    let set = registration::set_app_webhook(reader, url, &secret.clone().into()).await;
    set.with_context(|| {
        let place = store.place(WebhookSender::Github.setting());
        format!(
            "the App's webhook {url} cannot be set; set it on its page, with the secret in {}",
            place.display()
        )
    })?;
    print_result(&format!(
        "webhook  {url}; doctor says which events are to be chosen on the App's page"
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn resolve_github_server(host: Option<&str>) -> anyhow::Result<(String, String, String)> {
        GithubServer::of(host, &Settings::default()).map(|it| (it.api_url, it.git_url, it.web))
    }

    #[test]
    fn host_determines_api_git_and_pages() {
        let text = |parts: [&str; 3]| parts.map(str::to_owned).into();
        let usual = text([
            "https://api.github.com",
            "https://github.com",
            "https://github.com",
        ]);
        assert_eq!(resolve_github_server(None).unwrap(), usual);
        assert_eq!(resolve_github_server(Some("github.com")).unwrap(), usual);
        let own = text([
            "https://ghe.acme.example/api/v3",
            "https://ghe.acme.example",
            "https://ghe.acme.example",
        ]);
        assert_eq!(resolve_github_server(Some("ghe.acme.example")).unwrap(), own);
        let cloud = text([
            "https://api.acme.ghe.com",
            "https://acme.ghe.com",
            "https://acme.ghe.com",
        ]);
        assert_eq!(resolve_github_server(Some("acme.ghe.com")).unwrap(), cloud);
        for wrong in [
            "https://ghe.acme.example",
            "ghe.acme.example/x",
            "a@b",
            "",
            "ghe/",
        ] {
            assert!(resolve_github_server(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn returned_app_of_other_owner_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = SetupStore::new(folder.path().join("journeyman.toml"), folder.path());
        let server = GithubServer::of(None, &Settings::default()).unwrap();
        let apps = AppRegistration {
            store: &store,
            server: &server,
            org: "acme",
            hook: None,
            opens: false,
        };
        let check = |owner: Value| {
            let app = json!({"id": 7, "slug": "acme-journeyman", "pem": "key", "webhook_secret": null,
                "html_url": "https://github.com/apps/acme-journeyman", "owner": owner});
            apps.check_owner(&serde_json::from_value(app).unwrap())
        };
        for owner in ["acme", "Acme"] {
            assert!(check(json!({"login": owner})).is_ok(), "{owner}");
        }
        for owner in [
            json!({"login": "other"}),
            json!({"login": "acme-corp"}),
            json!({"login": ""}),
            json!({}),
            Value::Null,
        ] {
            let refused = check(owner.clone()).unwrap_err().to_string();
            assert!(refused.contains("nothing of it was kept"), "{owner}: {refused}");
        }
    }

    #[test]
    fn interrupted_setup_key_is_adopted() {
        let folder = tempfile::tempdir().unwrap();
        let store = SetupStore::new(folder.path().join("journeyman.toml"), folder.path());
        let server = GithubServer::of(None, &Settings::default()).unwrap();
        assert!(!adopt_stored_app(AppRole::Reader, &store, &server).unwrap());
        store
            .keep(&GithubApp::key_file(AppRole::Reader, 7), &"key".to_owned().into())
            .unwrap();
        assert!(!adopt_stored_app(AppRole::Writer, &store, &server).unwrap());
        assert!(adopt_stored_app(AppRole::Reader, &store, &server).unwrap());
        let text = std::fs::read_to_string(&store.file).unwrap();
        assert!(
            text.contains("[github_reader]\napp_id = 7\n") && !text.contains("api_url"),
            "{text}"
        );
        store
            .keep(&GithubApp::key_file(AppRole::Reader, 8), &"key".to_owned().into())
            .unwrap();
        assert!(
            adopt_stored_app(AppRole::Reader, &store, &server).is_err(),
            "nobody can tell which"
        );
    }
}
