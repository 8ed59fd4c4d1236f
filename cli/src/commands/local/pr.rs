//! `journeyman pr`: a pull request from a branch of a local repository, with a JSON request and a JSON answer.

use std::{
    io::{BufRead, IsTerminal, Read},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use api::{Client, PullRequestSubmission, types::PullRequestCallView};
use bootstrap::settings;
use clap::Args;
use domain::TicketKey;
use pullrequest::{
    CallProblem, CallStatus, ProblemKind, ProtocolAnswer, ValidatedRequest, find_issue_key, parse_request,
};
use reporter::{PullRequestOpener, PullRequestResult, PullRequestSettings, complete_answer};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{find_settings_file, print_error, print_json};
use crate::{access, args::ApiArguments, exit_codes::derive_exit_code};

/// Open a pull request from a local branch, link it to a Jira issue and move the issue to code review
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "With `working_directory` in the request, the branch is pushed from there and no service is needed.
With `repository` in its place, the branch is at GitHub already and the running services open the pull request."
)]
pub(in crate::commands) struct Arguments {
    /// The request: a file with one JSON object, or `-` for standard input
    #[arg(long, value_name = "FILE|-")]
    input: PathBuf,
    /// Write nothing, and print the planned changes
    #[arg(long)]
    dry_run: bool,
    /// The transition to code review, by its name or by the name of its target status
    #[arg(long, value_name = "NAME")]
    transition: Option<String>,
    /// Take the Jira issue from the branch's name when the request names none
    #[arg(long)]
    jira_key_from_branch: bool,
    /// Settings file [default: journeyman.toml, when it exists]
    #[arg(long = "config", value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    settings: Option<PathBuf>,
    /// For a request with `repository`: request once, even when the command is repeated with this key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Address and token of the API, for a request with `repository`.
    #[command(flatten)]
    api: ApiArguments,
}

// Time limit of the services, and the pause between two polls.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
const POLL_INTERVAL: Duration = Duration::from_millis(300);

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let input = read_request_text(&asked.input)?;
    if let Some(request) = find_remote_request(&input) {
        return ask_services(request, &asked).await;
    }
    let result = match parse_local_request(&input, asked.jira_key_from_branch) {
        Ok(request) => perform_request(request, &asked).await?,
        Err(problems) => PullRequestResult::Answered(ProtocolAnswer::failed(problems)),
    };
    let answer = match result {
        PullRequestResult::Planned(answer) => {
            print_json(&answer)?;
            return Ok(ExitCode::SUCCESS);
        }
        PullRequestResult::Answered(answer) => complete_answer(answer, started),
    };
    print_json(&answer)?;
    Ok(derive_exit_code(answer.status == CallStatus::Success))
}

/// Request that names a repository on GitHub instead of a folder.
fn find_remote_request(input: &str) -> Option<Value> {
    let request: Value = serde_json::from_str(input).ok()?;
    request.get("repository")?;
    Some(request)
}

/// Sends the request to the running services, and waits for their answer.
async fn ask_services(mut request: Value, asked: &Arguments) -> anyhow::Result<ExitCode> {
    if asked.dry_run {
        request["dry_run"] = true.into();
    }
    if let Some(transition) = &asked.transition {
        request["transition"] = transition.as_str().into();
    }
    let has_key = request.get("jira_key").is_some_and(|key| !key.is_null());
    if asked.jira_key_from_branch && !has_key {
        let branch = request.get("branch").and_then(Value::as_str);
        request["jira_key"] = branch.and_then(find_issue_key).into();
    }
    let client = access::build_client(&asked.api)?;
    let answer = match client
        .pull_requests()
        .request(&request, asked.key.as_deref())
        .await?
    {
        PullRequestSubmission::Refused(answer) => answer,
        PullRequestSubmission::Taken(call) => await_answer(&client, call).await?,
    };
    print_json(&answer)?;
    let is_good = answer["status"] == "success" || answer["dry_run"] == true;
    Ok(derive_exit_code(is_good))
}

async fn await_answer(client: &Client, mut call: PullRequestCallView) -> anyhow::Result<Value> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = call.answer {
            return Ok(answer);
        }
        if Instant::now() >= give_up {
            bail!(
                "no answer within {} minutes; ask again with --key {}",
                PATIENCE.as_secs() / 60,
                call.id
            );
        }
        sleep(POLL_INTERVAL).await;
        call = client.pull_requests().read(&call.id).await?;
    }
}

/// Performs a request about a local folder, with the options of the command line.
async fn perform_request(
    mut request: ValidatedRequest,
    asked: &Arguments,
) -> anyhow::Result<PullRequestResult> {
    let file = find_settings_file(asked.settings.clone());
    let settings: PullRequestSettings = settings::load_process_settings(file.as_deref())?;
    bootstrap::install_process_proxy(file.as_deref())?;
    let opener = PullRequestOpener::new(settings)?;
    request.dry_run |= asked.dry_run;
    if let Some(transition) = &asked.transition {
        request.transition = Some(transition.clone());
    }
    // The command reads no rules: its Jira is that of [jira_writer].
    let issue = request.jira_key.as_deref();
    let issue = issue.and_then(|key| TicketKey::jira(key).ok());
    // With `--input -` the standard input is the request, so it cannot answer a question.
    let can_ask = std::io::stdin().is_terminal() && asked.input != Path::new("-") && !request.dry_run;
    let choose_transition = |problem: &CallProblem| {
        if !can_ask {
            return None;
        }
        print_error(&problem.message);
        read_transition_choice(problem, &mut std::io::stdin().lock())
    };
    Ok(Box::pin(opener.perform(&request, issue, choose_transition)).await)
}

/// Transition that the user chooses, by its number in the list or by its name; `None` for an empty line.
fn read_transition_choice(problem: &CallProblem, answers: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    answers.read_line(&mut line).ok()?;
    let line = line.trim();
    let listed = problem
        .context
        .available_transitions
        .as_deref()
        .unwrap_or_default();
    let by_number = line
        .parse::<usize>()
        .ok()
        .and_then(|number| listed.get(number.checked_sub(1)?));
    let chosen = by_number.map_or(line, String::as_str);
    (!chosen.is_empty()).then(|| chosen.to_owned())
}

fn read_request_text(input: &Path) -> anyhow::Result<String> {
    if input == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("cannot read standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(input).with_context(|| format!("cannot read {}", input.display()))
}

fn parse_local_request(input: &str, key_from_branch: bool) -> Result<ValidatedRequest, Vec<CallProblem>> {
    let no_json = |error: serde_json::Error| {
        let message = format!(
            "the request is not JSON: line {}, column {}",
            error.line(),
            error.column()
        );
        vec![CallProblem::new(ProblemKind::ValidationError, message)]
    };
    let value: Value = serde_json::from_str(input).map_err(no_json)?;
    let mut request = parse_request(&value, Path::is_dir)?;
    if key_from_branch && request.jira_key.is_none() {
        request.jira_key = find_issue_key(&request.branch);
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transition_choice_accepts_number_or_name() {
        let names = ["Peer Review", "Design Review"].map(str::to_owned);
        let problem =
            CallProblem::new(ProblemKind::JiraTransitionAmbiguous, "choose").offering(names.to_vec());
        for (line, expected) in [
            ("2\n", Some("Design Review")),
            ("Peer Review\n", Some("Peer Review")),
            ("0\n", Some("0")),
            ("\n", None),
            ("", None),
        ] {
            assert_eq!(
                read_transition_choice(&problem, &mut line.as_bytes()).as_deref(),
                expected,
                "{line:?}"
            );
        }
    }

    #[test]
    fn invalid_json_error_names_position() {
        let [problem] = parse_local_request("{\n  \"branch\": secret}", false)
            .unwrap_err()
            .try_into()
            .unwrap();
        assert_eq!(problem.kind, ProblemKind::ValidationError);
        assert_eq!(problem.message, "the request is not JSON: line 2, column 13");
    }
}
