//! Logs of CI systems outside of GitHub, printed by a program of the operator.

use std::{process::Stdio, time::Duration};

use domain::{RepositoryName, cause::format_error_chain};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Command,
};

// Limit of kept output. The end is kept, because it contains the failure.
const MOST_BYTES: usize = 512 * 1024;
// Prefix of the variables that are passed on to the program, for the token of its CI system. The rest of the service's
// environment contains other secrets and is not passed on.
const PASSED_ON: &str = "CI_LOGS_";

/// Runs the program and returns the end of its output about a failed check; `None`, with a warning, when it fails or times out.
///
/// It runs without a shell. Other people choose the name of the check. The name is passed in a variable, so that no program
/// takes it for an option or for code.
pub(super) async fn read_printed_log(
    command: &[String],
    repository: &RepositoryName,
    check: &github::CommitCheck,
    patience: Duration,
) -> Option<String> {
    let (program, arguments) = command.split_first()?;
    match tokio::time::timeout(patience, run_log_command(program, arguments, repository, check)).await {
        Ok(Ok(text)) => Some(text).filter(|text| !text.trim().is_empty()),
        Ok(Err(error)) => {
            tracing::warn!(%repository, program, check = check.id, error = %format_error_chain(&error), "ci.logs_command failed");
            None
        }
        Err(_) => {
            tracing::warn!(%repository, program, check = check.id, "ci.logs_command took too long");
            None
        }
    }
}

async fn run_log_command(
    program: &str,
    arguments: &[String],
    repository: &RepositoryName,
    check: &github::CommitCheck,
) -> std::io::Result<String> {
    let inherited = std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        name == "PATH" || name == "HOME" || name.starts_with(PASSED_ON)
    });
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(inherited)
        .env("CI_CHECK_NAME", &check.name)
        .env("CI_CHECK_URL", &check.url)
        .env("CI_REPOSITORY", repository.to_string())
        // The program must not wait for input, and its error output would mix into the service's log.
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // The time limit drops the future, and the program must not outlive it.
        .kill_on_drop(true)
        .spawn()?;
    let text = match child.stdout.take() {
        Some(output) => read_end(output).await?,
        None => Vec::new(),
    };
    let status = child.wait().await?;
    if !status.success() {
        return Err(std::io::Error::other(status.to_string()));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

async fn read_end(mut output: impl AsyncRead + Unpin) -> std::io::Result<Vec<u8>> {
    let (mut kept, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        let read = output.read(&mut piece).await?;
        if read == 0 {
            return Ok(kept);
        }
        kept.extend_from_slice(&piece[..read]);
        // Truncated at twice the limit, so that most reads do not move the buffer.
        if kept.len() > 2 * MOST_BYTES {
            kept.drain(..kept.len() - MOST_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(120);

    fn build_commit_check(name: &str) -> github::CommitCheck {
        github::CommitCheck {
            kind: github::CheckKind::Status,
            id: 7,
            name: name.to_owned(),
            suite: 0,
            status: github::CheckStatus::Completed,
            conclusion: Some(github::CheckConclusion::Failure),
            completed_at: None,
            url: "https://ci.example/jobs/7".to_owned(),
            output_tail: String::new(),
        }
    }

    async fn run_log_script(script: &str, name: &str, patience: Duration) -> Option<String> {
        let command = ["sh", "-c", script].map(str::to_owned);
        let repository = "acme/shop".parse().unwrap();
        read_printed_log(&command, &repository, &build_commit_check(name), patience).await
    }

    #[tokio::test]
    async fn log_program_gets_check_in_variables() {
        let name = "$(touch /tmp/never); `id` '\"";
        let script =
            r#"printf '%s|%s|%s|%s' "$CI_CHECK_NAME" "$CI_CHECK_URL" "$CI_REPOSITORY" "$CARGO_PKG_NAME""#;
        let text = run_log_script(script, name, PATIENCE).await.unwrap();
        assert_eq!(text, format!("{name}|https://ci.example/jobs/7|acme/shop|"));
    }

    #[tokio::test]
    async fn long_log_keeps_its_end() {
        let text = run_log_script("yes line | head -c 3000000; echo the end", "test", PATIENCE)
            .await
            .unwrap();
        assert!(
            text.len() <= 2 * MOST_BYTES && text.ends_with("the end\n"),
            "{}",
            text.len()
        );
    }

    #[tokio::test]
    async fn failing_log_program_gives_no_log() {
        assert_eq!(run_log_script("echo a log; exit 3", "test", PATIENCE).await, None);
        assert_eq!(
            run_log_script("exec sleep 60", "test", Duration::from_millis(50)).await,
            None
        );
        assert_eq!(run_log_script("echo", "test", PATIENCE).await, None);
        let nowhere = ["/no/such/program".to_owned()];
        let repository = "acme/shop".parse().unwrap();
        assert_eq!(
            read_printed_log(&nowhere, &repository, &build_commit_check("test"), PATIENCE).await,
            None
        );
        assert_eq!(
            read_printed_log(&[], &repository, &build_commit_check("test"), PATIENCE).await,
            None
        );
    }
}
