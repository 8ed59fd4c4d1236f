//! Import of packs from untrusted sources.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
    process::{Child, ExitStatus, Stdio},
    sync::{Arc, mpsc},
    time::Duration,
};

use parking_lot::Mutex;

use crate::{Error, cli, recovery::wait_briefly};

// Time limit of git's check of one pack.
const DEADLINE: Duration = Duration::from_secs(120);

/// Limits of a pack to import.
#[derive(Clone, Copy, Debug)]
pub struct PackLimits {
    /// Size of the pack, in bytes.
    pub max_bytes: u64,
    /// Number of objects in the pack.
    pub max_objects: u32,
    /// Unpacked size of one object, in bytes.
    pub max_object_bytes: u64,
    /// Unpacked size of all objects, in bytes.
    pub max_expanded_bytes: u64,
    /// Memory that git can allocate for the check, in bytes.
    pub max_memory_bytes: u64,
}

impl Default for PackLimits {
    /// 256 MiB and 200,000 objects; unpacked 128 MiB per object and 4 GiB in total; 1 GiB of memory.
    fn default() -> Self {
        Self {
            max_bytes: 256 * 1024 * 1024,
            max_objects: 200_000,
            max_object_bytes: 128 * 1024 * 1024,
            max_expanded_bytes: 4 * 1024 * 1024 * 1024,
            max_memory_bytes: 1024 * 1024 * 1024,
        }
    }
}

/// Checks `pack` in a quarantine folder with `git index-pack --strict`, then moves it into `git_dir`. Blocks.
pub(crate) fn import_pack(git_dir: &Path, pack: &[u8], limits: PackLimits) -> Result<(), Error> {
    let quarantine = tempfile::Builder::new()
        .prefix("quarantine-")
        .tempdir_in(git_dir)?;
    check_in_quarantine(&git_dir.join("objects"), quarantine.path(), pack, limits)?;
    let checked = quarantine.path().join("objects/pack");
    if checked.exists() {
        adopt_pack(&checked, &git_dir.join("objects/pack"))?;
    }
    Ok(())
}

/// Checks `pack` with `git index-pack --strict` against a folder of objects, which it only reads.
///
/// The checked pack stays in `quarantine/objects/pack`, an empty folder of the caller. Git reads only our
/// configuration. Blocks.
pub(crate) fn check_in_quarantine(
    objects: &Path,
    quarantine: &Path,
    pack: &[u8],
    limits: PackLimits,
) -> Result<(), Error> {
    let count = count_pack_objects(pack)?;
    if pack.len() as u64 > limits.max_bytes {
        return Err(Error::BadPack(format!(
            "{} bytes are more than {}",
            pack.len(),
            limits.max_bytes
        )));
    }
    if count > limits.max_objects {
        return Err(Error::BadPack(format!(
            "{count} objects are more than {}",
            limits.max_objects
        )));
    }
    fs::create_dir_all(quarantine.join("objects/pack"))?;
    fs::create_dir_all(quarantine.join("refs"))?;
    fs::write(quarantine.join("HEAD"), "ref: refs/heads/main\n")?;
    if count == 0 {
        return Ok(());
    }
    run_index_pack(objects, quarantine, pack, limits)?;
    check_sizes(&quarantine.join("objects"), limits)
}

fn count_pack_objects(pack: &[u8]) -> Result<u32, Error> {
    match pack.get(..12) {
        Some([b'P', b'A', b'C', b'K', 0, 0, 0, 2, a, b, c, d]) => Ok(u32::from_be_bytes([*a, *b, *c, *d])),
        Some(_) | None => Err(Error::BadPack("it is not a pack of version 2".to_owned())),
    }
}

/// Checks the unpacked sizes: a small pack may contain large objects by deltas and zeros. Reading a size
/// costs only the object's header.
fn check_sizes(quarantine: &Path, limits: PackLimits) -> Result<(), Error> {
    let odb = git2::Odb::new()?;
    odb.add_disk_alternate(&quarantine.to_string_lossy())?;
    let mut ids = Vec::new();
    odb.foreach(|id| {
        ids.push(*id);
        true
    })?;
    let mut total = 0_u64;
    for id in ids {
        let size = odb.read_header(id)?.0 as u64;
        total = total.saturating_add(size);
        if size > limits.max_object_bytes || total > limits.max_expanded_bytes {
            return Err(Error::BadPack(format!(
                "unpacked it is larger than {} bytes an object or {} bytes together",
                limits.max_object_bytes, limits.max_expanded_bytes
            )));
        }
    }
    Ok(())
}

/// Limits the memory of a process that is still waiting for its input and has allocated little.
fn limit_memory(child: &Child, bytes: u64) -> Result<(), Error> {
    let bound = rustix::process::Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    rustix::process::prlimit(pid, rustix::process::Resource::Data, bound)
        .map(drop)
        .map_err(|error| Error::failed("its memory cannot be bounded", error))
}

fn run_index_pack(objects: &Path, quarantine: &Path, pack: &[u8], limits: PackLimits) -> Result<(), Error> {
    let mut command = cli::prepare_command(quarantine)?;
    // One thread needs one stack; files above the threshold are streamed instead of held in memory.
    command.args(["-c", "pack.threads=1", "-c", "core.bigFileThreshold=64m"]);
    command
        .args(["index-pack", "--stdin", "--strict"])
        .arg(format!("--max-input-size={}", limits.max_bytes));
    command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Err(error) = limit_memory(&child, limits.max_memory_bytes) {
        child.kill()?;
        child.wait()?;
        return Err(error);
    }
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let child = Arc::new(Mutex::new(child));
    let (done, watchdog) = mpsc::channel::<()>();
    let mut text = String::new();
    let (timed_out, status) = std::thread::scope(|scope| {
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(pack)));
        let watched = Arc::clone(&child);
        let guard = scope.spawn(move || kill_after(&watched, &watchdog));
        if let Some(stderr) = stderr {
            // Invalid UTF-8 in a message ends the reading early; the exit code still decides.
            let _ = stderr.take(64 * 1024).read_to_string(&mut text);
        }
        // A git that closes its standard error, or fills it, can go on: it is waited for within the deadline too.
        let ended = wait_for(&child);
        drop(done);
        (guard.join().unwrap_or(false), ended)
    });
    match (timed_out, status?.success()) {
        (true, _) => Err(Error::TimedOut(DEADLINE)),
        (false, true) => Ok(()),
        (false, false) => Err(Error::BadPack(cli::summarize_stderr(&text))),
    }
}

/// Waits for the child without holding its lock, which the deadline needs.
fn wait_for(child: &Mutex<Child>) -> std::io::Result<ExitStatus> {
    loop {
        let ended = child.lock().try_wait()?;
        match ended {
            Some(status) => return Ok(status),
            None => wait_briefly(),
        }
    }
}

/// Waits for the end of the check; true when the deadline passed and the child was killed.
fn kill_after(child: &Mutex<Child>, done: &mpsc::Receiver<()>) -> bool {
    let timed_out = matches!(done.recv_timeout(DEADLINE), Err(mpsc::RecvTimeoutError::Timeout));
    if timed_out {
        // The child may have ended at the same moment.
        let _ = child.lock().kill();
    }
    timed_out
}

/// Moves a checked pack from its quarantine into the objects of a repository.
///
/// Only packs with their indexes are moved, because the producer of the quarantine may have left links and
/// other files.
///
/// # Errors
/// [`Error::BadPack`] for any other file, [`Error::Failed`] when the disk cannot be written.
pub fn adopt_pack(quarantine: &Path, objects: &Path) -> Result<(), Error> {
    fs::create_dir_all(objects)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(quarantine)? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        let Some(rank) = rank_pack_file(&name).filter(|_| entry.file_type().is_ok_and(|kind| kind.is_file()))
        else {
            return Err(Error::BadPack(
                "its quarantine holds something else than a pack".to_owned(),
            ));
        };
        names.push((rank, name));
    }
    // The index goes last: git ignores a pack without its index.
    names.sort();
    for (_, name) in names {
        fs::rename(quarantine.join(&name), objects.join(&name))?;
    }
    Ok(())
}

/// Position of a pack's file in the order of moving; `None` for any other file.
fn rank_pack_file(name: &str) -> Option<u8> {
    let (id, kind) = name.strip_prefix("pack-")?.split_once('.')?;
    let is_id = id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    match kind {
        "pack" if is_id => Some(0),
        "rev" if is_id => Some(1),
        "idx" if is_id => Some(2),
        _ => None,
    }
}
