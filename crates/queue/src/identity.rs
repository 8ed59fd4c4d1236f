//! Keys that clients prove who they are with: the server knows the public half only.

use secrecy::SecretString;

/// A fresh key pair of one user (an nkey).
#[derive(Debug)]
pub struct Identity {
    /// What the server's configuration names the user by.
    pub public_key: String,
    /// What the client signs with: `nats.nkey_seed` of its settings.
    pub seed: SecretString,
}

impl Identity {
    /// A new pair from the system's random numbers.
    pub fn generate() -> Self {
        let pair = nkeys::KeyPair::new_user();
        // A pair that was just made has its seed.
        let seed = pair.seed().unwrap_or_default();
        Self {
            public_key: pair.public_key(),
            seed: SecretString::from(seed),
        }
    }
}
