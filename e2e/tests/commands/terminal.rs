//! User at a terminal: a command behind a pseudo-terminal that waits for texts and presses keys.

use std::{path::Path, process::Stdio};

use serde_json::json;
use tokio::process::Command;

use crate::program::Ran;

pub(crate) const DOWN: &str = "\u{1b}[B";
pub(crate) const UP: &str = "\u{1b}[A";
pub(crate) const ENTER: &str = "\r";

// Driver of the terminal. It waits for each text after the previous one, at most a minute.
//
// Keys that start with `!` are replaced by the output of that shell command. It exits with the command's
// code, or with 99 if a text is missing.
const DRIVER: &str = r#"
import json, os, pty, select, subprocess, sys, time
steps, command = json.loads(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
LIMIT = 60
seen, at, until = b"", 0, time.monotonic() + LIMIT
def read():
    global seen
    ready, _, _ = select.select([terminal], [], [], max(0, until - time.monotonic()))
    try:
        piece = os.read(terminal, 65536) if ready else b""
    except OSError:
        piece = b""
    seen += piece
    sys.stdout.buffer.write(piece)
    sys.stdout.flush()
    return bool(piece)
for text, keys in steps:
    while seen.find(text.encode(), at) < 0:
        if not read():
            print(f"\n{text!r} did not come", file=sys.stderr)
            os.kill(pid, 9)
            sys.exit(99)
    at = seen.find(text.encode(), at) + len(text.encode())
    if keys.startswith("!"):
        keys = subprocess.run(keys[1:], shell=True, check=True, capture_output=True, text=True).stdout
    os.write(terminal, keys.encode())
    until = time.monotonic() + LIMIT
while read():
    pass
if time.monotonic() >= until:
    print("it did not end", file=sys.stderr)
    os.kill(pid, 9)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// Runs `journeyman` with these arguments. Each step is a text to wait for and the keys to press then.
pub(crate) async fn at_terminal(arguments: &[&str], steps: &[(&str, &str)], folder: &Path) -> Ran {
    at_terminal_with(arguments, steps, &[], folder).await
}

/// Runs `journeyman` at a terminal with additional settings.
pub(crate) async fn at_terminal_with(
    arguments: &[&str],
    steps: &[(&str, &str)],
    environment: &[(String, String)],
    folder: &Path,
) -> Ran {
    let ran = Command::new("python3")
        .args(["-c", DRIVER, &json!(steps).to_string()])
        .arg(e2e::find_binary("journeyman").unwrap())
        .args(arguments)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "JOURNEYMAN_NATS_SERVER"))
        .envs(environment.iter().cloned())
        .env("TERM", "xterm")
        .current_dir(folder)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    Ran {
        code: ran.status.code(),
        out: String::from_utf8_lossy(&ran.stdout).into_owned(),
        err: String::from_utf8_lossy(&ran.stderr).into_owned(),
    }
}
