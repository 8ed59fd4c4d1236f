//! `JetStream` as Journeyman uses it: topology, keyed logs with wake-up tokens, journal, typed tables, objects, dead
//! letters.
//!
//! The only crate that names async-nats; no other crate sees acks, subjects or stream names.

mod body;
mod collect;
mod connection;
mod dead;
mod delivery;
mod epoch;
mod error;
mod identity;
mod journal;
mod keyed_log;
mod migrate;
mod objects;
mod permissions;
mod pull;
mod purge;
mod settings;
mod singleton;
mod subject;
mod table;
mod timers;
mod token;
mod topology;
mod trace;
mod unreadable;
mod watch;
mod wire;

pub use collect::{Garbage, Search};
pub use connection::Queue;
pub use dead::{DeadLetter, DeadLetters};
pub use delivery::{Deliveries, Disposition, WebhookDelivery};
pub use error::Error;
pub use identity::Identity;
pub use journal::Journal;
pub use keyed_log::{Appended, Keyed, KeyedLog};
pub use objects::Objects;
pub use permissions::{Permissions, Role, authorization};
pub use settings::Settings;
pub use singleton::Singleton;
pub use table::{Bucket, Revision, Table};
pub use timers::Timers;
pub use token::{Token, Tokens};
pub use unreadable::{Found, Unreadable};
pub use watch::Watch;
