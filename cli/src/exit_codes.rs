//! Exit codes of the commands. Code 1 is that of [`std::process::ExitCode::FAILURE`].

/// Wrong or missing arguments: the code that clap uses.
pub(crate) const EXIT_ARGUMENTS: u8 = 2;
/// The followed run waits for a person.
pub(crate) const EXIT_PERSON: u8 = 3;
/// There is no token, or the API refuses it.
pub(crate) const EXIT_TOKEN: u8 = 4;
/// A setting is invalid or missing (`EX_USAGE` of sysexits.h).
pub(crate) const EXIT_SETTINGS: u8 = 64;
/// A signal ended the command: the code of a shell after Ctrl-C.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// All codes, for `--help`.
pub(crate) const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong arguments, 3 the run waits for a person, 4 no token or a \
                                     refused one, 64 wrong setting or no --yes, 130 interrupted.";

/// Code of a command that did all of its work (`is_good`), or failed at a part of it.
#[cfg(feature = "local")]
pub(crate) fn derive_exit_code(is_good: bool) -> std::process::ExitCode {
    use std::process::ExitCode;
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
