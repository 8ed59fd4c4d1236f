//! Client of the parser process. Each workspace has one process, which serves many requests and is replaced
//! after a failure.

use std::{
    fmt,
    io::{self, Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::LazyLock,
    time::Duration,
};

use domain::cause::format_error_chain;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    GrammarLanguage, SourceSymbol, SyntaxError,
    wire::{self, ParserAnswer, ParserRequest},
};

/// Time limit for one text.
const LIMIT: Duration = Duration::from_secs(5);
/// Interval at which a waiting call checks its deadline and its cancellation.
const TICK: Duration = Duration::from_millis(50);
// A process is replaced after this number of texts, so that memory that a grammar leaks is freed.
const MAX_REQUESTS: u32 = 5000;

/// Path of the parser's program, in the folder of this program.
static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| bootstrap::own_program("parser"));

/// Returns true when the parser's program is installed.
pub(crate) fn is_parser_installed() -> bool {
    PROGRAM.is_some()
}

/// Reason why a text could not be parsed, in words for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParseFailure {
    /// Parsing exceeds the time limit.
    TooSlow,
    /// The parser process failed: it ran out of memory, or its grammar has a bug.
    Failed,
    /// The call was cancelled.
    Cancelled,
}

impl fmt::Display for ParseFailure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::TooSlow => "parsing it takes too long",
            Self::Failed => "the parser fails on it",
            Self::Cancelled => "the call was cut",
        })
    }
}

/// Parser process of a workspace. Dropping it ends the process.
#[derive(Default)]
pub(crate) struct ParserClient(Mutex<Option<ParserProcess>>);

struct ParserProcess {
    child: Child,
    socket: UnixStream,
    requests: u32,
}

impl Drop for ParserProcess {
    fn drop(&mut self) {
        // Errors are ignored: the process may already have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ParserClient {
    /// Returns the first syntax error of `after`, unless `before` has a syntax error too.
    pub(crate) fn new_error(
        &self,
        language: GrammarLanguage,
        before: Option<String>,
        after: String,
        cancel: &CancellationToken,
    ) -> Result<Option<SyntaxError>, ParseFailure> {
        let request = ParserRequest::Check {
            language,
            before,
            after,
        };
        match self.ask(&request, cancel)? {
            ParserAnswer::Checked(error) => Ok(error),
            ParserAnswer::Symbols(_) => Err(ParseFailure::Failed),
        }
    }

    /// Returns the symbols that a text defines.
    pub(crate) fn symbols(
        &self,
        language: GrammarLanguage,
        text: String,
        cancel: &CancellationToken,
    ) -> Result<Vec<SourceSymbol>, ParseFailure> {
        match self.ask(&ParserRequest::Symbols { language, text }, cancel)? {
            ParserAnswer::Symbols(symbols) => Ok(symbols),
            ParserAnswer::Checked(_) => Err(ParseFailure::Failed),
        }
    }

    fn ask(&self, request: &ParserRequest, cancel: &CancellationToken) -> Result<ParserAnswer, ParseFailure> {
        // Unit tests have no parser program, so they parse in this process. Integration tests cover a failing
        // process.
        if cfg!(test) {
            return Ok(super::answer_request(request));
        }
        // The process is taken out for the call, so a failed exchange drops it instead of leaving a half-read
        // answer behind.
        let kept = self.0.lock().take();
        let exchanged = kept.map_or_else(start_parser, Ok).and_then(|mut process| {
            let answer = exchange_frames(&mut process, request, cancel)?;
            Ok((process, answer))
        });
        match exchanged {
            Ok((process, answer)) => {
                if process.requests < MAX_REQUESTS {
                    *self.0.lock() = Some(process);
                }
                Ok(answer)
            }
            Err(_) if cancel.is_cancelled() => Err(ParseFailure::Cancelled),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(ParseFailure::TooSlow),
            Err(error) => {
                tracing::warn!(error = %format_error_chain(&error), "the parser failed on a text");
                Err(ParseFailure::Failed)
            }
        }
    }
}

fn start_parser() -> io::Result<ParserProcess> {
    let program = PROGRAM.as_ref().ok_or(io::ErrorKind::NotFound)?;
    let (socket, theirs) = UnixStream::pair()?;
    socket.set_read_timeout(Some(TICK))?;
    socket.set_write_timeout(Some(TICK))?;
    let child = Command::new(program)
        .env_clear()
        .current_dir("/")
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(ParserProcess {
        child,
        socket,
        requests: 0,
    })
}

/// Sends a request and receives its answer within the time limit.
fn exchange_frames(
    process: &mut ParserProcess,
    request: &ParserRequest,
    cancel: &CancellationToken,
) -> io::Result<ParserAnswer> {
    process.requests += 1;
    let mut patient = DeadlineSocket {
        socket: &process.socket,
        deadline: Instant::now() + LIMIT,
        cancel,
    };
    wire::send_frame(&mut patient, request)?;
    wire::receive_frame(&mut patient)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Socket whose reads and writes end at a deadline or when the call is cancelled.
struct DeadlineSocket<'a> {
    socket: &'a UnixStream,
    deadline: Instant,
    cancel: &'a CancellationToken,
}

impl DeadlineSocket<'_> {
    fn wait<T>(&mut self, mut step: impl FnMut(&mut &UnixStream) -> io::Result<T>) -> io::Result<T> {
        loop {
            match step(&mut self.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if self.cancel.is_cancelled() || Instant::now() > self.deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

impl Read for DeadlineSocket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait(|socket| socket.read(buffer))
    }
}

impl Write for DeadlineSocket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(|socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
