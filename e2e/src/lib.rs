//! Whole system on one machine with stand-ins for external services, for the stories and the scenarios.

mod balancer;
pub mod cart_conflict;
pub mod findings;
mod internal_tls;
pub mod longest_path;
mod notes;
mod previous_release;
mod private_servers;
mod processes;
mod world;

/// Program that replaces the user's browser in the setup and clicks the buttons of its pages.
pub const BROWSER: &str = include_str!("browser.py");

pub use journeyman::demo::{
    ProviderDialect, SignedWebhookSender, StandInVendors, VendorAddresses, WEBHOOK_SECRET, note_marker,
    run_ci_tests, sign_webhook,
};
pub use notes::{NOISE, NoteCourse, NoteTicket};
pub use previous_release::PreviousRelease;
pub use processes::{ConsoleProcess, ReplicaProcesses, find_binary, first_line};
pub use world::{Options, ServiceMode, TestWorld};
