//! What the one user of the leases may do at the server, beside the scripts that need it.

use crate::leases::PREFIX;

/// The user's name.
pub const USER: &str = "planner";

/// The lines of an ACL file: nobody may do anything but this user, who may handle leases and nothing else. The password
/// is given as the hexadecimal SHA-256 of it.
pub fn acl(password_sha256: &str) -> String {
    let commands = ["get", "set", "del", "eval", "evalsha", "script|load", "ping"];
    let commands: Vec<String> = commands.iter().map(|command| format!("+{command}")).collect();
    format!(
        "user default off\nuser {USER} on #{password_sha256} resetkeys ~{PREFIX}* resetchannels -@all {}\n",
        commands.join(" ")
    )
}
