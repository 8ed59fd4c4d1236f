//! The two GitHub Apps: registered from manifests by one click each, then installed.

use anyhow::{Context, bail};
use clap::Args;
use domain::{CommitAuthor, cause::chain};
use github::{
    Settings,
    registration::{self, NewApp, Role},
};
use secrecy::SecretString;
use tokio::sync::{mpsc, oneshot};
use url::Url;

use super::{
    Known, ask, hook_url,
    installed::{install_url, installed, open},
    page::{Page, Returned},
    say,
    store::Store,
};
use crate::{
    account_settings::{self, GithubApp, WebhookSender},
    secrets::new_password,
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
struct Server {
    api_url: String,
    git_url: String,
    /// Origin of its web pages.
    web: String,
}

impl Server {
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
                let api_url = match host.ends_with(".ghe.com") {
                    true => format!("https://api.{host}"),
                    false => format!("https://{host}/api/v3"),
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

pub(super) async fn run(asked: Arguments, store: &Store) -> anyhow::Result<()> {
    let known = Known::read(store)?;
    let server = Server::of(asked.host.as_deref(), &known.github_reader)?;
    let hook = asked
        .public_url
        .as_deref()
        .map(|public| hook_url(public, "GitHub"))
        .transpose()?;
    let opens = !asked.no_browser;
    let mut missing = Vec::new();
    for role in Role::ALL {
        if of(role, &known).is_without_account() && !adopted(role, store, &server)? {
            missing.push(role);
        }
    }
    let question = "Organisation that owns the Apps";
    let needs_org = !missing.is_empty() || asked.org.is_some();
    let org = match needs_org {
        true => Some(ask::text(asked.org, "--org", question).await?),
        false => None,
    };
    if let Some(org) = &org {
        anyhow::ensure!(
            registration::is_owner(org),
            "{org:?} is not the name of an organisation"
        );
    }
    // The page is served until both Apps are installed, because its last state links to the installation.
    let _page = match (missing.as_slice(), &org) {
        ([], _) | (_, None) => None,
        (missing, Some(org)) => {
            let made = Registering {
                store,
                server: &server,
                org,
                hook: hook.as_deref(),
                opens,
            };
            Some(made.all(missing).await?)
        }
    };
    let known = Known::read(store)?;
    if known.ingest.github_webhook_secrets.is_empty() {
        // Ingest refuses unsigned webhooks and requires a secret, even while no webhook exists.
        keep_webhook_secret(store, &new_password().0.into())?;
    }
    // A newly registered reader App has its webhook from the manifest.
    if let (Some(url), false) = (&hook, missing.contains(&Role::Reader)) {
        point_hook(&Known::read(store)?, url, store).await?;
    }
    let opens = opens && missing.is_empty();
    let mut own = Vec::new();
    for role in Role::ALL {
        own.extend(installed(role, of(role, &known), org.as_deref(), opens).await?);
    }
    store.set(&[account_settings::own_accounts(&own)])?;
    name_author(&Known::read(store)?, &server, store).await
}

/// Sets the writer App's account as the author of commits, unless the settings name one.
async fn name_author(known: &Known, server: &Server, store: &Store) -> anyhow::Result<()> {
    if let Some(author) = &known.rules.commit_author {
        say(&format!("author   {author}"));
        return Ok(());
    }
    let writer = &known.github_writer;
    if writer.app_id.is_none() {
        say("author   commits name no account: a token is no App. Set rules.commit_author");
        return Ok(());
    }
    let slug = registration::standing(writer).await?.slug;
    let number = registration::bot_number(&server.api_url, &slug).await;
    let host = Url::parse(&server.web).ok();
    let host = host.as_ref().and_then(Url::host_str).unwrap_or_default();
    let author = match number {
        Ok(number) => CommitAuthor::of_github(host, number, &format!("{slug}[bot]")),
        Err(error) => {
            let error = chain(&error);
            say(&format!(
                "author   GitHub does not tell the number of {slug}[bot] ({error}): set rules.commit_author"
            ));
            return Ok(());
        }
    };
    let Some(author) = author else { return Ok(()) };
    store.set(&[account_settings::commit_author(&author)])?;
    say(&format!("author   commits are by {author}"));
    Ok(())
}

fn of(role: Role, known: &Known) -> &Settings {
    match role {
        Role::Reader => &known.github_reader,
        Role::Writer => &known.github_writer,
    }
}

/// Context of the registrations.
struct Registering<'a> {
    store: &'a Store,
    server: &'a Server,
    org: &'a str,
    hook: Option<&'a str>,
    opens: bool,
}

impl Registering<'_> {
    /// Registers the Apps one after the other in one browser page. Returns the page.
    async fn all(&self, roles: &[Role]) -> anyhow::Result<Page> {
        let mut page = Page::open().await?;
        let mut typed = match self.opens {
            true => None,
            false => Some(ask::lines()),
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
            let made = registration::convert(&self.server.api_url, &returned.code).await;
            let made = made
                .map_err(anyhow::Error::from)
                .and_then(|app| self.check_owner(&app).map(|()| app))
                .and_then(|app| self.keep(*role, &app).map(|path| (app, path)));
            let (app, path) = made.inspect_err(|_| {
                page.say(
                    "That did not work; the terminal tells why. Run the command again.",
                    &[],
                );
            })?;
            let (step, steps) = (place + 1, roles.len());
            say(&format!(
                "{step}/{steps} {}   created {:?} (id {}), key saved in {path}",
                role.as_str(),
                app.slug,
                app.id,
            ));
            links.push((format!("Install {}", app.slug), install_url(&app.html_url)));
            waiting = Some(returned.seen);
        }
        page.say(
            "Both Apps are there. Install each on the same repositories:",
            &links,
        );
        let _ = waiting.map(|seen| seen.send(()));
        Ok(page)
    }

    /// Waits for the code, from the callback or pasted by a user whose browser is on another machine.
    async fn code(
        &self,
        page: &mut Page,
        role: Role,
        typed: &mut Option<mpsc::Receiver<String>>,
    ) -> anyhow::Result<Returned> {
        let Some(typed) = typed.as_mut().filter(|_| ask::is_possible()) else {
            return page.returned().await;
        };
        let file = self
            .store
            .leave(&format!("setup-{}.html", role.as_str()), &page.form())?;
        let file = file.display();
        say(&format!(
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
                None => say(
                    "     that is not the address with code and state, e.g. http://127.0.0.1:41877/callback?code=…",
                ),
            }
        }
    }

    fn show(&self, page: &Page, role: Role) {
        let home = format!("{}/{}", self.server.web, self.org);
        let manifest = registration::manifest(role, self.org, &home, &page.callback(), self.hook);
        let action = format!("{}/organizations/{}/settings/apps/new", self.server.web, self.org);
        page.send(&action, &manifest);
    }

    fn invite(&self, url: &str) {
        let port = Url::parse(url)
            .ok()
            .and_then(|url| url.port())
            .unwrap_or_default();
        say(&format!(
            "open {url} in a browser on this machine and confirm both Apps"
        ));
        if !self.opens {
            say(&format!(
                "     from another machine, first: ssh -L {port}:127.0.0.1:{port} <this machine>"
            ));
        } else {
            open(url);
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
    fn keep(&self, role: Role, app: &NewApp) -> anyhow::Result<String> {
        if let Some(secret) = &app.webhook_secret {
            keep_webhook_secret(self.store, secret)?;
        }
        name_app(self.store, role, app.id, Some(&app.pem), self.server)?;
        let path = self.store.place(&GithubApp::key_file(role, app.id));
        Ok(path.display().to_string())
    }
}

/// Adopts the stored key of an App from an interrupted setup.
fn adopted(role: Role, store: &Store, server: &Server) -> anyhow::Result<bool> {
    let names = store.kept()?;
    let id_of = |name: &String| {
        let id = name.strip_prefix(role.section())?.strip_prefix('.')?;
        id.strip_suffix(".pem")?.parse::<u64>().ok()
    };
    let ids: Vec<u64> = names.iter().filter_map(id_of).collect();
    match ids.as_slice() {
        [] => Ok(false),
        [id] => {
            name_app(store, role, *id, None, server)?;
            say(&format!(
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

fn name_app(
    store: &Store,
    role: Role,
    id: u64,
    key: Option<&SecretString>,
    server: &Server,
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

fn keep_webhook_secret(store: &Store, secret: &SecretString) -> anyhow::Result<()> {
    store.set(&[account_settings::webhook_secret(WebhookSender::Github, secret)])
}

/// Sets the webhook address of an existing App. Only a person can choose its events.
async fn point_hook(known: &Known, url: &str, store: &Store) -> anyhow::Result<()> {
    let reader = &known.github_reader;
    let Some(secret) = known.ingest.github_webhook_secrets.first() else {
        bail!("there is no webhook secret, which was made a moment ago");
    };
    if reader.app_id.is_none() {
        say(
            "webhook  a token has none: make one for each repository or organisation, as docs/permissions.md says",
        );
        return Ok(());
    }
    let told = registration::set_hook(reader, url, &secret.clone().into()).await;
    told.with_context(|| {
        let place = store.place(WebhookSender::Github.setting());
        format!(
            "the App's webhook {url} cannot be set; set it on its page, with the secret in {}",
            place.display()
        )
    })?;
    say(&format!(
        "webhook  {url}; doctor says which events are to be chosen on the App's page"
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(host: Option<&str>) -> anyhow::Result<(String, String, String)> {
        Server::of(host, &Settings::default()).map(|it| (it.api_url, it.git_url, it.web))
    }

    #[test]
    fn host_determines_api_git_and_pages() {
        let text = |parts: [&str; 3]| parts.map(str::to_owned).into();
        let usual = text([
            "https://api.github.com",
            "https://github.com",
            "https://github.com",
        ]);
        assert_eq!(server(None).unwrap(), usual);
        assert_eq!(server(Some("github.com")).unwrap(), usual);
        let own = text([
            "https://ghe.acme.example/api/v3",
            "https://ghe.acme.example",
            "https://ghe.acme.example",
        ]);
        assert_eq!(server(Some("ghe.acme.example")).unwrap(), own);
        let cloud = text([
            "https://api.acme.ghe.com",
            "https://acme.ghe.com",
            "https://acme.ghe.com",
        ]);
        assert_eq!(server(Some("acme.ghe.com")).unwrap(), cloud);
        for wrong in [
            "https://ghe.acme.example",
            "ghe.acme.example/x",
            "a@b",
            "",
            "ghe/",
        ] {
            assert!(server(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn interrupted_setup_key_is_adopted() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("journeyman.toml"), folder.path());
        let server = Server::of(None, &Settings::default()).unwrap();
        assert!(!adopted(Role::Reader, &store, &server).unwrap());
        store
            .keep(&GithubApp::key_file(Role::Reader, 7), &"key".to_owned().into())
            .unwrap();
        assert!(!adopted(Role::Writer, &store, &server).unwrap());
        assert!(adopted(Role::Reader, &store, &server).unwrap());
        let text = std::fs::read_to_string(&store.file).unwrap();
        assert!(
            text.contains("[github_reader]\napp_id = 7\n") && !text.contains("api_url"),
            "{text}"
        );
        store
            .keep(&GithubApp::key_file(Role::Reader, 8), &"key".to_owned().into())
            .unwrap();
        assert!(
            adopted(Role::Reader, &store, &server).is_err(),
            "nobody can tell which"
        );
    }
}
