//! Actions of a user with a real run, and checks of its pages.

use anyhow::ensure;
use domain::{RunId, StopReason, address::percent_encode};
use e2e::TestWorld;
use serde_json::Value;

use crate::{
    console_check::{
        browser::{ChromiumDriver, PageLook},
        page_check::{CheckedPage, PageChecker, build_run_path},
        session::{BrowserSession, Locator},
    },
    output::print_line,
};

pub(crate) struct ConsoleTour<'a> {
    pub(crate) world: &'a TestWorld,
    pub(crate) driver: &'a ChromiumDriver,
    pub(crate) checker: PageChecker<'a>,
}

impl ConsoleTour<'_> {
    /// Follows a run to its end, checks its pages and returns the number of problems.
    pub(crate) async fn take(&self) -> anyhow::Result<usize> {
        let key = self.world.ask()?;
        let run = self.world.run(&key, 0).await?;
        let (client, _profile) = self.driver.browser(PageLook::Light).await?;
        self.log_in(&client).await?;
        // A live run is followed: its question appears on the page without a reload.
        self.checker.load(&client, &path_of(&run)).await?;
        self.mark(&client).await?;
        self.shown(&client, Locator::LinkText("Decide about what it asks"))
            .await?;
        ensure!(self.is_marked(&client).await?, "the page was loaded again");
        print_line("console live light asks");
        let approval = CheckedPage::new("approval", format!("{}/approval", path_of(&run)));
        let mut problems = self
            .checker
            .check(&client, PageLook::Light, &approval.with_picture("approval"))
            .await?;
        problems += self.overview_names_question(&client).await?;
        self.approve(&client, &run).await?;
        problems += client.read_complaints().await?.len();
        self.too_late(&run).await?;
        for place in list_run_pages(&run) {
            problems += self.checker.check(&client, PageLook::Light, &place).await?;
        }
        self.use_keys(&client).await?;
        client.close().await?;
        self.without_scripts(&run).await?;
        Ok(problems)
    }

    /// Checks that the overview of a real API shows the run that waits.
    async fn overview_names_question(&self, client: &BrowserSession) -> anyhow::Result<usize> {
        let overview = CheckedPage::new("overview", "/");
        let problems = self.checker.check(client, PageLook::Light, &overview).await?;
        let text = self.text(client).await?;
        ensure!(
            text.contains("Decision") && text.contains("Approve its change?"),
            "{text}"
        );
        Ok(problems)
    }

    /// Searches and steps through a list with the keyboard alone.
    async fn use_keys(&self, client: &BrowserSession) -> anyhow::Result<()> {
        self.checker.load(client, "/runs").await?;
        self.shown(client, Locator::Css("main a.item")).await?;
        client.type_text(Locator::Css("body"), "j").await?;
        let item = client.execute("return document.activeElement.matches('main a.item');");
        ensure!(item.await? == Value::Bool(true), "j focuses no item");
        client.type_text(Locator::Css("main a.item"), "?").await?;
        let keys = client.execute("return document.getElementById('keys').matches(':popover-open');");
        ensure!(keys.await? == Value::Bool(true), "? does not show the keys");
        client.type_text(Locator::Css("body"), "?/").await?;
        let search = client.execute("return document.activeElement.id === 'search';");
        ensure!(search.await? == Value::Bool(true), "/ does not focus the search");
        client.type_text(Locator::Css("#search"), "no-such-run\n").await?;
        self.shown(
            client,
            Locator::XPath("//main//strong[contains(., 'No run fits.')]"),
        )
        .await?;
        print_line("console keys light ok");
        Ok(())
    }

    /// Clicks the approval and follows the run to its end on the next page.
    async fn approve(&self, client: &BrowserSession, run: &RunId) -> anyhow::Result<()> {
        self.checker
            .load(client, &format!("{}/approval", path_of(run)))
            .await?;
        client.click(Locator::Css("button[value=approve]")).await?;
        self.mark(client).await?;
        let status = Locator::XPath("//*[@role='status'][contains(., 'completed')]");
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
        self.checker
            .load(&client, &format!("{}/approval", path_of(run)))
            .await?;
        let text = self.text(&client).await?;
        ensure!(text.contains("local approved it"), "{text}");
        client.close().await?;
        print_line("console approval light too-late");
        Ok(())
    }

    async fn without_scripts(&self, run: &RunId) -> anyhow::Result<()> {
        let (client, _profile) = self.driver.browser(PageLook::Plain).await?;
        self.log_in(&client).await?;
        self.checker.load(&client, &path_of(run)).await?;
        let text = self.text(&client).await?;
        ensure!(text.contains("completed after"), "{text}");
        self.checker
            .load(&client, &format!("{}/diff", path_of(run)))
            .await?;
        let text = self.text(&client).await?;
        ensure!(text.contains("Unified") && text.contains("+"), "{text}");
        for (path, part) in [
            ("/", "Needs you"),
            ("/tickets", "newest request first"),
            ("/runs", "newest first"),
        ] {
            self.checker.load(&client, path).await?;
            let text = self.text(&client).await?;
            ensure!(text.contains(part), "{path}: {text}");
        }
        client.close().await?;
        print_line("console run no-script ok");
        Ok(())
    }

    async fn log_in(&self, client: &BrowserSession) -> anyhow::Result<()> {
        self.checker.log_in(client, self.world.client.token()).await
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
}

/// Pages of a real run, and of the ticket that it finished.
fn list_run_pages(run: &RunId) -> Vec<CheckedPage> {
    let ticket = format!("/tickets/{}", percent_encode(&run.ticket().to_string()));
    vec![
        CheckedPage::new("runs", "/runs"),
        CheckedPage::new("run", path_of(run)).with_picture("run"),
        CheckedPage::new("entry", format!("{}/entries/0", path_of(run))).with_picture("entry"),
        CheckedPage::new("diff", format!("{}/diff", path_of(run))),
        CheckedPage::new("ticket", ticket),
        CheckedPage::new("tickets", "/tickets"),
    ]
}

fn path_of(run: &RunId) -> String {
    build_run_path(&run.to_string())
}
