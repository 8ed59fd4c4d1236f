//! Strict, stateful stand-ins for the outside, and real servers, for tests and the demo only.

mod eventually;

pub use eventually::eventually;
pub use servers::{NatsOptions, NatsServer, RedisOptions, RedisServer, Sync};
