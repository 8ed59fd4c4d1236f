//! The certificates that services prove themselves with: an authority of their own, what it issues, and what a certificate
//! says. Nothing here reads a file or a clock.

mod authority;
mod error;
mod leaf;
mod look;

pub use authority::{AUTHORITY, Authority, CERTIFICATE, Issued, KEY};
pub use error::Error;
pub use leaf::{Leaf, SERVICES, leaves};
pub use look::{Seen, belong, look};
