//! HTTP client under the crates of GitHub and Jira. Each rule that holds for both services is here once: the
//! connection, the meaning of a lost answer, the retries of reads, and the limits of an account.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod connection;
mod exchange;
mod instances;
mod limits;
mod retry;

pub use connection::{ConnectionError, build_client};
pub use exchange::{
    ExchangeError, FileDownload, RequestIntent, ServiceAnswer, ServiceRefusal, classify_failure,
    download_file, exchange_request, truncate_service_text,
};
pub use instances::{InstanceClients, UnknownInstance};
pub use limits::GatedAccount;
pub use retry::retry_read;
