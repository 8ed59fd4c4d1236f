//! Checks of one page in one browser: axe, the width, errors of the browser, and a picture.

use std::path::Path;

use anyhow::ensure;
use domain::address::percent_encode;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{
    browser::PageLook,
    session::{BrowserSession, Locator},
};
use crate::output::print_line;

/// Script that runs axe with the rules of WCAG 2.2 A and AA and its best practices.
const AXE: &str = "const done = arguments[arguments.length - 1];
    axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})
       .then(found => done(found.violations.map(one => one.id + ': ' + one.nodes.map(node => node.html).join(' | '))),
             error => done([String(error)]));";
/// Script that returns true if the page is wider than the window.
const TOO_WIDE: &str = "return document.documentElement.scrollWidth > window.innerWidth;";
/// Script that returns true if a text of others became an element or an attribute that acts.
const HAS_FOREIGN_MARKUP: &str = "return document.querySelector('main [hx-get=\"/x\"], main script, \
    [href^=\"javascript\"]') !== null;";
// Complaint of the browser about a page with this status, which is that of a missing object. Every other error status is
// a problem.
const MISSING_STATUS: &str = "responded with a status of 404";

/// A page to check: its name in the output, its path, and the file of its picture.
pub(crate) struct CheckedPage {
    pub(crate) name: String,
    pub(crate) path: String,
    /// Name of the picture without its extension; absent: no picture.
    pub(crate) picture: Option<&'static str>,
    /// True if the object of the page may be missing.
    pub(crate) may_be_missing: bool,
}

impl CheckedPage {
    pub(crate) fn new(name: &str, path: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            path: path.into(),
            picture: None,
            may_be_missing: false,
        }
    }

    pub(crate) fn with_picture(self, picture: &'static str) -> Self {
        Self {
            picture: Some(picture),
            ..self
        }
    }
}

/// Returns the path of a run's page.
pub(crate) fn build_run_path(id: &str) -> String {
    format!("/runs/{}", percent_encode(id))
}

/// Checker of the pages of one console.
pub(crate) struct PageChecker<'a> {
    pub(crate) console_url: &'a str,
    pub(crate) axe: &'a str,
    pub(crate) screenshots: &'a Path,
}

impl PageChecker<'_> {
    pub(crate) async fn load(&self, client: &BrowserSession, path: &str) -> anyhow::Result<()> {
        client.load(&format!("{}{path}", self.console_url)).await
    }

    pub(crate) async fn log_in(&self, client: &BrowserSession, token: &SecretString) -> anyhow::Result<()> {
        self.load(client, "/login").await?;
        client
            .type_text(Locator::Css("#token"), token.expose_secret())
            .await?;
        client.click(Locator::Css("main button")).await?;
        client.wait_for(Locator::Css("header.site nav")).await
    }

    /// Loads a page and checks it. Returns the number of problems.
    pub(crate) async fn check(
        &self,
        client: &BrowserSession,
        look: PageLook,
        page: &CheckedPage,
    ) -> anyhow::Result<usize> {
        self.load(client, &page.path).await?;
        self.check_shown(client, look, page).await
    }

    /// Checks the page that the browser shows. Returns the number of problems.
    pub(crate) async fn check_shown(
        &self,
        client: &BrowserSession,
        look: PageLook,
        page: &CheckedPage,
    ) -> anyhow::Result<usize> {
        client.wait_for(Locator::Css("main h1")).await?;
        if look.is_dark() {
            let dark = client.execute("return matchMedia('(prefers-color-scheme: dark)').matches;");
            ensure!(dark.await? == Value::Bool(true), "the browser is not dark");
        }
        let mut problems = client.read_complaints().await?;
        if page.may_be_missing {
            problems.retain(|problem| !problem.contains(MISSING_STATUS));
        }
        for (script, problem) in [
            (TOO_WIDE, "it is wider than the window"),
            (HAS_FOREIGN_MARKUP, "text of others became markup"),
        ] {
            if client.execute(script).await? == Value::Bool(true) {
                problems.push(problem.to_owned());
            }
        }
        client.execute(self.axe).await?;
        let found = client.execute_async(AXE).await?;
        problems.extend(found.as_array().into_iter().flatten().map(Value::to_string));
        // Entries that axe itself caused are discarded.
        client.read_complaints().await?;
        if let Some(picture) = page.picture {
            let file = self.screenshots.join(format!("{picture}.png"));
            std::fs::write(file, client.screenshot().await?)?;
        }
        let outcome = if problems.is_empty() { "ok" } else { "wrong" };
        print_line(&format!("console {} {} {outcome}", page.name, look.name()));
        for problem in &problems {
            print_line(&format!("  {problem}"));
        }
        Ok(problems.len())
    }
}
