//! Redis ACL of the services, derived from the scripts that need the commands.

use crate::{budgets, leases, limits};

/// Service with a Redis user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedisUser {
    /// Planner: leases and budgets.
    Planner,
    /// Ingest: limits of its accounts at GitHub and Jira.
    Ingest,
    /// Reporter: limits of its accounts at GitHub and Jira.
    Reporter,
}

// Commands of the scripts of leases and budgets, and the commands that run scripts.
const OF_PLANNERS: [&str; 13] = [
    "get",
    "set",
    "del",
    "eval",
    "evalsha",
    "script|load",
    "ping",
    "hgetall",
    "hset",
    "hsetnx",
    "hdel",
    "hincrby",
    "pexpire",
];
// Commands of the scripts of limits, and the commands that run scripts.
const OF_LIMITS: [&str; 9] = [
    "eval",
    "evalsha",
    "script|load",
    "ping",
    "set",
    "pttl",
    "hget",
    "hset",
    "pexpire",
];

impl RedisUser {
    /// All users.
    pub const ALL: [Self; 3] = [Self::Planner, Self::Ingest, Self::Reporter];

    /// Name of the user, which is that of its service.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Ingest => "ingest",
            Self::Reporter => "reporter",
        }
    }

    fn line(self, password_sha256: &str) -> String {
        let (keys, commands) = match self {
            Self::Planner => (
                format!("~{}* ~{}*", leases::PREFIX, budgets::PREFIX),
                &OF_PLANNERS[..],
            ),
            Self::Ingest | Self::Reporter => (format!("~{}*", limits::PREFIX), &OF_LIMITS[..]),
        };
        let commands: Vec<String> = commands.iter().map(|command| format!("+{command}")).collect();
        format!(
            "user {} on #{password_sha256} resetkeys {keys} resetchannels -@all {}\n",
            self.name(),
            commands.join(" ")
        )
    }
}

/// Renders an ACL file that allows each user its part and forbids everything else, also to `default`.
///
/// `users` has the hexadecimal SHA-256 of each password.
pub fn render_acl<'a>(users: impl IntoIterator<Item = (RedisUser, &'a str)>) -> String {
    let lines = users.into_iter().map(|(user, sha256)| user.line(sha256));
    // Redis gives `default` all rights when the ACL file does not define it.
    std::iter::once("user default off\n".to_owned())
        .chain(lines)
        .collect()
}
