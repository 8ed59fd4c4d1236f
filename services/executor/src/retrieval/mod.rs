//! The index of each repository: built in the background from its mirror, searched by `find_code` and for the first
//! look at a ticket. Nobody waits for it.

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
