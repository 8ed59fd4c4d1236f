//! Process of the egress proxy.

use std::process::ExitCode;

fn main() -> ExitCode {
    bootstrap::run_service::<egress::EgressApp>(
        "egress",
        "Journeyman's egress proxy: the only way out of a sandbox's setup commands",
    )
}
