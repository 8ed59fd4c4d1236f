//! The half of the launcher that stays outside and ends what it started.

use std::{
    fs::File,
    io::{self, Read, stdin},
    process::ExitCode,
};

use serde::de::DeserializeOwned;

use crate::{
    command, namespaces,
    policy::{MAX_FRAME, Policy},
    sys, tree, watch,
};

/// Reads the policy, leaves the caller's world, splits off the other half and waits for the end.
pub(crate) fn run() -> Result<ExitCode, String> {
    let policy: Option<Policy> = read_frame().map_err(|error| format!("no policy: {error}"))?;
    let Some(mut policy) = policy else {
        return Ok(ExitCode::SUCCESS);
    };
    policy.uid = rustix::process::getuid().as_raw();
    // Refused when already a session leader; then there is one already.
    let _ = rustix::process::setsid();
    let me = Some(rustix::process::getpid());
    rustix::process::set_child_subreaper(me).map_err(|error| error.to_string())?;
    sys::close_on_exec().map_err(|error| error.to_string())?;
    if policy.confinement.namespaces {
        namespaces::leave(policy.network).map_err(|error| format!("namespaces: {error}"))?;
    }
    let (started, starting) = io::pipe().map_err(|error| error.to_string())?;
    match sys::fork().map_err(|error| format!("cannot start the command: {error}"))? {
        None => {
            drop(started);
            command::run(&policy, starting)
        }
        Some(child) => {
            drop(starting);
            let code = tree::wait(child, &started, &watch::Watch::new(policy))?;
            tell(code).map_err(|error| error.to_string())?;
            Ok(ExitCode::from(code))
        }
    }
}

/// Ends the output and says on the control socket how the command ended, so that nobody has to wait until the kernel
/// has taken its world down.
fn tell(code: u8) -> io::Result<()> {
    let null = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    // Standard input that is a pipe cannot be written: then whoever started this looks at the exit code.
    let _ = rustix::io::write(stdin(), &[code]);
    Ok(())
}

/// The next value from standard input; nothing at its end. Reads no byte beyond, because the other half reads on.
pub(crate) fn read_frame<T: DeserializeOwned>() -> io::Result<Option<T>> {
    let mut input = Unbuffered;
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

struct Unbuffered;

impl Read for Unbuffered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(stdin(), buffer)?)
    }
}
