//! What each service proves its identity with to the NATS and the Redis of this start: made afresh, kept in memory, and given to
//! that service alone. The servers' files hold public keys and a hash.

use std::collections::BTreeMap;

use lease::User;
use queue::{Identity, Role};
use secrecy::ExposeSecret;

use crate::secrets::new_password;

/// The settings, as environment variables, that one service gets beyond those that all share.
#[derive(Clone, Default)]
pub struct Credentials(BTreeMap<&'static str, Vec<(String, String)>>);

impl Credentials {
    /// Those of a service by its name; executor and egress have none.
    pub fn of(&self, service: &str) -> &[(String, String)] {
        self.0.get(service).map_or(&[], Vec::as_slice)
    }

    /// A key pair for each service that uses NATS; gives the server's `authorization` block.
    pub(crate) fn for_nats(&mut self) -> String {
        let identities = Role::ALL.map(|role| (role, Identity::generate()));
        for (role, identity) in &identities {
            self.add(
                role.name(),
                "NATS__NKEY_SEED",
                identity.seed.expose_secret().to_owned(),
            );
        }
        let users = identities
            .each_ref()
            .map(|(role, identity)| (*role, identity.public_key.as_str()));
        queue::authorization(&users)
    }

    /// A password for each service that uses Redis; gives the lines of the server's ACL file.
    pub(crate) fn for_redis(&mut self) -> String {
        let users = User::ALL.map(|user| {
            let (password, sha256) = new_password();
            self.add(user.name(), "REDIS__USERNAME", user.name().to_owned());
            self.add(user.name(), "REDIS__PASSWORD", password);
            (user, sha256)
        });
        lease::acl(users.iter().map(|(user, sha256)| (*user, sha256.as_str())))
    }

    /// One setting more for a service, by its key without `JOURNEYMAN__`.
    pub fn add(&mut self, service: &'static str, key: &str, value: String) {
        let own = self.0.entry(service).or_default();
        own.push((format!("JOURNEYMAN__{key}"), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_gets_its_own_and_the_servers_learn_no_secret() {
        let mut credentials = Credentials::default();
        let nats = credentials.for_nats();
        let redis = credentials.for_redis();
        let mut seen = Vec::new();
        for (service, count) in [
            ("ingest", 3),
            ("planner", 3),
            ("reporter", 3),
            ("executor", 0),
            ("egress", 0),
        ] {
            let own = credentials.of(service);
            assert_eq!(own.len(), count, "{service}");
            for (name, value) in own.iter().filter(|(name, _)| !name.ends_with("USERNAME")) {
                assert!(!nats.contains(value) && !redis.contains(value), "{name}");
                assert!(!seen.contains(value), "{name} of {service} is shared");
                seen.push(value.clone());
            }
        }
        assert!(redis.starts_with("user default off\n"), "{redis}");
    }
}
