//! Links the launcher statically where the C library allows it: it is started for every command, and half of the time
//! of such a start is the dynamic linker's.
//!
//! `crt-static` holds for a whole target, so that one program is linked with the static archives by name instead.

use std::{env, fs, io, path::Path, process::Command};

/// Libraries that every program is linked with, and the static archive of each.
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
        .map(|(name, file)| Some((name, find(file)?)))
        .collect();
    let Some(archives) = archives.filter(|_| is_gnu && target == host) else {
        return Ok(());
    };
    let folder = Path::new(&folder);
    for (name, archive) in archives {
        // A text in an archive's place is a linker script.
        fs::write(folder.join(format!("lib{name}.a")), format!("INPUT({archive})\n"))?;
    }
    println!("cargo::rustc-link-arg-bin=launcher=-L{}", folder.display());
    println!("cargo::rustc-link-arg-bin=launcher=-static-pie");
    Ok(())
}

fn find(archive: &str) -> Option<String> {
    let mut compiler = Command::new("cc");
    let output = compiler
        .arg(format!("-print-file-name={archive}"))
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (path.starts_with('/') && !path.contains(' ')).then_some(path)
}
