//! Tokens for the API, key pairs for grants, and what services prove their identity with.

use std::process::ExitCode;

use anyhow::bail;
use lease::User;
use queue::{Identity, Role};
use secrecy::ExposeSecret;

use super::say;
use crate::credentials::{new_password, new_token};

pub(super) fn token(name: &str, role: &str) -> anyhow::Result<ExitCode> {
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if !is_name {
        bail!("the name must be lower-case letters and digits");
    }
    if !["viewer", "operator", "admin"].contains(&role) {
        bail!("the role must be viewer, operator or admin");
    }
    let (token, sha256) = new_token();
    say(&format!(
        "# for its bearer, shown once:\n{}\n",
        token.expose_secret()
    ));
    say(&format!(
        "# for journeyman.toml:\n[ingest.api_tokens.{name}]\nsha256 = \"{sha256}\"\nrole = \"{role}\""
    ));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn grant_key() -> ExitCode {
    let keys = grant::generate();
    say(&format!(
        "# for the planner alone, a secret:\n[planner]\ngrant_key_id = \"{}\"",
        keys.id
    ));
    say(&format!("grant_key = \"{}\"\n", keys.private_key.expose_secret()));
    say(&format!(
        "# for executor, reporter and egress, public:\n[executor.grant_keys]\n{} = \"{}\"",
        keys.id, keys.public_key
    ));
    for section in ["reporter", "egress"] {
        say(&format!(
            "[{section}.grant_keys]\n{} = \"{}\"",
            keys.id, keys.public_key
        ));
    }
    ExitCode::SUCCESS
}

/// The entries of `k8s/secrets.example.yaml` for NATS and Redis, and the public keys that the server knows.
pub(super) fn service_keys() -> ExitCode {
    let mut public = Vec::new();
    let mut users = Vec::new();
    for role in Role::ALL {
        let identity = Identity::generate();
        let seed = identity.seed.expose_secret();
        say(&format!(
            "# {}-secrets, a secret:\nnats-nkey-seed: {seed}",
            role.name()
        ));
        if let Some(user) = User::ALL.into_iter().find(|user| user.name() == role.name()) {
            let (password, sha256) = new_password();
            say(&format!("redis-password: {password}"));
            users.push((user, sha256));
        }
        say("");
        public.push(format!("{}={}", variable(role), identity.public_key));
    }
    let acl = lease::acl(users.iter().map(|(user, sha256)| (*user, sha256.as_str())));
    let acl = acl.replace('\n', "\n  ");
    say(&format!(
        "# redis-acl, with the passwords' hashes:\nusers.acl: |\n  {}\n",
        acl.trim_end()
    ));
    say(&format!("# ConfigMap nats-users, public:\n{}", public.join("\n")));
    ExitCode::SUCCESS
}

/// What `k8s/base/settings/nats-users.conf` must hold.
pub(super) fn nats_users() -> ExitCode {
    say(users_of_a_cluster().trim_end());
    ExitCode::SUCCESS
}

fn users_of_a_cluster() -> String {
    let variables = Role::ALL.map(|role| (role, format!("${}", variable(role))));
    let users = variables.each_ref().map(|(role, name)| (*role, name.as_str()));
    format!(
        "# Rendered from the topology of streams: journeyman nats-users. Public keys come from the environment.\n{}",
        queue::authorization(&users)
    )
}

fn variable(role: Role) -> String {
    format!("NATS_{}", role.name().to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_of_the_manifests_are_those_of_the_topology() {
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
