//! Reading source files with tree-sitter: syntax errors and symbols. Its grammars are C code that reads what anybody may
//! have put into a repository, so they run in a process of their own, which is confined and may fall at any time.

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

/// The parser process: answers the requests on its standard input, a socket, until that closes.
#[must_use]
pub fn parser() -> ExitCode {
    let served = socket().and_then(|socket| {
        confine::for_good()?;
        // The end of the process closes it: dropping it asks about the descriptor first in a debug build, which is not permitted.
        serve(&ManuallyDrop::new(socket))
    });
    // The executor notices that it ended, whatever the reason.
    served.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

fn socket() -> io::Result<UnixStream> {
    Ok(UnixStream::from(stdin().as_fd().try_clone_to_owned()?))
}

fn serve(socket: &UnixStream) -> io::Result<()> {
    let mut busy = Duration::ZERO;
    while let Some(request) = wire::receive::<Request>(&mut &*socket)? {
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
