//! Description of commit, date and machine, without which a figure means nothing.

use std::{fs, process::Command};

/// Facts about a measurement that its page shows.
#[derive(Clone, Debug)]
pub(crate) struct MachineDescription {
    pub(crate) commit: String,
    /// True if the working tree differs from the commit.
    pub(crate) is_changed: bool,
    pub(crate) commit_date: String,
    pub(crate) date: String,
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: f64,
    pub(crate) kernel: String,
    /// Load average of a minute before the first figure.
    pub(crate) load: String,
    /// Versions of the programs beneath the figures.
    pub(crate) programs: Vec<String>,
}

impl MachineDescription {
    /// Reads the description. What cannot be read is described as unknown.
    #[expect(
        clippy::disallowed_methods,
        reason = "the launcher of the servers reads the same variable"
    )]
    pub(crate) fn read() -> Self {
        let nats = std::env::var("JOURNEYMAN_NATS_SERVER").unwrap_or_else(|_| "nats-server".to_owned());
        let programs = [
            ("rustc", "--version"),
            (nats.as_str(), "--version"),
            ("redis-server", "--version"),
            ("git", "--version"),
            ("python3", "--version"),
            ("rg", "--version"),
        ];
        Self {
            commit: run_program("git", &["rev-parse", "HEAD"]),
            is_changed: !run_program("git", &["status", "--porcelain", "--untracked-files=no"]).is_empty(),
            commit_date: run_program("git", &["show", "--no-patch", "--format=%cs"]),
            date: run_program("date", &["-u", "+%F"]),
            processor: read_field("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: parse_kib(&read_field("/proc/meminfo", "MemTotal")) / 1024.0 / 1024.0,
            kernel: run_program("uname", &["-sr"]),
            load: read_file("/proc/loadavg")
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned(),
            programs: programs
                .into_iter()
                .filter_map(|(program, argument)| describe_program(program, argument))
                .collect(),
        }
    }
}

/// Returns the first line of a program's output; empty if it fails.
fn run_program(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Returns name and version of a program; `None` if it is not installed.
fn describe_program(program: &str, argument: &str) -> Option<String> {
    let line = run_program(program, &[argument]);
    // Redis adds the hash of its build, rustc that of its commit.
    let words: Vec<&str> = line
        .split_whitespace()
        .take_while(|word| !word.starts_with('(') && !word.starts_with("sha="))
        .collect();
    Some(words.join(" ")).filter(|text| !text.is_empty())
}

fn read_file(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn read_field(path: &str, field: &str) -> String {
    let text = read_file(path);
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == field).then(|| value.trim().to_owned())
    });
    value.unwrap_or_else(|| "unknown".to_owned())
}

fn parse_kib(text: &str) -> f64 {
    let number = text.split_whitespace().next().unwrap_or_default();
    number.parse().unwrap_or_default()
}
