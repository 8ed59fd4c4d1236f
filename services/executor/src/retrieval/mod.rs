//! Code index of each repository. A thread builds it from the mirror; `find_code` and the seed context search
//! it. No call waits for it.

mod dbt;
mod fallback;
mod index_command;
mod index_registry;
mod seeds;
mod source;
mod worker;

#[cfg(test)]
mod quality;

pub(crate) use fallback::search_literally;
pub(crate) use index_command::{IndexArguments, run_index_command};
pub(crate) use index_registry::{CommitIndex, IndexRegistry, IndexStatus};
pub(crate) use seeds::seed_context;
