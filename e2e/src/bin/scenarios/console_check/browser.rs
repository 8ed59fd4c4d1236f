//! Chromium, controlled through `ChromeDriver`.

use std::{process::Stdio, time::Duration};

use anyhow::Context;
use e2e::first_line;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::console_check::session::BrowserSession;

const END_LIMIT: Duration = Duration::from_secs(20);

/// Appearance of the browser window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageLook {
    /// Window with the light color scheme.
    Light,
    /// Window with the dark color scheme.
    Dark,
    /// Phone with a width of 390 pixels and the light color scheme.
    NarrowLight,
    /// Phone with a width of 390 pixels and the dark color scheme.
    NarrowDark,
    /// Window with JavaScript disabled.
    Plain,
}

impl PageLook {
    /// Two widths in both color schemes.
    pub(crate) const ALL: [Self; 4] = [Self::Light, Self::Dark, Self::NarrowLight, Self::NarrowDark];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
            Self::NarrowLight => "390px-light",
            Self::NarrowDark => "390px-dark",
            Self::Plain => "no-script",
        }
    }

    pub(crate) const fn is_dark(self) -> bool {
        match self {
            Self::Dark | Self::NarrowDark => true,
            Self::Light | Self::NarrowLight | Self::Plain => false,
        }
    }

    const fn is_narrow(self) -> bool {
        match self {
            Self::NarrowLight | Self::NarrowDark => true,
            Self::Light | Self::Dark | Self::Plain => false,
        }
    }
}

/// Running process of `ChromeDriver`.
pub(crate) struct ChromiumDriver {
    url: String,
    process: Child,
}

impl ChromiumDriver {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let mut process = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("chromedriver cannot be started")?;
        // Port 0 selects a free port, which the driver prints.
        let said = first_line(&mut process, "ChromeDriver was started successfully").await?;
        let port: String = said.chars().filter(char::is_ascii_digit).collect();
        Ok(Self {
            url: format!("http://127.0.0.1:{port}"),
            process,
        })
    }

    /// Shuts the driver down with all its browsers. They are outside its process group, so a killed driver
    /// would leave them running.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        reqwest::get(format!("{}/shutdown", self.url)).await?;
        tokio::time::timeout(END_LIMIT, self.process.wait())
            .await
            .context("chromedriver does not end")??;
        Ok(())
    }

    /// Opens a new browser with a temporary profile. Dropping the folder removes the profile.
    pub(crate) async fn browser(&self, look: PageLook) -> anyhow::Result<(BrowserSession, TempDir)> {
        let profile = tempfile::tempdir()?;
        let mut options = json!({"args": list_browser_arguments(look, &profile)});
        if look.is_narrow() {
            let metrics = json!({"width": 390, "height": 844, "pixelRatio": 1});
            options["mobileEmulation"] = json!({"deviceMetrics": metrics});
        }
        // The value 2 blocks scripts for every page.
        if look == PageLook::Plain {
            options["prefs"] = json!({"profile.managed_default_content_settings.javascript": 2});
        }
        let capabilities = json!({"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}});
        let session = BrowserSession::open(&self.url, capabilities).await?;
        Ok((session, profile))
    }
}

fn list_browser_arguments(look: PageLook, profile: &TempDir) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--window-size=1280,900",
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.push(format!("--user-data-dir={}", profile.path().display()));
    // Values of Blink's enumeration: 0 is dark, 1 is light.
    let scheme = if look.is_dark() { 0 } else { 1 };
    arguments.push(format!("--blink-settings=preferredColorScheme={scheme}"));
    arguments
}
