//! The whole system on one machine with stand-ins for the outside: for the stories, the demo and the bench.

mod balancer;
mod outside;
mod processes;
pub mod standins;
mod world;

pub use outside::{Dialect, Outside, WEBHOOK_SECRET};
pub use processes::{Processes, binary, free_port};
pub use world::{Mode, Options, World, ci};
