//! What the host and the pod of the stand-ins both name, and what they say to each other.

use domain::TicketKey;
use e2e::Outside;
use serde::{Deserialize, Serialize};

/// Where the system under test runs.
pub(crate) const INSIDE: &str = "journeyman-test";
/// Where the stand-ins run: the outside, as far as the system under test is concerned.
pub(crate) const OUTSIDE: &str = "journeyman-test-outside";
/// The pod of the stand-ins, and where it is told what to do.
pub(crate) const POD: &str = "stand-ins";
/// The port of [`POD`] for the host.
pub(crate) const CONTROL_PORT: u16 = 8080;
/// A port of [`POD`] that answers whoever connects, and that nobody of the system has business with.
pub(crate) const PLANTED_PORT: u16 = 9999;
/// Certificates, keys and the operator's token in [`POD`].
pub(crate) const FILES: &str = "/run/secrets/stand-ins";

/// The names of GitHub, Jira and the model in the cluster.
pub(crate) fn vendors() -> [String; 3] {
    ["github", "jira", "model"].map(|name| format!("{name}.{OUTSIDE}.svc"))
}

/// Where the stand-ins are for the system under test.
pub(crate) fn outside() -> Outside {
    let [github, jira, model] = vendors().map(|name| format!("https://{name}"));
    Outside {
        github_git: format!("{github}/git"),
        github_api: github,
        jira,
        model,
    }
}

/// Tickets that are asked for at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// How many.
    pub(crate) tickets: usize,
    /// What the test command of each does.
    pub(crate) command: String,
}

/// How far they are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Round {
    /// Nothing changes any more.
    pub(crate) is_over: bool,
    /// Asked for.
    pub(crate) tickets: usize,
    /// Done, with a merged pull request.
    pub(crate) done: usize,
    /// Since they were asked for.
    pub(crate) wall_s: u64,
    /// What is missing or wrong.
    pub(crate) lost: Vec<String>,
    /// What is there twice.
    pub(crate) doubled: Vec<String>,
    /// What each command printed that the model was shown.
    pub(crate) outputs: Vec<String>,
}

/// A ticket of the stand-in of Jira.
pub(crate) fn ticket(key: &str) -> anyhow::Result<TicketKey> {
    Ok(TicketKey::jira(key)?)
}
