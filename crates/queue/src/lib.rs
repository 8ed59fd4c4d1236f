//! `JetStream` as Journeyman uses it: topology, keyed logs with wake-up tokens, journal, typed tables, objects, dead
//! letters.
//!
//! The only crate that names async-nats; no other crate sees acks, subjects or stream names.

mod body;
mod branches;
mod clock;
mod collect;
mod connection;
mod dead;
mod delivery;
mod digest;
mod epoch;
mod error;
mod identity;
mod journal;
mod keyed;
mod keyed_log;
mod live;
mod meta;
mod migrate;
mod names;
mod newer;
mod objects;
mod once_a_minute;
mod permissions;
mod pull;
mod pull_request_calls;
mod pull_requests;
mod purge;
mod queue;
mod settings;
mod singleton;
mod table;
mod timers;
mod token;
mod topology;
mod trace;
mod unreadable;
mod watch;
mod wire;

pub use branches::Branches;
pub use collect::{Garbage, Search};
pub use dead::{DeadLetter, DeadLetters};
pub use delivery::{Deliveries, Disposition, WebhookDelivery};
pub use error::Error;
pub use identity::Identity;
pub use journal::{Journal, JournalPage, JournalPlace};
pub use keyed::Keyed;
pub use keyed_log::{Appended, KeyedLog};
pub use live::Live;
pub use names::{Bucket, Key};
pub use objects::Objects;
pub use permissions::{Permissions, Role, authorization};
pub use pull_request_calls::{PullRequestCalls, Taken};
pub use pull_requests::PullRequests;
pub use queue::Queue;
pub use settings::Settings;
pub use singleton::Singleton;
pub use table::Table;
pub use timers::Timers;
pub use token::{Token, Tokens};
pub use unreadable::{Found, Revision, Unreadable};
pub use watch::Watch;
