//! Parses source files for an executor, confined.

fn main() -> std::process::ExitCode {
    executor::parser()
}
