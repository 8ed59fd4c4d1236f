//! Pull requests on a user's call: the validated request, the plan of writes, and the answer.
//!
//! All functions are pure; the reporter reads and writes.

mod answer;
mod dry_run;
mod plan;
mod problem;
mod remote;
mod request;
pub mod transition;

pub use answer::{Answer, JiraStatus, Status};
pub use dry_run::DryRun;
pub use plan::{Heads, IssueSeen, Open, Plan, Seen, Step, plan};
pub use problem::{Context, Kind, Problem};
pub use remote::repository_path;
pub use request::{Place, Request, key_in, parse, parse_at_github};
