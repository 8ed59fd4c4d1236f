//! Packs of new objects. Large files are added to the pack of libgit2, which would compress each of them with much
//! effort even when it is incompressible.

use std::{collections::HashSet, io::Write as _};

use flate2::{Compression, write::ZlibEncoder};
use git2::{ObjectType, Oid, PackBuilder, Repository, Revwalk, Tree};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::{Error, tree_difference::list_tree_differences};

/// Size in bytes from which a file is large. Large files are packed without deltas.
pub(crate) const LARGE_BYTES: usize = 2 * 1024 * 1024;
/// Limit of commits that are searched for large files. Longer histories are packed by libgit2 alone.
const MAX_COMMITS: usize = 1000;
// Pack format: the number of objects is at this offset, and the SHA-1 of all previous bytes at the end.
const COUNT_OFFSET: usize = 8;
const TRAILER_BYTES: usize = 20;
/// Type of a file's content in a pack.
const BLOB: u8 = 3;
/// Number of samples of a large content, and the bytes of each.
const SAMPLES: usize = 8;
const SAMPLE_BYTES: usize = 16 * 1024;

/// Commits to pack, without the objects of the known ones.
pub(crate) struct PackRange<'a> {
    pub(crate) git: &'a Repository,
    pub(crate) new: Vec<Oid>,
    pub(crate) known: Vec<Oid>,
    /// Limit of the pack, in bytes.
    pub(crate) max_bytes: usize,
}

/// Objects of a pack.
#[derive(Default)]
struct PackObjects {
    seen: HashSet<Oid>,
    small: Vec<(Oid, Option<String>)>,
    large: Vec<Oid>,
}

impl PackRange<'_> {
    /// Writes the pack.
    ///
    /// # Errors
    /// [`Error::BadPack`] when it exceeds the limit.
    pub(crate) fn write(&self) -> Result<Vec<u8>, Error> {
        let mut builder = self.git.packbuilder()?;
        if !self.has_large_file()? {
            builder.insert_walk(&mut self.walk()?)?;
            return self.write_builder(&mut builder);
        }
        let objects = self.find_objects()?;
        for (id, name) in &objects.small {
            builder.insert_object(*id, name.as_deref())?;
        }
        let mut pack = self.write_builder(&mut builder)?;
        self.append_large(&mut pack, &objects.large)?;
        Ok(pack)
    }

    fn walk(&self) -> Result<Revwalk<'_>, Error> {
        let mut walk = self.git.revwalk()?;
        for commit in &self.new {
            walk.push(*commit)?;
        }
        for commit in &self.known {
            walk.hide(*commit)?;
        }
        Ok(walk)
    }

    /// Returns true when a commit adds or changes a large file.
    fn has_large_file(&self) -> Result<bool, Error> {
        let odb = self.git.odb()?;
        for (number, commit) in self.walk()?.enumerate() {
            if number == MAX_COMMITS {
                return Ok(false);
            }
            let commit = self.git.find_commit(commit?)?;
            let before = commit.parent(0).and_then(|parent| parent.tree()).ok();
            let before = before.map(|tree| tree.id());
            let differences = list_tree_differences(self.git, before, Some(commit.tree_id()))?;
            let is_large = |id: Oid| odb.read_header(id).is_ok_and(|(size, _)| size > LARGE_BYTES);
            let mut new = differences.iter().filter_map(|difference| difference.new);
            if new.any(|(id, _)| is_large(id)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn find_objects(&self) -> Result<PackObjects, Error> {
        let mut known = PackObjects::default();
        for commit in &self.known {
            self.add_tree(&self.git.find_commit(*commit)?.tree()?, &mut known, false)?;
        }
        let mut objects = PackObjects {
            seen: known.seen,
            ..PackObjects::default()
        };
        for commit in self.walk()? {
            let commit = self.git.find_commit(commit?)?;
            objects.small.push((commit.id(), None));
            self.add_tree(&commit.tree()?, &mut objects, true)?;
        }
        Ok(objects)
    }

    /// Adds a tree with everything in it. Unless `is_packed`, the objects are only marked as seen.
    fn add_tree(&self, tree: &Tree<'_>, objects: &mut PackObjects, is_packed: bool) -> Result<(), Error> {
        let odb = self.git.odb()?;
        let mut queue = vec![(tree.id(), None)];
        while let Some((id, name)) = queue.pop() {
            if !objects.seen.insert(id) {
                continue;
            }
            for entry in &self.git.find_tree(id)? {
                let name = || entry.name().ok().map(str::to_owned);
                match entry.kind() {
                    Some(ObjectType::Tree) => queue.push((entry.id(), name())),
                    Some(ObjectType::Blob) if objects.seen.insert(entry.id()) && is_packed => {
                        let (size, _) = odb.read_header(entry.id())?;
                        if size > LARGE_BYTES {
                            objects.large.push(entry.id());
                        } else {
                            objects.small.push((entry.id(), name()));
                        }
                    }
                    // A file that was added before, or the commit of a submodule, which is in another repository.
                    Some(_) | None => {}
                }
            }
            if is_packed {
                objects.small.push((id, name));
            }
        }
        Ok(())
    }

    fn write_builder(&self, builder: &mut PackBuilder<'_>) -> Result<Vec<u8>, Error> {
        let (mut pack, mut fits) = (Vec::new(), true);
        let written = builder.foreach(|part| {
            fits = pack.len() + part.len() <= self.max_bytes;
            if fits {
                pack.extend_from_slice(part);
            }
            fits
        });
        match written {
            _ if !fits => Err(self.refuse()),
            Ok(()) => Ok(pack),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds files to a complete pack.
    fn append_large(&self, pack: &mut Vec<u8>, files: &[Oid]) -> Result<(), Error> {
        let damaged = || Error::BadPack("the new pack is incomplete".to_owned());
        let end = pack.len().checked_sub(TRAILER_BYTES).ok_or_else(damaged)?;
        pack.truncate(end);
        let count = pack
            .get_mut(COUNT_OFFSET..COUNT_OFFSET + size_of::<u32>())
            .ok_or_else(damaged)?;
        let before = u32::from_be_bytes(<[u8; 4]>::try_from(&*count).map_err(|_| damaged())?);
        let added = u32::try_from(files.len()).map_err(|_| damaged())?;
        count.copy_from_slice(&before.saturating_add(added).to_be_bytes());
        for file in files {
            let blob = self.git.find_blob(*file)?;
            append_blob(pack, blob.content())?;
            if pack.len() + TRAILER_BYTES > self.max_bytes {
                return Err(self.refuse());
            }
        }
        let trailer = digest(&SHA1_FOR_LEGACY_USE_ONLY, pack.as_slice());
        pack.extend_from_slice(trailer.as_ref());
        Ok(())
    }

    fn refuse(&self) -> Error {
        Error::BadPack(format!("it is larger than {} bytes", self.max_bytes))
    }
}

/// Appends a content as an object of a pack.
fn append_blob(pack: &mut Vec<u8>, content: &[u8]) -> Result<(), Error> {
    // The first byte has the type and the lowest four bits of the size, each further byte seven bits. The highest
    // bit announces another byte.
    let mut size = content.len();
    let mut byte = (BLOB << 4) | (size & 0xf) as u8;
    size >>= 4;
    while size > 0 {
        pack.push(byte | 0x80);
        byte = (size & 0x7f) as u8;
        size >>= 7;
    }
    pack.push(byte);
    let level = if is_compressible(content)? {
        Compression::default()
    } else {
        Compression::none()
    };
    let mut encoder = ZlibEncoder::new(pack, level);
    encoder.write_all(content)?;
    encoder.finish()?;
    Ok(())
}

/// Returns true when samples of a large content shrink by a twentieth or more.
fn is_compressible(content: &[u8]) -> Result<bool, Error> {
    let step = (content.len() / SAMPLES).max(1);
    let (mut before, mut after) = (0, 0);
    for part in content.chunks(step) {
        let part = part.get(..SAMPLE_BYTES).unwrap_or(part);
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(part)?;
        before += part.len();
        after += encoder.finish()?.len();
    }
    Ok(after < before - before / 20)
}

#[cfg(test)]
mod tests {
    use domain::CommitId;

    use super::*;
    use crate::{BareRepository, PackLimits};

    const MIB: usize = 1 << 20;

    /// Returns incompressible bytes, different for each seed.
    fn generate_noise(bytes: usize, seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        std::iter::repeat_with(next).take(bytes / 8).flatten().collect()
    }

    /// Commits files on top of a parent.
    fn commit_files(git: &Repository, parent: Option<&CommitId>, files: &[(&str, &[u8])]) -> CommitId {
        let mut root = git.treebuilder(None).unwrap();
        for (name, content) in files {
            root.insert(name, git.blob(content).unwrap(), 0o100_644).unwrap();
        }
        let tree = git.find_tree(root.write().unwrap()).unwrap();
        let who = git2::Signature::new("A", "a@acme.example", &git2::Time::new(1, 0)).unwrap();
        let parent = parent.map(|parent| {
            let id = Oid::from_str(parent.as_str()).unwrap();
            git.find_commit(id).unwrap()
        });
        let parents: Vec<_> = parent.iter().collect();
        let id = git.commit(None, &who, &who, "files", &tree, &parents).unwrap();
        id.to_string().parse().unwrap()
    }

    fn pack_one(
        repository: &BareRepository,
        (new, known): (&CommitId, &CommitId),
        max_bytes: usize,
    ) -> Result<Vec<u8>, Error> {
        repository.pack(std::slice::from_ref(new), std::slice::from_ref(known), max_bytes)
    }

    #[test]
    fn large_files_are_packed_with_small_ones() {
        let folder = tempfile::TempDir::new().unwrap();
        let ours = BareRepository::init_bare(&folder.path().join("ours")).unwrap();
        let theirs = BareRepository::init_bare(&folder.path().join("theirs")).unwrap();
        let old = generate_noise(3 * MIB, 1);
        let base = commit_files(ours.objects(), None, &[("old", &old)]);
        assert_eq!(commit_files(theirs.objects(), None, &[("old", &old)]), base);
        let (noise, text) = (generate_noise(4 * MIB + 8, 2), "a line\n".repeat(MIB));
        let files: [(&str, &[u8]); 5] = [
            ("copy", &noise),
            ("moved", &old),
            ("noise", &noise),
            ("small", b"small\n"),
            ("text", text.as_bytes()),
        ];
        let head = commit_files(ours.objects(), Some(&base), &files);
        let pack = pack_one(&ours, (&head, &base), usize::MAX).unwrap();
        // Commit, tree, noise, small and text: the copy is the same object, and the moved file is known.
        assert_eq!(pack[8..12], 5_u32.to_be_bytes());
        assert!(pack.len() < noise.len() + MIB, "{}", pack.len());
        theirs.import_pack(&pack, PackLimits::default()).unwrap();
        for (name, content) in files {
            let read = theirs.read_file(&head, name).unwrap();
            assert!(read.as_deref() == Some(content), "{name}");
        }
        assert!(pack_one(&ours, (&head, &base), pack.len()).is_ok());
        let error = pack_one(&ours, (&head, &base), pack.len() - 1).unwrap_err();
        assert!(matches!(error, Error::BadPack(_)), "{error}");
    }

    #[test]
    fn only_incompressible_content_is_stored_plainly() {
        let length = |content: &[u8]| {
            let mut pack = Vec::new();
            append_blob(&mut pack, content).unwrap();
            pack.len()
        };
        let noise = generate_noise(3 * MIB, 3);
        assert!(!is_compressible(&noise).unwrap());
        assert!((noise.len()..noise.len() + 4096).contains(&length(&noise)));
        let text = "a line\n".repeat(MIB / 2);
        assert!(length(text.as_bytes()) < text.len() / 50);
    }
}
