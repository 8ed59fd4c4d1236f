//! What the one user of leases and budgets may do at the server, beside the scripts that need it.

use crate::{budgets, leases};

/// The user's name.
pub const USER: &str = "planner";

/// What scripts and planners call.
const COMMANDS: [&str; 13] = [
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

/// The lines of an ACL file: nobody may do anything but this user, who may handle leases and budgets and nothing else. The
/// password is given as the hexadecimal SHA-256 of it.
pub fn acl(password_sha256: &str) -> String {
    let commands: Vec<String> = COMMANDS.iter().map(|command| format!("+{command}")).collect();
    let keys = format!("~{}* ~{}*", leases::PREFIX, budgets::PREFIX);
    format!(
        "user default off\nuser {USER} on #{password_sha256} resetkeys {keys} resetchannels -@all {}\n",
        commands.join(" ")
    )
}
