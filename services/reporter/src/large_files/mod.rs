//! Contents of Git LFS for executors: fetched with the reading token of the repository, verified, kept beside the mirrors.
//!
//! Executors hold no credential, so they get the contents of a commit through the git gate.

mod fetch;
mod library;
mod selection;
mod settings;

pub(crate) use self::library::{LfsLibrary, LfsView};
pub use self::settings::LfsSettings;
