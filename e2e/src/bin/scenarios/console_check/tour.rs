//! Actions of a user, and checks of every page.

use std::path::Path;

use anyhow::ensure;
use domain::{RunId, StopReason, address::percent_encode};
use e2e::{ConsoleProcess, TestWorld};
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::{
    console_check::{
        browser::{ChromiumDriver, PageLook},
        session::{BrowserSession, Locator},
    },
    output::print_line,
};

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
        problems += client.read_complaints().await?.len();
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
    async fn approve(&self, client: &BrowserSession, run: &RunId) -> anyhow::Result<()> {
        self.go(client, &format!("{}/approval", path_of(run))).await?;
        client.click(Locator::Css("button[value=approve]")).await?;
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

    async fn log_in(&self, client: &BrowserSession) -> anyhow::Result<()> {
        self.go(client, "/login").await?;
        let token = self.world.client.token();
        client
            .type_text(Locator::Css("#token"), token.expose_secret())
            .await?;
        client.click(Locator::Css("main button")).await?;
        self.shown(client, Locator::Css("header.site")).await?;
        Ok(())
    }

    async fn go(&self, client: &BrowserSession, path: &str) -> anyhow::Result<()> {
        client.load(&format!("{}{path}", self.console.url)).await
    }

    /// Waits for an element. The error contains the page's text and the console entries.
    async fn shown(&self, client: &BrowserSession, part: Locator<'_>) -> anyhow::Result<()> {
        if let Err(missing) = client.wait_for(part).await {
            let (url, text) = (client.url().await?, self.text(client).await?);
            let complaints = client.read_complaints().await?;
            anyhow::bail!("{part:?} is not on {url} ({missing}): {complaints:#?}\n{text}");
        }
        Ok(())
    }

    async fn text(&self, client: &BrowserSession) -> anyhow::Result<String> {
        client.text(Locator::Css("main")).await
    }

    /// Sets a mark in the page's window, which a reload would remove.
    async fn mark(&self, client: &BrowserSession) -> anyhow::Result<()> {
        self.shown(client, Locator::Css("#timeline")).await?;
        client.execute("window.marked = true;").await?;
        Ok(())
    }

    async fn is_marked(&self, client: &BrowserSession) -> anyhow::Result<bool> {
        let marked = client.execute("return window.marked === true;").await?;
        Ok(marked == Value::Bool(true))
    }

    /// Loads a page, runs axe, and saves a screenshot in the light window.
    async fn look(
        &self,
        client: &BrowserSession,
        look: PageLook,
        (name, path): &PagePlace,
    ) -> anyhow::Result<usize> {
        self.go(client, path).await?;
        client.wait_for(Locator::Css("main h1")).await?;
        if look == PageLook::Dark {
            let dark = client.execute("return matchMedia('(prefers-color-scheme: dark)').matches;");
            ensure!(dark.await? == Value::Bool(true), "the browser is not dark");
        }
        let mut problems = client.read_complaints().await?;
        if client.execute(TOO_WIDE).await? == Value::Bool(true) {
            problems.push("it is wider than the window".to_owned());
        }
        client.execute(self.axe).await?;
        let found = client.execute_async(AXE).await?;
        problems.extend(found.as_array().into_iter().flatten().map(Value::to_string));
        // Entries that axe itself caused are discarded.
        client.read_complaints().await?;
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
