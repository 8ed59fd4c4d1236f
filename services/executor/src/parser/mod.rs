//! Parses source files with tree-sitter for syntax errors and symbols. The grammars are C code that reads
//! untrusted repositories, so they run in a confined process that may fail at any time.

mod check;
mod client;
mod confine;
mod grammar;
mod symbols;
mod wire;

use std::{
    io::{self, stdin},
    mem::ManuallyDrop,
    os::{fd::AsFd, unix::net::UnixStream},
    process::ExitCode,
    time::Duration,
};

use tokio::time::Instant;

pub(crate) use client::{Parser, Unparsed, is_there};
pub(crate) use grammar::{Language, MAX_BYTES};
use wire::{Answer, Request};
pub(crate) use wire::{Symbol, SyntaxError};

/// Runs the parser process: answers the requests on standard input, a socket, until it closes.
#[must_use]
pub fn parser() -> ExitCode {
    let served = socket().and_then(|socket| {
        confine::for_good()?;
        // The socket is never dropped: in a debug build the destructor first checks the descriptor with a
        // call that the filter denies. The end of the process closes it.
        serve(&ManuallyDrop::new(socket))
    });
    // The executor notices the end of the process, whatever the reason.
    served.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

fn socket() -> io::Result<UnixStream> {
    Ok(UnixStream::from(stdin().as_fd().try_clone_to_owned()?))
}

fn serve(socket: &UnixStream) -> io::Result<()> {
    let mut busy = Duration::ZERO;
    while let Some(request) = wire::receive::<Request>(&mut &*socket)? {
        // `RLIMIT_CPU` counts the whole process, so the time of earlier requests is added.
        confine::limit_time(busy);
        let start = Instant::now();
        let answer = answer(&request);
        busy += start.elapsed();
        wire::send(&mut &*socket, &answer)?;
    }
    Ok(())
}

fn answer(request: &Request) -> Answer {
    match request {
        Request::Check {
            language,
            before,
            after,
        } => Answer::Checked(check::new_error(*language, before.as_deref(), after)),
        Request::Symbols { language, text } => Answer::Symbols(symbols::symbols(*language, text)),
    }
}
