//! Care of a mirror: continuation of interrupted fetches, which keeps received objects, and maintenance.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

use crate::{Error, bare_layout::list_folder, cli, fsck::find_refused_object};

// Marker file in a mirror with objects that were not checked together yet.
const UNCHECKED: &str = "recovered";
// Time limit for reading a partial pack or checking a mirror.
const LIMIT: Duration = Duration::from_secs(60 * 60);
// Bytes of a pack's header: signature, version and number of objects.
const HEADER: usize = 12;
// Smaller partial packs are discarded, in bytes.
const LEAST: u64 = 64 * 1024;

/// Completes the packs that interrupted fetches left in a mirror and removes all other leftovers. True when
/// the mirror contains objects without references. Blocks.
pub(crate) fn recover_partial_packs(git_dir: &Path) -> Result<bool, Error> {
    let folder = git_dir.join("objects/pack");
    for path in list_partial_packs(&folder)? {
        match complete_pack(&path) {
            Ok(0) => {}
            Ok(objects) => {
                // The marker comes first: after a crash the mirror must count as unchecked.
                fs::write(git_dir.join(UNCHECKED), "")?;
                let is_kept = index_pack(git_dir, &path)?;
                tracing::info!(objects, is_kept, "objects of an interrupted fetch");
            }
            Err(error) => {
                let error = domain::cause::format_error_chain(&error);
                tracing::warn!(error, "what an interrupted fetch left cannot be read");
            }
        }
        fs::remove_file(&path)?;
    }
    remove_leftovers(git_dir)?;
    Ok(is_unchecked(git_dir))
}

/// True when a mirror contains objects that were not checked together yet.
pub(crate) fn is_unchecked(git_dir: &Path) -> bool {
    git_dir.join(UNCHECKED).exists()
}

/// Removes files that a killed `git` leaves and no process reads again: partial packs, indexes and objects. Only for the
/// sole writer of the repository.
///
/// # Errors
/// [`Error::Failed`] when the disk cannot be written.
pub fn remove_leftovers(git_dir: &Path) -> Result<(), Error> {
    let objects = git_dir.join("objects");
    for folder in std::iter::once(objects.clone()).chain(list_folders(&objects)?) {
        // `git` names its quarantine folder `tmp_objdir-incoming-`, and older releases `incoming-`.
        remove_with_prefix(&folder, "tmp_")?;
        remove_with_prefix(&folder, "incoming-")?;
    }
    remove_with_prefix(git_dir, "tmp_")?;
    remove_with_prefix(git_dir, "quarantine-")
}

fn remove_with_prefix(folder: &Path, prefix: &str) -> Result<(), Error> {
    for path in list_with_prefix(folder, prefix)? {
        if path.is_dir() {
            fs::remove_dir_all(path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Checks every object of a mirror, as a fetch would have done. Blocks.
pub(crate) fn check_objects(git_dir: &Path) -> Result<(), Error> {
    let args = ["fsck", "--no-dangling", "--no-reflogs", "--no-progress"];
    let checked = run_git_blocking(git_dir, &args.map(OsString::from), Stdio::null())?;
    if !checked.0 {
        return Err(find_refused_object(&checked.1)
            .unwrap_or_else(|| Error::BadPack(cli::summarize_stderr(&checked.1))));
    }
    Ok(())
}

/// Packs the references of a mirror: many small files are slow to list. Blocks.
pub(crate) fn pack_references(git_dir: &Path) -> Result<(), Error> {
    let args = ["pack-refs", "--all"].map(OsString::from);
    let (is_packed, stderr) = run_git_blocking(git_dir, &args, Stdio::null())?;
    if is_packed {
        Ok(())
    } else {
        Err(Error::Failed(cli::summarize_stderr(&stderr).into()))
    }
}

/// Records that the objects of a mirror were checked, for all branches together.
pub(crate) fn forget_unchecked(git_dir: &Path) -> Result<(), Error> {
    match fs::remove_file(git_dir.join(UNCHECKED)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn list_partial_packs(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for path in list_with_prefix(folder, "tmp_pack_")? {
        let is_worth_it =
            fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && found.len() >= LEAST);
        if is_worth_it {
            found.push(path);
        }
    }
    Ok(found)
}

fn list_folders(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = list_folder(folder)?;
    found.retain(|path| path.is_dir());
    Ok(found)
}

/// Lists the entries of a folder with this prefix; empty for a missing folder.
fn list_with_prefix(folder: &Path, prefix: &str) -> Result<Vec<PathBuf>, Error> {
    let mut found = list_folder(folder)?;
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(prefix.as_bytes())
    });
    Ok(found)
}

/// Truncates a partial pack after its last complete object and writes the header and checksum of a complete
/// pack. Returns the number of its objects; 0 when none is complete.
fn complete_pack(path: &Path) -> Result<u32, Error> {
    let mut file = File::options().read(true).write(true).open(path)?;
    let (objects, end) = count_objects(&file)?;
    if objects == 0 {
        return Ok(0);
    }
    // Pack format: the number of objects at offset 8, and the SHA-1 of all previous bytes at the end.
    file.set_len(end)?;
    file.seek(SeekFrom::Start(8))?;
    file.write_all(&objects.to_be_bytes())?;
    file.seek(SeekFrom::Start(0))?;
    let (mut context, mut chunk) = (Context::new(&SHA1_FOR_LEGACY_USE_ONLY), vec![0; 256 * 1024]);
    loop {
        let count = file.read(&mut chunk)?;
        match chunk.get(..count) {
            Some([]) | None => break,
            Some(read) => context.update(read),
        }
    }
    file.write_all(context.finish().as_ref())?;
    file.sync_all()?;
    Ok(objects)
}

/// Reader that counts the bytes taken from it.
struct CountingReader<R> {
    inner: R,
    taken: u64,
}

impl<R: BufRead> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.taken += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for CountingReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.taken += amount as u64;
        self.inner.consume(amount);
    }
}

/// Counts the complete objects of a partial pack. Returns their number and the end of the last one.
fn count_objects(file: &File) -> Result<(u32, u64), Error> {
    let mut reader = CountingReader {
        inner: BufReader::with_capacity(256 * 1024, file),
        taken: 0,
    };
    let mut header = [0; HEADER];
    reader.read_exact(&mut header)?;
    if !header.starts_with(b"PACK\0\0\0\x02") {
        return Err(Error::BadPack("it is not a pack of version 2".to_owned()));
    }
    let announced = header.last_chunk().map_or(0, |count| u32::from_be_bytes(*count));
    let (mut whole, mut end) = (0, reader.taken);
    while whole < announced && skip_object(&mut reader).is_ok() {
        (whole, end) = (whole + 1, reader.taken);
    }
    Ok((whole, end))
}

/// Skips one object of a pack: type and size, delta base, compressed content.
fn skip_object(reader: &mut impl BufRead) -> io::Result<()> {
    let mut byte = read_byte(reader)?;
    let kind = (byte >> 4) & 7;
    while byte & 0x80 != 0 {
        byte = read_byte(reader)?;
    }
    // Type 6 has a variable-length offset to its base, type 7 the id of its base.
    match kind {
        6 => while read_byte(reader)? & 0x80 != 0 {},
        7 => reader.read_exact(&mut [0; 20])?,
        1..=4 => {}
        _ => return Err(io::ErrorKind::InvalidData.into()),
    }
    io::copy(&mut flate2::bufread::ZlibDecoder::new(reader), &mut io::sink()).map(drop)
}

fn read_byte(reader: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    reader.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// Imports a complete pack with `git index-pack`; false when git refuses it.
fn index_pack(git_dir: &Path, pack: &Path) -> Result<bool, Error> {
    let args = ["index-pack", "--stdin", "--fix-thin"].map(OsString::from);
    let (is_indexed, stderr) = run_git_blocking(git_dir, &args, File::open(pack)?.into())?;
    if !is_indexed {
        tracing::warn!(problem = cli::summarize_stderr(&stderr), "partial pack not kept");
    }
    Ok(is_indexed)
}

/// Packs the objects and refs of a mirror, drops objects without a reference for a day, and removes leftovers
/// of killed processes.
///
/// It also writes the commit graph. Packs of 512 MiB or more stay unchanged, which limits the work of one
/// day. Blocks.
///
/// # Errors
/// [`Error::Failed`] when the disk cannot be written, [`Error::BadPack`] when the mirror is damaged.
pub fn maintain_mirror(git_dir: &Path) -> Result<(), Error> {
    remove_leftovers(git_dir)?;
    let args = [
        "-c",
        "gc.bigPackThreshold=512m",
        "-c",
        // gc must end with this call: a detached one would run into the next fetch.
        "gc.autoDetach=false",
        "-c",
        "gc.writeCommitGraph=true",
        "-c",
        "gc.reflogExpire=now",
        "gc",
        "--quiet",
        "--prune=1.day.ago",
    ];
    let (is_done, stderr) = run_git_blocking(git_dir, &args.map(OsString::from), Stdio::null())?;
    if is_done {
        Ok(())
    } else {
        Err(Error::BadPack(cli::summarize_stderr(&stderr)))
    }
}

/// Runs `git` on local objects. Returns its success and its messages.
pub(crate) fn run_git_blocking(
    git_dir: &Path,
    args: &[OsString],
    input: Stdio,
) -> Result<(bool, String), Error> {
    let mut command = cli::prepare_command(git_dir)?;
    for (id, severity) in crate::fsck::FETCH_SEVERITIES {
        command.args(["-c".into(), OsString::from(format!("fsck.{id}={severity}"))]);
    }
    // One thread with 64 MiB for deltas bounds the memory of git.
    command.args(["-c", "pack.threads=1", "-c", "pack.windowMemory=64m"]);
    command.args(args);
    command.stdin(input).stdout(Stdio::null()).stderr(Stdio::piped());
    // `git gc` and `git fsck` start helpers, which end with it.
    command.process_group(0);
    let mut child = command
        .spawn()
        .map_err(|error| Error::failed("git cannot be started", error))?;
    let stderr = child.stderr.take();
    let reading = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut stderr) = stderr {
            // The rest is read and dropped, so that git never blocks on a full pipe.
            let _ = stderr.by_ref().take(1 << 20).read_to_end(&mut text);
            let _ = io::copy(&mut stderr, &mut io::sink());
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut waited = Duration::ZERO;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if waited > LIMIT {
            cli::kill_group(child.id());
            child.wait()?;
            return Err(Error::TimedOut(LIMIT));
        }
        wait_briefly();
        waited += PAUSE;
    };
    Ok((status.success(), reading.join().unwrap_or_default()))
}

// Interval between two checks of a child process.
const PAUSE: Duration = Duration::from_millis(10);

#[expect(
    clippy::disallowed_methods,
    reason = "the caller blocks on a thread of its own, outside of the runtime"
)]
pub(crate) fn wait_briefly() {
    std::thread::sleep(PAUSE);
}
