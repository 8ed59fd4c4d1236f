//! Demo: one ticket from a user's status change in Jira to a merged pull request. The services are real; stand-ins
//! play Jira, GitHub and the model.

mod arguments;
mod console;
mod play;
mod story;
mod vendor_addresses;
mod vendors;

pub use arguments::{DemoArguments, DemoModel};
pub use play::{DemoServices, perform_demo};
pub use story::run_ci_tests;
pub use vendor_addresses::{
    ProviderDialect, SignedWebhookSender, VendorAddresses, WEBHOOK_SECRET, sign_webhook,
};
pub use vendors::{StandInVendors, note_marker};
