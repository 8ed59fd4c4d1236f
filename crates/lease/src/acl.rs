//! What the users of the server may do there, beside the scripts that need it.

use crate::{budgets, leases, limits};

/// A service that uses the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// Handles leases and budgets.
    Planner,
    /// Shares what it knows of the limits of its accounts outside.
    Ingest,
    /// The same.
    Reporter,
}

/// What the scripts of leases and budgets call, and those who run them.
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
/// The same for limits.
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

impl User {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Planner, Self::Ingest, Self::Reporter];

    /// The user's name, which is its service's.
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

/// The lines of an ACL file: nobody may do anything but these users, each of which may do its part and nothing else. A
/// password is given as the hexadecimal SHA-256 of it.
pub fn acl<'a>(users: impl IntoIterator<Item = (User, &'a str)>) -> String {
    let lines = users.into_iter().map(|(user, sha256)| user.line(sha256));
    std::iter::once("user default off\n".to_owned())
        .chain(lines)
        .collect()
}
