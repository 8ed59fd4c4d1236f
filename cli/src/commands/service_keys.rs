//! `journeyman service-keys`: what services prove their identity with.

use std::process::ExitCode;

use clap::Args;
use lease::User;
use queue::{Identity, Role};
use secrecy::ExposeSecret;

use super::{nats_users::variable, say};
use crate::credentials::new_password;

/// Make the keys and the password that services prove their identity with to NATS and Redis
#[derive(Debug, Args)]
pub(super) struct Arguments {}

/// The entries of `k8s/secrets.example.yaml` for NATS and Redis, and the public keys that the server knows.
pub(super) async fn run(_: Arguments) -> anyhow::Result<ExitCode> {
    let mut public = Vec::new();
    let mut users = Vec::new();
    for role in Role::ALL {
        let identity = Identity::generate();
        let seed = identity.seed.expose_secret();
        say(&format!("# {}, a secret:\nnats-nkey-seed: {seed}", holder(role)));
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
    Ok(ExitCode::SUCCESS)
}

fn holder(role: Role) -> String {
    match role {
        Role::Backup => "for `journeyman backup` and `journeyman restore`, in no service".to_owned(),
        service => format!("{}-secrets", service.name()),
    }
}
