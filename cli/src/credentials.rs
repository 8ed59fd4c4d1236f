//! Credentials of each service for the NATS and the Redis of this start.
//!
//! They are generated at each start, kept in memory, and given to that service alone; the servers' files contain public keys and
//! hashes.

use std::collections::BTreeMap;

use lease::RedisUser;
use queue::{NatsIdentity, NatsRole};
use secrecy::ExposeSecret;

use crate::secrets::generate_password;

/// Settings of single services as environment variables, in addition to the shared ones.
#[derive(Clone, Default)]
pub struct ServiceCredentials(BTreeMap<&'static str, Vec<(String, String)>>);

impl ServiceCredentials {
    /// Settings of a service by its name; empty for executor and egress.
    pub fn of(&self, service: &str) -> &[(String, String)] {
        self.0.get(service).map_or(&[], Vec::as_slice)
    }

    /// Generates a key pair for each service that uses NATS, and returns the server's `authorization` block.
    pub(crate) fn for_nats(&mut self) -> String {
        let identities = NatsRole::ALL.map(|role| (role, NatsIdentity::generate()));
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
        queue::render_authorization(&users)
    }

    /// Generates a password for each service that uses Redis, and returns the lines of the server's ACL file.
    pub(crate) fn for_redis(&mut self) -> String {
        let users = RedisUser::ALL.map(|user| {
            let (password, sha256) = generate_password();
            self.add(user.name(), "REDIS__USERNAME", user.name().to_owned());
            self.add(user.name(), "REDIS__PASSWORD", password);
            (user, sha256)
        });
        lease::render_acl(users.iter().map(|(user, sha256)| (*user, sha256.as_str())))
    }

    /// Adds a setting for a service, by its key without `JOURNEYMAN__`.
    pub fn add(&mut self, service: &'static str, key: &str, value: String) {
        let own = self.0.entry(service).or_default();
        own.push((format!("JOURNEYMAN__{key}"), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_get_separate_credentials_servers_no_secret() {
        let mut credentials = ServiceCredentials::default();
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
