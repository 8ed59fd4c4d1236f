//! Credentials of services: `journeyman grant-key`, `service-keys` and `nats-users`.

use std::process::ExitCode;

use clap::Args;
use lease::RedisUser;
use queue::{NatsIdentity, NatsRole};
use secrecy::{ExposeSecret, SecretString};

use super::print_result;
use crate::secrets::generate_password;

/// Generate a key pair for grants: the private key for the planner, the public key for executor, reporter and
/// egress
#[derive(Debug, Args)]
pub(super) struct GrantKeyArguments {}

pub(super) async fn run_grant_key(_: GrantKeyArguments) -> anyhow::Result<ExitCode> {
    let keys = grant::generate_key_pair();
    print_result(&format!(
        "# for the planner alone, a secret:\n[planner]\ngrant_key_id = \"{}\"",
        keys.id
    ));
    print_result(&format!("grant_key = \"{}\"\n", keys.private_key.expose_secret()));
    print_result(&format!(
        "# for executor, reporter and egress, public:\n[executor.grant_keys]\n{} = \"{}\"",
        keys.id, keys.public_key
    ));
    for section in ["reporter", "egress"] {
        print_result(&format!(
            "[{section}.grant_keys]\n{} = \"{}\"",
            keys.id, keys.public_key
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Generate the keys and the passwords with which services authenticate to NATS and Redis
#[derive(Debug, Args)]
pub(super) struct ServiceKeysArguments {}

/// Credentials of one service for NATS and Redis.
pub(super) struct ServiceKeys {
    pub(super) role: NatsRole,
    pub(super) nkey_seed: SecretString,
    /// Absent for a service that does not use Redis.
    pub(super) redis_password: Option<SecretString>,
}

/// New credentials for every service, and their public counterparts for the servers.
pub(super) struct NewKeys {
    pub(super) services: Vec<ServiceKeys>,
    /// Content of the ACL file of Redis, with password hashes.
    pub(super) acl: String,
    /// Public keys for the map `nats-users`, as `NAME=VALUE`.
    pub(super) public: Vec<String>,
}

impl NewKeys {
    pub(super) fn generate() -> Self {
        let (mut services, mut public, mut users) = (Vec::new(), Vec::new(), Vec::new());
        for role in NatsRole::ALL {
            let identity = NatsIdentity::generate();
            let user = RedisUser::ALL.into_iter().find(|user| user.name() == role.name());
            let redis_password = user.map(|user| {
                let (password, sha256) = generate_password();
                users.push((user, sha256));
                SecretString::from(password)
            });
            public.push(format!("{}={}", name_key_variable(role), identity.public_key));
            services.push(ServiceKeys {
                role,
                nkey_seed: identity.seed,
                redis_password,
            });
        }
        let acl = lease::render_acl(users.iter().map(|(user, sha256)| (*user, sha256.as_str())));
        Self {
            services,
            acl,
            public,
        }
    }
}

/// Prints the entries of `k8s/secrets.example.yaml` for NATS and Redis, and the public keys for the server.
pub(super) async fn run_service_keys(_: ServiceKeysArguments) -> anyhow::Result<ExitCode> {
    let keys = NewKeys::generate();
    for service in &keys.services {
        let (holder, seed) = (name_key_holder(service.role), service.nkey_seed.expose_secret());
        print_result(&format!("# {holder}, a secret:\nnats-nkey-seed: {seed}"));
        if let Some(password) = &service.redis_password {
            print_result(&format!("redis-password: {}", password.expose_secret()));
        }
        print_result("");
    }
    let acl = keys.acl.replace('\n', "\n  ");
    print_result(&format!(
        "# redis-acl, with the passwords' hashes:\nusers.acl: |\n  {}\n",
        acl.trim_end()
    ));
    print_result(&format!(
        "# ConfigMap nats-users, public:\n{}",
        keys.public.join("\n")
    ));
    Ok(ExitCode::SUCCESS)
}

fn name_key_holder(role: NatsRole) -> String {
    match role {
        NatsRole::Backup => "for `journeyman backup` and `journeyman restore`, in no service".to_owned(),
        NatsRole::Ingest | NatsRole::Planner | NatsRole::Reporter => format!("{}-secrets", role.name()),
    }
}

/// Print the users of NATS with their permissions, in the form of k8s/base/settings/nats-users.conf
#[derive(Debug, Args)]
pub(super) struct NatsUsersArguments {}

/// Prints the content of `k8s/base/settings/nats-users.conf`.
pub(super) async fn run_nats_users(_: NatsUsersArguments) -> anyhow::Result<ExitCode> {
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
fn name_key_variable(role: NatsRole) -> String {
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
