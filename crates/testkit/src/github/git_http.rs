//! Git over smart HTTP: `git http-backend` as CGI on the stand-in's bare repositories.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use tokio::io::AsyncWriteExt;

use super::auth::token_of;
use super::hub::GitHubState;
use super::{READER_LOGIN, WRITER_LOGIN, lfs, repository, slow_link};
use crate::http::{basic_auth, header_text};

/// Time limit of a git request.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

pub(super) async fn serve_git_request(
    State(hub): State<Arc<GitHubState>>,
    Path((owner, name, rest)): Path<(String, String, String)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(token) = basic_auth(&headers).and_then(|(user, token)| {
        // GitHub accepts an installation's token only with this user name, and a personal token (`ghp_`) with
        // any.
        let known = user == "x-access-token" || token.starts_with("ghp_");
        token_of(&hub, &token).filter(|_| known)
    }) else {
        let ask = [(header::WWW_AUTHENTICATE, "Basic realm=\"GitHub\"")];
        return (StatusCode::UNAUTHORIZED, ask, "Authentication required").into_response();
    };
    let writes = token.writes;
    let full_name = format!("{owner}/{}", name.strip_suffix(".git").unwrap_or(&name));
    // The clone releases the lock before git runs.
    let Some(repo) = hub.world().repos.get(&full_name).cloned() else {
        return (StatusCode::NOT_FOUND, "Repository not found.").into_response();
    };
    let query = uri.query().unwrap_or_default();
    let push = rest == "git-receive-pack" || query.contains("service=git-receive-pack");
    if push && !writes {
        hub.log
            .violation(format!("the reader tried to push to {full_name}"));
        return (StatusCode::FORBIDDEN, "Write access to repository not granted.").into_response();
    }
    let request = CgiRequest {
        path_info: format!("/{full_name}.git/{rest}"),
        query,
        method: &method,
        headers: &headers,
        body,
    };
    let level = if push { "write" } else { "read" };
    if token.may(Some(&full_name), &[("contents", level)]).is_err() {
        return (StatusCode::FORBIDDEN, "Write access to repository not granted.").into_response();
    }
    if rest == lfs::BATCH {
        return lfs::answer_batch(&hub, &full_name, (&method, &headers), &request.body);
    }
    let login = if writes { WRITER_LOGIN } else { READER_LOGIN };
    if rest == "git-upload-pack" {
        return slow_link::throttle_response(request.run(&hub, login).await, &hub);
    }
    if rest != "git-receive-pack" {
        return request.run(&hub, login).await;
    }
    let pushed = list_pushed_branches(&request.body);
    // The branches before and after a push show which of them moved, so pushes run one at a time.
    let one_at_a_time = hub.pushes.lock().await;
    let before = repository::list_branches(&repo.path);
    let response = request.run(&hub, login).await;
    let followed = hub.after_push(&full_name, &before, &pushed, login);
    let held = followed.and_then(|()| hub.check_early(&full_name, &before));
    drop(one_at_a_time);
    match held {
        Ok(hold) => tokio::time::sleep(hold).await,
        Err(error) => tracing::error!(%error, "push not followed"),
    }
    response
}

/// Reads the branches that a push names: packets of `<length><old> <new> <reference>` before the first flush packet,
/// as gitprotocol-pack describes them.
fn list_pushed_branches(mut body: &[u8]) -> BTreeSet<String> {
    let mut branches = BTreeSet::new();
    while let Some((length, rest)) = body.split_at_checked(4) {
        let length = std::str::from_utf8(length).ok();
        let length = length.and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let packet = length
            .and_then(|length| length.checked_sub(4))
            .and_then(|length| rest.split_at_checked(length));
        let Some((packet, next)) = packet else { break };
        let packet = String::from_utf8_lossy(packet);
        // The first packet continues with the capabilities of the client.
        let command = packet.split(['\0', '\n']).next().unwrap_or_default();
        let reference = command.splitn(3, ' ').nth(2).unwrap_or_default();
        branches.extend(reference.strip_prefix("refs/heads/").map(str::to_owned));
        body = next;
    }
    branches
}

struct CgiRequest<'request> {
    path_info: String,
    query: &'request str,
    method: &'request Method,
    headers: &'request HeaderMap,
    body: Bytes,
}

impl CgiRequest<'_> {
    async fn run(self, hub: &GitHubState, login: &str) -> Response {
        match tokio::time::timeout(TIMEOUT, self.output(hub, login)).await {
            Ok(Ok(output)) => parse_cgi_output(&output),
            Ok(Err(error)) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
            Err(_) => StatusCode::GATEWAY_TIMEOUT.into_response(),
        }
    }

    async fn output(self, hub: &GitHubState, login: &str) -> anyhow::Result<Vec<u8>> {
        let header = |name: &str| header_text(self.headers, name);
        let mut child = tokio::process::Command::new("git")
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", &hub.root)
            // Git's own settings of this machine must not change the answers.
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("PATH_INFO", &self.path_info)
            .env("QUERY_STRING", self.query)
            .env("REQUEST_METHOD", self.method.as_str())
            .env("CONTENT_TYPE", header("content-type"))
            .env("CONTENT_LENGTH", self.body.len().to_string())
            .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
            .env("GIT_PROTOCOL", header("git-protocol"))
            .env("REMOTE_USER", login)
            .env("REMOTE_ADDR", "127.0.0.1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take();
        let feed = async {
            if let Some(mut stdin) = stdin {
                // The backend may exit before it has read the whole body; its answer then reports the reason.
                let _ = stdin.write_all(&self.body).await;
            }
        };
        let (output, ()) = tokio::join!(child.wait_with_output(), feed);
        Ok(output?.stdout)
    }
}

fn parse_cgi_output(output: &[u8]) -> Response {
    let split = output.windows(4).position(|window| window == b"\r\n\r\n");
    let Some(end) = split else {
        return (
            StatusCode::INTERNAL_SERVER_ERROR,
            "git http-backend gave no header",
        )
            .into_response();
    };
    let mut response = Response::builder();
    // CGI replaces the status line of HTTP by a header `Status`.
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        match line.split_once(": ") {
            Some(("Status", status)) => {
                let code = status
                    .split(' ')
                    .next()
                    .and_then(|code| code.parse::<u16>().ok())
                    .unwrap_or(500);
                response = response.status(code);
            }
            Some((name, value)) => response = response.header(name, value),
            None => {}
        }
    }
    let body = Body::from(output[end + 4..].to_vec());
    response
        .body(body)
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

#[cfg(test)]
mod tests {
    use super::list_pushed_branches;

    #[test]
    fn push_names_its_branches() {
        let (old, new) = ("a".repeat(40), "0".repeat(40));
        let packet = |text: String| format!("{:04x}{text}", text.len() + 4);
        let first = packet(format!(
            "{old} {new} refs/heads/feat/x\0 report-status side-band-64k"
        ));
        let body = [
            first,
            packet(format!("{new} {old} refs/tags/v1")),
            packet(format!("{new} {old} refs/heads/main\n")),
            "0000PACK".to_owned(),
            packet(format!("{new} {old} refs/heads/behind-the-commands")),
        ]
        .concat();
        let branches = list_pushed_branches(body.as_bytes());
        assert_eq!(branches.into_iter().collect::<Vec<_>>(), ["feat/x", "main"]);
        for broken in ["", "0000", "00", "zzzz", "ffffshort"] {
            assert!(list_pushed_branches(broken.as_bytes()).is_empty(), "{broken}");
        }
    }
}
