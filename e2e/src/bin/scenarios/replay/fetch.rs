//! Download of release archives by the registries' clients, with verification of their digests.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use tokio::process::Command;

use crate::replay::catalogue::{PackageRelease, PackageSource, PublishedFix};

/// Folder of archives. An archive that is already there is not downloaded again.
pub(crate) struct ArchiveStore {
    archives: PathBuf,
}

impl ArchiveStore {
    /// Opens the folder `archives` in `out` and creates it if missing.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub(crate) fn open(out: &Path) -> anyhow::Result<Self> {
        let archives = out.join("archives");
        std::fs::create_dir_all(&archives)?;
        Ok(Self { archives })
    }

    /// Extracts the files of a release into a new folder.
    ///
    /// # Errors
    /// When the release cannot be downloaded, or its digest differs from the catalogue's.
    pub(crate) async fn unpack(
        &self,
        fix: &PublishedFix,
        release: &PackageRelease,
        into: &Path,
    ) -> anyhow::Result<()> {
        std::fs::create_dir_all(into)?;
        if fix.registry == PackageSource::Folder {
            let from = fix.folder.join(&release.version).join(".");
            return run_program(Command::new("cp").arg("-r").arg(from).arg(into)).await;
        }
        // The digest identifies an archive under any file name.
        let archive = match self.kept(&release.sha256)? {
            Some(archive) => archive,
            None => self.fetch(fix, release).await?,
        };
        // A wheel is a zip archive, which GNU tar does not read.
        if archive.extension().is_some_and(|kind| kind == "whl") {
            let unzip = ["-m", "zipfile", "-e"];
            return run_program(Command::new("python3").args(unzip).arg(archive).arg(into)).await;
        }
        let mut tar = Command::new("tar");
        run_program(
            tar.arg("-xf")
                .arg(archive)
                .arg("--strip-components=1")
                .arg("-C")
                .arg(into),
        )
        .await
    }

    /// Finds the archive with this digest.
    fn kept(&self, sha256: &str) -> anyhow::Result<Option<PathBuf>> {
        for entry in std::fs::read_dir(&self.archives)? {
            let path = entry?.path();
            if path.is_file() && hash_sha256(&std::fs::read(&path)?) == sha256 {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    async fn fetch(&self, fix: &PublishedFix, release: &PackageRelease) -> anyhow::Result<PathBuf> {
        let (package, version) = (&fix.package, &release.version);
        match fix.registry {
            PackageSource::Npm => {
                let mut npm = Command::new("npm");
                npm.args(["pack", "--silent"]).arg(format!("{package}@{version}"));
                run_program(npm.current_dir(&self.archives)).await?;
            }
            PackageSource::Pypi => {
                let mut pip = Command::new("python3");
                pip.args(["-m", "pip", "download", "--quiet", "--no-deps"]);
                run_program(
                    pip.arg(format!("{package}=={version}"))
                        .current_dir(&self.archives),
                )
                .await?;
            }
            PackageSource::Crates => self.crate_archive(package, version).await?,
            PackageSource::Debian => self.source_package(package, version).await?,
            PackageSource::Folder => bail!("a folder is not an archive"),
        }
        let kept = self.kept(&release.sha256)?;
        kept.with_context(|| format!("what {package} {version} is now has not the digest of the catalogue"))
    }

    /// Downloads a crate's archive. Cargo has no command for one archive, so a package that depends on it
    /// makes cargo download it.
    async fn crate_archive(&self, package: &str, version: &str) -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let manifest = format!(
            "[package]\nname = \"replay\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n[dependencies]\n\
             {package} = {{ version = \"={version}\", default-features = false }}\n"
        );
        std::fs::create_dir(folder.path().join("src"))?;
        std::fs::write(folder.path().join("src/lib.rs"), "")?;
        std::fs::write(folder.path().join("Cargo.toml"), manifest)?;
        run_program(
            Command::new("cargo")
                .args(["fetch", "--quiet"])
                .current_dir(folder.path()),
        )
        .await?;
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
        let cache = home.context("there is no home")?.join("registry/cache");
        let name = format!("{package}-{version}.crate");
        for index in std::fs::read_dir(&cache).with_context(|| cache.display().to_string())? {
            let archive = index?.path().join(&name);
            if archive.is_file() {
                std::fs::copy(&archive, self.archives.join(&name))?;
                return Ok(());
            }
        }
        bail!("cargo did not keep {name}")
    }

    /// Downloads a source package. Package lists of a machine seldom contain sources, so those of its
    /// binaries are rewritten: they name the same servers.
    async fn source_package(&self, package: &str, version: &str) -> anyhow::Result<()> {
        let apt = self.archives.join("apt");
        let (parts, lists) = (apt.join("parts"), apt.join("lists"));
        std::fs::create_dir_all(lists.join("partial"))?;
        std::fs::create_dir_all(&parts)?;
        for entry in std::fs::read_dir("/etc/apt/sources.list.d")? {
            let path = entry?.path();
            if path.extension().is_some_and(|kind| kind == "sources") {
                let text = std::fs::read_to_string(&path)?.replace("Types: deb\n", "Types: deb-src\n");
                std::fs::write(parts.join(path.file_name().context("a name")?), text)?;
            }
        }
        let list = std::fs::read_to_string("/etc/apt/sources.list").unwrap_or_default();
        let list = list.replace("\ndeb ", "\ndeb-src ");
        std::fs::write(
            parts.join("sources.list"),
            list.replacen("deb ", "deb-src ", usize::from(list.starts_with("deb "))),
        )?;
        // Separate lists leave the machine's state of apt unchanged.
        let options = [
            "Dir::Etc::sourcelist=/dev/null".to_owned(),
            format!("Dir::Etc::sourceparts={}", parts.display()),
            format!("Dir::State::lists={}", lists.display()),
        ];
        let apt_get = |arguments: &[&str]| {
            let mut command = Command::new("apt-get");
            command
                .arg("-qq")
                .args(options.iter().flat_map(|option| ["-o", option]));
            command.args(arguments).current_dir(&self.archives);
            command
        };
        run_program(&mut apt_get(&["update"])).await?;
        run_program(&mut apt_get(&[
            "source",
            "--download-only",
            &format!("{package}={version}"),
        ]))
        .await
    }
}

fn hash_sha256(content: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, content).as_ref())
}

/// Runs a program and expects success.
///
/// # Errors
/// When it cannot start or fails; the error contains the end of its standard error.
pub(crate) async fn run_program(command: &mut Command) -> anyhow::Result<()> {
    read_program_output(command).await.map(drop)
}

/// Runs a program, expects success and returns its standard output.
///
/// # Errors
/// When it cannot start or fails; the error contains the end of its standard error.
pub(crate) async fn read_program_output(command: &mut Command) -> anyhow::Result<String> {
    let name = command.as_std().get_program().display().to_string();
    let ran = command
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("{name} cannot be started"))?;
    let said = String::from_utf8_lossy(&ran.stderr);
    let end = said.char_indices().rev().nth(600).map_or(0, |(at, _)| at);
    ensure!(
        ran.status.success(),
        "{name}: {}: {}",
        ran.status,
        said[end..].trim()
    );
    Ok(String::from_utf8(ran.stdout)?)
}
