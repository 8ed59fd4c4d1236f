//! Parses source files with tree-sitter for syntax errors and symbols. The grammars are C code that reads
//! untrusted repositories, so they run in a confined process that may fail at any time.

mod check;
mod client;
mod confinement;
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

pub(crate) use client::{ParseFailure, ParserClient, is_parser_installed};
pub(crate) use grammar::{GrammarLanguage, MAX_BYTES};
use wire::{ParserAnswer, ParserRequest};
pub(crate) use wire::{SourceSymbol, SyntaxError};

/// Runs the parser process: answers the requests on standard input, a socket, until it closes.
#[must_use]
pub fn run_parser() -> ExitCode {
    let served = request_socket().and_then(|socket| {
        confinement::confine_parser()?;
        // The socket is never dropped: in a debug build the destructor first checks the descriptor with a
        // call that the filter denies. The end of the process closes it.
        serve_requests(&ManuallyDrop::new(socket))
    });
    // The executor notices the end of the process, whatever the reason.
    served.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

fn request_socket() -> io::Result<UnixStream> {
    Ok(UnixStream::from(stdin().as_fd().try_clone_to_owned()?))
}

fn serve_requests(socket: &UnixStream) -> io::Result<()> {
    let mut busy = Duration::ZERO;
    while let Some(request) = wire::receive_frame::<ParserRequest>(&mut &*socket)? {
        // `RLIMIT_CPU` counts the whole process, so the time of earlier requests is added.
        confinement::limit_time(busy);
        let start = Instant::now();
        let answer = answer_request(&request);
        busy += start.elapsed();
        wire::send_frame(&mut &*socket, &answer)?;
    }
    Ok(())
}

fn answer_request(request: &ParserRequest) -> ParserAnswer {
    match request {
        ParserRequest::Check {
            language,
            before,
            after,
        } => ParserAnswer::Checked(check::new_error(*language, before.as_deref(), after)),
        ParserRequest::Symbols { language, text } => {
            ParserAnswer::Symbols(symbols::list_symbols(*language, text))
        }
    }
}
