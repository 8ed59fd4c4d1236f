//! `journeyman nats-users`: users and permissions of the NATS server.

use std::process::ExitCode;

use clap::Args;
use queue::NatsRole;

use super::print_result;

/// Print the users of NATS with their permissions, in the form of k8s/base/settings/nats-users.conf
#[derive(Debug, Args)]
pub(super) struct Arguments {}

/// Prints the content of `k8s/base/settings/nats-users.conf`.
pub(super) async fn run_command(_: Arguments) -> anyhow::Result<ExitCode> {
    print_result(render_cluster_users().trim_end());
    Ok(ExitCode::SUCCESS)
}

fn render_cluster_users() -> String {
    let variables = NatsRole::ALL.map(|role| (role, format!("${}", name_key_variable(role))));
    let users = variables.each_ref().map(|(role, name)| (*role, name.as_str()));
    format!(
        "# Rendered from the topology of streams: journeyman nats-users. Public keys come from the environment.\n{}",
        queue::render_authorization(&users)
    )
}

/// Environment variable with the public key of a service.
pub(super) fn name_key_variable(role: NatsRole) -> String {
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
        let wanted = render_cluster_users();
        assert!(
            stored == wanted,
            "k8s/base/settings/nats-users.conf differs: write the output of `journeyman nats-users` there"
        );
    }
}
