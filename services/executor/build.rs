//! Links the launcher statically where the C library permits it. The launcher starts for every command, and
//! the dynamic linker takes half of the time of a start.
//!
//! `crt-static` applies to a whole target, so this script links one program with static archives by name.

use std::{env, fs, io, path::Path, process::Command};

/// Libraries that every program is linked with, and their static archives.
const ARCHIVES: [(&str, &str); 3] = [("gcc_s", "libgcc_eh.a"), ("c", "libc.a"), ("m", "libm.a")];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let (Some(target), Some(host), Some(folder)) =
        (env::var_os("TARGET"), env::var_os("HOST"), env::var_os("OUT_DIR"))
    else {
        return Ok(());
    };
    let is_gnu = target.to_string_lossy().ends_with("linux-gnu");
    let archives: Option<Vec<_>> = ARCHIVES
        .iter()
        .map(|(name, file)| Some((name, find_archive(file)?)))
        .collect();
    let Some(archives) = archives.filter(|_| is_gnu && target == host) else {
        return Ok(());
    };
    let folder = Path::new(&folder);
    for (name, archive) in archives {
        // The linker treats a text file in place of an archive as a linker script.
        fs::write(folder.join(format!("lib{name}.a")), format!("INPUT({archive})\n"))?;
    }
    println!("cargo::rustc-link-arg-bin=launcher=-L{}", folder.display());
    println!("cargo::rustc-link-arg-bin=launcher=-static-pie");
    Ok(())
}

fn find_archive(archive: &str) -> Option<String> {
    let mut compiler = Command::new("cc");
    let output = compiler
        .arg(format!("-print-file-name={archive}"))
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (path.starts_with('/') && !path.contains(' ')).then_some(path)
}
