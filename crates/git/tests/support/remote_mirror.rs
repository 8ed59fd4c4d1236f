//! Bare remote behind HTTP with an empty mirror, and what its histories are made of.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use git::{BareRepository, GitCredentials, GitTransport};
use secrecy::SecretString;
use tempfile::TempDir;

use crate::http_backend::HttpBackend;

pub(crate) struct RemoteMirror {
    /// Folder of both repositories, which the base URL serves.
    pub(crate) root: TempDir,
    pub(crate) remote: PathBuf,
    pub(crate) mirror: PathBuf,
    pub(crate) base_url: String,
    /// URL of the remote.
    pub(crate) url: String,
    pub(crate) auth: GitCredentials,
}

impl RemoteMirror {
    pub(crate) async fn start() -> Self {
        let root = TempDir::new().unwrap();
        let remote = root.path().join("remote/acme/shop.git");
        BareRepository::init_bare(&remote).unwrap();
        let mirror = root.path().join("mirror.git");
        BareRepository::init_bare(&mirror).unwrap();
        let backend = HttpBackend::start(root.path().to_owned(), "Bearer letmein").await;
        Self {
            remote,
            mirror,
            url: remote_url(&backend.url),
            base_url: backend.url,
            auth: GitCredentials::bearer(&SecretString::from("letmein")),
            root,
        }
    }

    pub(crate) fn transport(&self) -> GitTransport {
        GitTransport::new(&self.mirror).with_deadline(Duration::from_secs(60))
    }

    pub(crate) fn open(&self) -> BareRepository {
        BareRepository::open(&self.mirror).unwrap()
    }
}

/// Returns the URL of the remote below a base URL, e.g. that of a proxy.
pub(crate) fn remote_url(base: &str) -> String {
    format!("{base}/remote/acme/shop.git")
}

/// Runs git in a bare repository and returns its output.
pub(crate) fn run_git(dir: &Path, arguments: &[&str], input: &[u8]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@b.example", "--git-dir"]);
    command
        .arg(dir)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Generates incompressible bytes.
pub(crate) fn generate_noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Generates files of incompressible bytes, named by their number; the seeds of their content count from `seed`.
pub(crate) fn generate_noise_files(seed: u64, count: u64, length: usize) -> Vec<(String, Vec<u8>)> {
    let numbers = 0..count;
    numbers
        .map(|number| (format!("{number:02}.bin"), generate_noise(seed + number, length)))
        .collect()
}
