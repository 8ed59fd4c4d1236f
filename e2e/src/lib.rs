//! Whole system on one machine with stand-ins for external services, for the stories, the demo and the bench.

mod balancer;
mod console;
pub mod findings;
mod inside;
mod notes;
mod outside;
mod ports;
mod previous;
mod private;
mod processes;
mod signed_webhooks;
pub mod standins;
mod vendors;
pub mod whole;
mod world;

/// Program that replaces the user's browser in the setup and clicks the buttons of its pages.
pub const BROWSER: &str = include_str!("browser.py");

pub use console::{Console, first_line};
pub use notes::Note;
pub use outside::{Dialect, Outside, WEBHOOK_SECRET};
pub use ports::free_port;
pub use previous::Previous;
pub use processes::{Processes, binary};
pub use signed_webhooks::{WebhookSender, sign_webhook};
pub use vendors::{Vendors, note_marker};
pub use world::{Mode, Options, World, ci};
