//! Maintenance of an idle mirror.

use std::{ffi::OsString, path::Path, process::Stdio};

use crate::{
    Error,
    recovery::{remove_leftovers, run_git_blocking},
};

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
        Err(Error::BadPack(crate::cli::summarize_stderr(&stderr)))
    }
}
