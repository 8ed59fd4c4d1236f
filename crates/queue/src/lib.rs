//! JetStream as Journeyman uses it: topology, keyed logs with wake-up tokens, journal, typed tables, objects, dead
//! letters. The only crate that names async-nats; no other crate sees acks, subjects or stream names.

mod contract;
pub use contract::*;
