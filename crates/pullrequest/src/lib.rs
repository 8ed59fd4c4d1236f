//! A pull request as a person asks for one: the request with its checks, what has to be written for it, and the answer.
//! Pure functions over data; who looks and writes is the reporter.

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
