//! Entry point of the confined process that parses source files for an executor.

fn main() -> std::process::ExitCode {
    executor::run_parser()
}
