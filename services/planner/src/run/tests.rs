//! Stories of runs: facts in, action out.

mod gate;
mod implement;
mod play;
mod properties;
mod retry;
mod tell;
mod triage;

pub(crate) use play::{info, request, ticket, trigger};
