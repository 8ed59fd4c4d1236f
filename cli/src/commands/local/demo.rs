//! `journeyman demo`: one ticket against stand-ins, with all services in this process.

use std::process::ExitCode;

use super::print_result;
pub(in crate::commands) use crate::demo::DemoArguments;
use crate::{demo::perform_demo, local::LocalServices};

pub(super) async fn run_command(asked: DemoArguments) -> anyhow::Result<ExitCode> {
    perform_demo::<LocalServices>(&asked, print_result).await
}
