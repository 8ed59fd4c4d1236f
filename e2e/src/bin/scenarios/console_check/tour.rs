//! Actions of a user, and checks of every page.

use std::path::Path;

use anyhow::ensure;
use domain::{RunId, StopReason, address::percent_encode};
use e2e::{ConsoleProcess, TestWorld};
use fantoccini::{Client, Locator};
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::console_check::browser::{ChromiumDriver, PageLook, read_complaints};
use crate::output::print_line;

/// Script that runs axe with the rules of WCAG 2.2 A and AA and its best practices.
const AXE: &str = "const done = arguments[arguments.length - 1];
    axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})
       .then(found => done(found.violations.map(one => one.id + ': ' + one.nodes.map(node => node.html).join(' | '))),
             error => done([String(error)]));";
/// Script that returns true if the page is wider than the window.
const TOO_WIDE: &str = "return document.documentElement.scrollWidth > window.innerWidth;";

pub(crate) struct ConsoleTour<'a> {
    pub(crate) world: &'a TestWorld,
    pub(crate) console: &'a ConsoleProcess,
    pub(crate) driver: &'a ChromiumDriver,
    pub(crate) axe: &'a str,
    pub(crate) screenshots: &'a Path,
}

/// Name and path of a page.
type PagePlace = (&'static str, String);

impl ConsoleTour<'_> {
    /// Visits all pages and returns the number of problems.
    pub(crate) async fn take(&self) -> anyhow::Result<usize> {
        let key = self.world.ask()?;
        let run = self.world.run(&key, 0).await?;
        let (client, _profile) = self.driver.browser(PageLook::Light).await?;
        let mut problems = self
            .look(&client, PageLook::Light, &("login", "/login".to_owned()))
            .await?;
        self.log_in(&client).await?;
        // A live run is followed: its question appears on the page without a reload.
        self.go(&client, &path_of(&run)).await?;
        self.mark(&client).await?;
        self.shown(&client, Locator::LinkText("Decide about what it asks"))
            .await?;
        ensure!(self.is_marked(&client).await?, "the page was loaded again");
        print_line("console live light asks");
        problems += self
            .look(
                &client,
                PageLook::Light,
                &("approval", format!("{}/approval", path_of(&run))),
            )
            .await?;
        problems += self
            .look(&client, PageLook::Light, &("needs-you", "/".to_owned()))
            .await?;
        problems += self
            .other_looks(&[("approval", format!("{}/approval", path_of(&run)))])
            .await?;
        self.approve(&client, &run).await?;
        problems += read_complaints(&client).await?.len();
        self.too_late(&run).await?;
        for place in self.places(&run) {
            problems += self.look(&client, PageLook::Light, &place).await?;
        }
        client.close().await?;
        problems += self.other_looks(&self.places(&run)).await?;
        self.without_scripts(&run).await?;
        Ok(problems)
    }

    fn places(&self, run: &RunId) -> Vec<PagePlace> {
        let ticket = format!("/tickets/{}", percent_encode(&run.ticket().to_string()));
        vec![
            ("runs", "/runs".to_owned()),
            ("run", path_of(run)),
            ("entry", format!("{}/entries/0", path_of(run))),
            ("ticket", ticket),
            ("dead", "/dead".to_owned()),
            ("pools", "/pools".to_owned()),
            ("rules", "/rules".to_owned()),
            ("costs", "/costs".to_owned()),
            ("health", "/health".to_owned()),
        ]
    }

    async fn other_looks(&self, places: &[PagePlace]) -> anyhow::Result<usize> {
        let mut problems = 0;
        for look in [PageLook::Dark, PageLook::Narrow] {
            let (client, _profile) = self.driver.browser(look).await?;
            self.log_in(&client).await?;
            for place in places {
                problems += self.look(&client, look, place).await?;
            }
            client.close().await?;
        }
        Ok(problems)
    }

    /// Clicks the approval and follows the run to its end on the next page.
    async fn approve(&self, client: &Client, run: &RunId) -> anyhow::Result<()> {
        self.go(client, &format!("{}/approval", path_of(run))).await?;
        let approve = Locator::Css("button[value=approve]");
        client.find(approve).await?.click().await?;
        self.mark(client).await?;
        let status = Locator::XPath("//p[@role='status'][contains(., 'completed')]");
        self.shown(client, status).await?;
        let last = Locator::XPath("//ol[@id='timeline']/li[last()][contains(., 'run finished: completed')]");
        self.shown(client, last).await?;
        ensure!(self.is_marked(client).await?, "the page was loaded again");
        let (_, reason) = self.world.finished(run).await?;
        ensure!(reason == StopReason::Completed, "{reason:?}");
        print_line("console live light completed");
        Ok(())
    }

    /// Checks that a second decision about a commit names the first one.
    async fn too_late(&self, run: &RunId) -> anyhow::Result<()> {
        let (client, _profile) = self.driver.browser(PageLook::Light).await?;
        self.log_in(&client).await?;
        self.go(&client, &format!("{}/approval", path_of(run))).await?;
        let text = self.text(&client).await?;
        ensure!(text.contains("local approved it"), "{text}");
        client.close().await?;
        print_line("console approval light too-late");
        Ok(())
    }

    async fn without_scripts(&self, run: &RunId) -> anyhow::Result<()> {
        let (client, _profile) = self.driver.browser(PageLook::Plain).await?;
        self.log_in(&client).await?;
        self.go(&client, &path_of(run)).await?;
        let text = self.text(&client).await?;
        ensure!(text.contains("completed after"), "{text}");
        client.close().await?;
        print_line("console run no-script ok");
        Ok(())
    }

    async fn log_in(&self, client: &Client) -> anyhow::Result<()> {
        self.go(client, "/login").await?;
        let field = client.find(Locator::Id("token")).await?;
        field.send_keys(self.world.client.token().expose_secret()).await?;
        client.find(Locator::Css("main button")).await?.click().await?;
        self.shown(client, Locator::Css("header.site")).await?;
        Ok(())
    }

    async fn go(&self, client: &Client, path: &str) -> anyhow::Result<()> {
        Ok(client.goto(&format!("{}{path}", self.console.url)).await?)
    }

    /// Waits for an element. The error contains the page's text and the console entries.
    async fn shown(&self, client: &Client, part: Locator<'_>) -> anyhow::Result<()> {
        if let Err(missing) = client.wait().for_element(part).await {
            let (url, text) = (client.current_url().await?, self.text(client).await?);
            let complaints = read_complaints(client).await?;
            anyhow::bail!("{part:?} is not on {url} ({missing}): {complaints:#?}\n{text}");
        }
        Ok(())
    }

    async fn text(&self, client: &Client) -> anyhow::Result<String> {
        Ok(client.find(Locator::Css("main")).await?.text().await?)
    }

    /// Sets a mark in the page's window, which a reload would remove.
    async fn mark(&self, client: &Client) -> anyhow::Result<()> {
        self.shown(client, Locator::Id("timeline")).await?;
        client.execute("window.marked = true;", Vec::new()).await?;
        Ok(())
    }

    async fn is_marked(&self, client: &Client) -> anyhow::Result<bool> {
        Ok(client
            .execute("return window.marked === true;", Vec::new())
            .await?
            == Value::Bool(true))
    }

    /// Loads a page, runs axe, and saves a screenshot in the light window.
    async fn look(&self, client: &Client, look: PageLook, (name, path): &PagePlace) -> anyhow::Result<usize> {
        self.go(client, path).await?;
        client.wait().for_element(Locator::Css("main h1")).await?;
        if look == PageLook::Dark {
            let dark = client.execute(
                "return matchMedia('(prefers-color-scheme: dark)').matches;",
                Vec::new(),
            );
            ensure!(dark.await? == Value::Bool(true), "the browser is not dark");
        }
        let mut problems = read_complaints(client).await?;
        if client.execute(TOO_WIDE, Vec::new()).await? == Value::Bool(true) {
            problems.push("it is wider than the window".to_owned());
        }
        client.execute(self.axe, Vec::new()).await?;
        let found = client.execute_async(AXE, Vec::new()).await?;
        problems.extend(found.as_array().into_iter().flatten().map(Value::to_string));
        // Entries that axe itself caused are discarded.
        read_complaints(client).await?;
        if look == PageLook::Light {
            std::fs::write(
                self.screenshots.join(format!("{name}.png")),
                client.screenshot().await?,
            )?;
        }
        let outcome = if problems.is_empty() { "ok" } else { "wrong" };
        print_line(&format!("console {name} {} {outcome}", look.name()));
        for problem in &problems {
            print_line(&format!("  {problem}"));
        }
        Ok(problems.len())
    }
}

fn path_of(run: &RunId) -> String {
    format!("/runs/{}", percent_encode(&run.to_string()))
}
