//! Every page in five states of the installation, at two widths and in both color schemes.

use std::path::Path;

use domain::address::percent_encode;
use e2e::ConsoleProcess;
use secrecy::SecretString;

use super::{
    browser::{ChromiumDriver, PageLook},
    page_check::{CheckedPage, PageChecker, build_run_path},
    session::{BrowserSession, Locator},
    stand_in_api::{HOSTILE, StandInApi},
    state_records::{FINISHED_RUN, InstallationState, LIVE_RUN, LONG_RUN, TICKET, WAITING_RUN},
};

/// Checks all pages of all states. Returns the number of problems.
pub(crate) async fn check_states(
    driver: &ChromiumDriver,
    axe: &str,
    screenshots: &Path,
) -> anyhow::Result<usize> {
    let mut problems = 0;
    for state in InstallationState::ALL {
        let api = StandInApi::start(state).await?;
        let console = ConsoleProcess::start(&api.url).await?;
        let checker = PageChecker {
            console_url: &console.url,
            axe,
            screenshots,
        };
        for look in PageLook::ALL {
            problems += Box::pin(check_look(driver, &checker, state, look)).await?;
        }
    }
    Ok(problems)
}

async fn check_look(
    driver: &ChromiumDriver,
    checker: &PageChecker<'_>,
    state: InstallationState,
    look: PageLook,
) -> anyhow::Result<usize> {
    let (client, _profile) = driver.browser(look).await?;
    let has_pictures = state == InstallationState::Many && look == PageLook::Light;
    let (public, pages) = (list_public_pages(), list_pages());
    let mut problems = 0;
    for page in &public {
        problems += checker
            .check(&client, look, &name_page(page, state, has_pictures))
            .await?;
    }
    // The stand-in accepts every token.
    checker.log_in(&client, &SecretString::from("stand-in")).await?;
    for page in &pages {
        problems += checker
            .check(&client, look, &name_page(page, state, has_pictures))
            .await?;
    }
    if state.has_every_object() {
        problems += check_orders(&client, checker, state, look).await?;
    }
    client.close().await?;
    Ok(problems)
}

/// Checks the pages that only a form opens: the confirmation of an order, and the results of an order for many runs.
async fn check_orders(
    client: &BrowserSession,
    checker: &PageChecker<'_>,
    state: InstallationState,
    look: PageLook,
) -> anyhow::Result<usize> {
    let text = match state {
        InstallationState::Hostile => HOSTILE,
        InstallationState::Empty
        | InstallationState::One
        | InstallationState::Many
        | InstallationState::Failing => "Round *half up*.",
    };
    let of_state = |name: &str| name_page(&CheckedPage::new(name, ""), state, false);
    checker.load(client, &build_run_path(LIVE_RUN)).await?;
    client.type_text(Locator::Css("#say-text"), text).await?;
    // A script, because the fixed parts of a page may cover a button.
    client
        .execute("document.getElementById('say-text').form.requestSubmit();")
        .await?;
    client
        .wait_for(Locator::XPath("//main//h1[contains(., 'Confirm')]"))
        .await?;
    let mut problems = checker.check_shown(client, look, &of_state("confirm")).await?;
    client
        .execute("document.querySelector('main form button').click();")
        .await?;
    client.wait_for(Locator::Css("#timeline")).await?;
    checker.load(client, "/runs").await?;
    client
        .execute(
            "document.querySelector('main input[name=run]').checked = true; \
             document.querySelector('main button[value=stop]').click();",
        )
        .await?;
    client
        .wait_for(Locator::XPath("//main//h1[contains(., 'Result of your order')]"))
        .await?;
    problems += checker
        .check_shown(client, look, &of_state("order-results"))
        .await?;
    Ok(problems)
}

/// Returns the page of a state: its name has the state, and only one state and look gives the pictures.
fn name_page(page: &CheckedPage, state: InstallationState, has_pictures: bool) -> CheckedPage {
    CheckedPage {
        name: format!("{} {}", page.name, state.name()),
        path: page.path.clone(),
        picture: page.picture.filter(|_| has_pictures),
        // A state without the object shows the page of a missing one.
        may_be_missing: page.may_be_missing || !state.has_every_object(),
    }
}

fn list_public_pages() -> [CheckedPage; 2] {
    [
        CheckedPage::new("login", "/login").with_picture("login"),
        CheckedPage::new("reviewers", "/reviewers"),
    ]
}

fn list_pages() -> Vec<CheckedPage> {
    vec![
        CheckedPage::new("overview", "/").with_picture("needs-you"),
        CheckedPage::new("tickets", "/tickets").with_picture("tickets"),
        CheckedPage::new("tickets-search", "/tickets?q=cart&standing=failed"),
        CheckedPage::new("ticket", format!("/tickets/{}", percent_encode(TICKET))).with_picture("ticket"),
        CheckedPage::new("runs", "/runs").with_picture("runs"),
        CheckedPage::new("runs-filter", "/runs?job=implement&stop=failed"),
        CheckedPage::new("run", build_run_path(FINISHED_RUN)),
        CheckedPage::new("run-entries", format!("{}?from=0", build_run_path(LONG_RUN))),
        CheckedPage::new("run-live", build_run_path(LIVE_RUN)),
        CheckedPage::new("run-follow", format!("{}?follow=true", build_run_path(LIVE_RUN))),
        CheckedPage::new("diff", format!("{}/diff", build_run_path(FINISHED_RUN))),
        CheckedPage::new(
            "diff-split",
            format!("{}/diff?view=split", build_run_path(FINISHED_RUN)),
        ),
        CheckedPage::new("entry", format!("{}/entries/0", build_run_path(FINISHED_RUN))),
        CheckedPage::new("approval", format!("{}/approval", build_run_path(WAITING_RUN))),
        CheckedPage::new("costs", "/costs").with_picture("costs"),
        CheckedPage::new("pools", "/pools").with_picture("pools"),
        CheckedPage::new("rules", "/rules").with_picture("rules"),
        CheckedPage::new("dead", "/dead").with_picture("dead"),
        CheckedPage::new("letter", "/dead/1"),
        CheckedPage::new("health", "/health").with_picture("health"),
        CheckedPage {
            may_be_missing: true,
            ..CheckedPage::new("missing", "/no-such-page")
        },
    ]
}
