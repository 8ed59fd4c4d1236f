//! Routine work on a mirror that nobody uses at the moment.

use std::{ffi::OsString, path::Path, process::Stdio};

use crate::{
    Error,
    recovery::{remove_leftovers, run_blocking},
};

/// Packs a mirror's objects and refs, drops objects that nothing has named for a day, and removes what killed processes left.
///
/// It also writes the graph of the commits. Packs of 512 MiB or more stay as they are, so that
/// the work of one day is bounded. Blocks.
///
/// # Errors
/// [`Error::Failed`] when the disk refuses, [`Error::BadPack`] when the mirror is damaged.
pub fn maintain_mirror(git_dir: &Path) -> Result<(), Error> {
    remove_leftovers(git_dir)?;
    let args = [
        "-c",
        "gc.bigPackThreshold=512m",
        "-c",
        "gc.autoDetach=false",
        "-c",
        "gc.writeCommitGraph=true",
        "-c",
        "gc.reflogExpire=now",
        "gc",
        "--quiet",
        "--prune=1.day.ago",
    ];
    let (is_done, stderr) = run_blocking(git_dir, &args.map(OsString::from), Stdio::null())?;
    if is_done {
        Ok(())
    } else {
        Err(Error::BadPack(crate::cli::summary(&stderr)))
    }
}
