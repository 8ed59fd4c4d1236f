//! `journeyman nats-users`: users and permissions of the NATS server.

use std::process::ExitCode;

use clap::Args;
use queue::Role;

use super::say;

/// Print the users of NATS with their permissions, in the form of k8s/base/settings/nats-users.conf
#[derive(Debug, Args)]
pub(super) struct Arguments {}

/// Prints the content of `k8s/base/settings/nats-users.conf`.
pub(super) async fn run(_: Arguments) -> anyhow::Result<ExitCode> {
    say(users_of_a_cluster().trim_end());
    Ok(ExitCode::SUCCESS)
}

fn users_of_a_cluster() -> String {
    let variables = Role::ALL.map(|role| (role, format!("${}", variable(role))));
    let users = variables.each_ref().map(|(role, name)| (*role, name.as_str()));
    format!(
        "# Rendered from the topology of streams: journeyman nats-users. Public keys come from the environment.\n{}",
        queue::authorization(&users)
    )
}

/// Environment variable with the public key of a service.
pub(super) fn variable(role: Role) -> String {
    format!("NATS_{}", role.name().to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_users_match_topology() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../k8s/base/settings/nats-users.conf"
        );
        let stored = std::fs::read_to_string(file).unwrap();
        let wanted = users_of_a_cluster();
        assert!(
            stored == wanted,
            "k8s/base/settings/nats-users.conf differs: write the output of `journeyman nats-users` there"
        );
    }
}
