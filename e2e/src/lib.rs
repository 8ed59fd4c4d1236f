//! Whole system on one machine with stand-ins for external services, for the stories, the demo and the bench.

mod balancer;
pub mod findings;
mod internal_tls;
pub mod longest_path;
mod notes;
mod ports;
mod previous_release;
mod private_servers;
mod processes;
pub mod stand_in_process;
mod vendor_addresses;
mod vendors;
mod world;

/// Program that replaces the user's browser in the setup and clicks the buttons of its pages.
pub const BROWSER: &str = include_str!("browser.py");

pub use notes::NoteTicket;
pub use ports::free_port;
pub use previous_release::PreviousRelease;
pub use processes::{ConsoleProcess, ReplicaProcesses, find_binary, first_line};
pub use vendor_addresses::{
    ProviderDialect, SignedWebhookSender, VendorAddresses, WEBHOOK_SECRET, sign_webhook,
};
pub use vendors::{StandInVendors, note_marker};
pub use world::{Options, ServiceMode, TestWorld, run_ci_tests};
