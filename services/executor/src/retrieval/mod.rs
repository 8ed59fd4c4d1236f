//! Code index of each repository. A thread builds it from the mirror; `find_code` and the seed context search
//! it. No call waits for it.

mod by_hand;
mod dbt;
mod fallback;
mod seeds;
mod shelf;
mod source;
mod worker;

#[cfg(test)]
mod quality;

pub(crate) use by_hand::{Task, run};
pub(crate) use fallback::literally;
pub(crate) use seeds::seed_context;
pub(crate) use shelf::{Indexes, Searchable, Status};
