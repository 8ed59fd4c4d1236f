//! Nkeys, with which clients prove their identity: the server knows the public half only.

use secrecy::SecretString;

/// New key pair (nkey) of one user.
#[derive(Debug)]
pub struct NatsIdentity {
    /// Public key that names the user in the server's configuration.
    pub public_key: String,
    /// Seed with which the client signs: `nats.nkey_seed` of its settings.
    pub seed: SecretString,
}

impl NatsIdentity {
    /// Generates a pair from the system's random numbers.
    pub fn generate() -> Self {
        let pair = nkeys::KeyPair::new_user();
        // A generated pair always has a seed; only pairs of public keys have none.
        let seed = pair.seed().unwrap_or_default();
        Self {
            public_key: pair.public_key(),
            seed: SecretString::from(seed),
        }
    }
}
