//! Arguments of `dead`.

use clap::Subcommand;

use super::Api;

/// What to do with dead letters.
#[derive(Debug, Subcommand)]
pub enum Dead {
    /// List them, newest last
    List {
        /// Where the API is.
        #[command(flatten)]
        api: Api,
    },
    /// Print one with what it is about
    Show {
        /// Its number in the list
        sequence: u64,
        /// Where the API is.
        #[command(flatten)]
        api: Api,
    },
    /// Try it once more and forget the letter
    Retry {
        /// Its number in the list
        sequence: u64,
        /// Where the API is.
        #[command(flatten)]
        api: Api,
    },
    /// Forget it
    Drop {
        /// Its number in the list
        sequence: u64,
        /// Where the API is.
        #[command(flatten)]
        api: Api,
    },
}
