//! Session of a browser: the commands of the `WebDriver` standard (W3C, level 1) that the tour needs.

use std::time::Duration;

use anyhow::{Context, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

// Time for an element to appear.
const APPEAR_LIMIT: Duration = Duration::from_secs(30);
// Pause between two searches for an element.
const POLL_PAUSE: Duration = Duration::from_millis(50);
// Key of an element's identifier in an answer (section 11, "web element identifier").
const ELEMENT_KEY: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Way to find an element.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Locator<'a> {
    /// Selector of style sheets.
    Css(&'a str),
    /// Whole text of a link.
    LinkText(&'a str),
    XPath(&'a str),
}

impl Locator<'_> {
    fn body(self) -> Value {
        let (strategy, text) = match self {
            Self::Css(text) => ("css selector", text),
            Self::LinkText(text) => ("link text", text),
            Self::XPath(text) => ("xpath", text),
        };
        json!({"using": strategy, "value": text})
    }
}

/// One open browser.
pub(crate) struct BrowserSession {
    client: Client,
    url: String,
}

impl BrowserSession {
    /// Opens a browser with these capabilities.
    pub(crate) async fn open(driver_url: &str, capabilities: Value) -> anyhow::Result<Self> {
        let (client, url) = (Client::new(), format!("{driver_url}/session"));
        let body = json!({"capabilities": {"alwaysMatch": capabilities}});
        let opened = send_command(client.post(&url).json(&body)).await?;
        let id = opened["sessionId"]
            .as_str()
            .context("a session has no identifier")?;
        let url = format!("{url}/{id}");
        Ok(Self { client, url })
    }

    pub(crate) async fn close(self) -> anyhow::Result<()> {
        send_command(self.client.delete(&self.url)).await?;
        Ok(())
    }

    /// Loads a page and waits until it is loaded.
    pub(crate) async fn load(&self, url: &str) -> anyhow::Result<()> {
        self.post("url", json!({"url": url})).await?;
        Ok(())
    }

    /// Address of the page.
    pub(crate) async fn url(&self) -> anyhow::Result<String> {
        read_text(&self.get("url").await?)
    }

    /// Clicks the first such element.
    pub(crate) async fn click(&self, part: Locator<'_>) -> anyhow::Result<()> {
        let element = self.find(part).await?;
        self.post(&format!("{element}/click"), json!({})).await?;
        Ok(())
    }

    /// Types a text into the first such element.
    pub(crate) async fn type_text(&self, part: Locator<'_>, text: &str) -> anyhow::Result<()> {
        let element = self.find(part).await?;
        self.post(&format!("{element}/value"), json!({"text": text}))
            .await?;
        Ok(())
    }

    /// Visible text of the first such element.
    pub(crate) async fn text(&self, part: Locator<'_>) -> anyhow::Result<String> {
        let element = self.find(part).await?;
        read_text(&self.get(&format!("{element}/text")).await?)
    }

    /// Waits until the page has such an element.
    pub(crate) async fn wait_for(&self, part: Locator<'_>) -> anyhow::Result<()> {
        let deadline = Instant::now() + APPEAR_LIMIT;
        loop {
            match self.find(part).await {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => sleep(POLL_PAUSE).await,
            }
        }
    }

    /// Runs a script and returns its value.
    pub(crate) async fn execute(&self, script: &str) -> anyhow::Result<Value> {
        self.post("execute/sync", json!({"script": script, "args": []}))
            .await
    }

    /// Runs a script and returns the value that it passes to its last argument.
    pub(crate) async fn execute_async(&self, script: &str) -> anyhow::Result<Value> {
        self.post("execute/async", json!({"script": script, "args": []}))
            .await
    }

    /// Picture of the window as PNG.
    pub(crate) async fn screenshot(&self) -> anyhow::Result<Vec<u8>> {
        let encoded = read_text(&self.get("screenshot").await?)?;
        Ok(STANDARD.decode(encoded)?)
    }

    /// Returns and clears the browser's console entries: script errors and violations of the content security
    /// policy.
    pub(crate) async fn read_complaints(&self) -> anyhow::Result<Vec<String>> {
        // A command of `ChromeDriver`, which the standard lacks.
        let logged = self.post("se/log", json!({"type": "browser"})).await?;
        let entries = logged.as_array().map_or(&[][..], Vec::as_slice);
        let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let severe = entries
            .iter()
            .filter(|entry| text(entry, "level") == "SEVERE" || text(entry, "source") == "security");
        Ok(severe.map(|entry| text(entry, "message")).collect())
    }

    /// Path of the first such element below the session.
    async fn find(&self, part: Locator<'_>) -> anyhow::Result<String> {
        let found = self.post("element", part.body()).await?;
        let id = found[ELEMENT_KEY].as_str();
        let id = id.with_context(|| format!("{part:?} has no identifier"))?;
        Ok(format!("element/{id}"))
    }

    async fn get(&self, command: &str) -> anyhow::Result<Value> {
        send_command(self.client.get(format!("{}/{command}", self.url))).await
    }

    async fn post(&self, command: &str, body: Value) -> anyhow::Result<Value> {
        let request = self.client.post(format!("{}/{command}", self.url));
        send_command(request.json(&body)).await
    }
}

/// Sends a command and returns its value.
async fn send_command(request: RequestBuilder) -> anyhow::Result<Value> {
    let answer = request.send().await?;
    let status = answer.status();
    let mut answer: Value = answer.json().await?;
    let value = answer["value"].take();
    ensure!(status.is_success(), "{}: {}", value["error"], value["message"]);
    Ok(value)
}

fn read_text(value: &Value) -> anyhow::Result<String> {
    let text = value.as_str().context("the answer is not a text")?;
    Ok(text.to_owned())
}
