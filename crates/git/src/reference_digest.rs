//! Digest of the references that one mirror fetches from another, to compare the two without a fetch.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use git2::Oid;
use ring::digest::{Context, SHA256};

use crate::{BareRepository, Error};

/// Namespaces of the references that an executor fetches from the git gate.
///
/// They have branches, the names of branches without objects at the gate, and commits that were fetched before their
/// branch.
pub const MIRRORED_NAMESPACES: [&str; 3] = ["refs/heads/", "refs/taken/", "refs/wanted/"];

impl BareRepository {
    /// Returns a digest of all references in [`MIRRORED_NAMESPACES`], as 64 hexadecimal characters.
    ///
    /// Mirrors with the same digest have the same references, so a fetch from one into the other would change nothing.
    ///
    /// # Errors
    /// [`Error::Failed`] when the repository cannot be read.
    pub fn reference_digest(&self) -> Result<String, Error> {
        // Names as bytes, because an old branch may have another encoding than UTF-8.
        let mut targets: BTreeMap<Vec<u8>, Oid> = BTreeMap::new();
        for namespace in MIRRORED_NAMESPACES {
            for reference in self.objects().references_glob(&format!("{namespace}*"))? {
                let reference = reference?;
                let name = reference.name_bytes().to_vec();
                // A fetch sees the commit at which a symbolic reference ends, and none for a broken one.
                let target = reference.resolve().ok().and_then(|resolved| resolved.target());
                targets.extend(target.map(|target| (name, target)));
            }
        }
        let mut digest = Context::new(&SHA256);
        for (name, target) in &targets {
            // No name contains a line feed, so two different lists never have the same text.
            digest.update(format!("{target} ").as_bytes());
            digest.update(name);
            digest.update(b"\n");
        }
        Ok(HEXLOWER.encode(digest.finish().as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _};

    use domain::CommitId;

    use super::*;

    /// Mirror in a temporary folder, with two commits.
    struct MirrorWorld {
        folder: tempfile::TempDir,
        mirror: BareRepository,
        commits: [CommitId; 2],
    }

    fn build_world() -> MirrorWorld {
        let folder = tempfile::TempDir::new().unwrap();
        let mirror = BareRepository::init_bare(&folder.path().join("mirror.git")).unwrap();
        let commits = ["one", "two"].map(|message| {
            let git = mirror.objects();
            let tree = git.find_tree(git.treebuilder(None).unwrap().write().unwrap());
            let who = git2::Signature::new("A", "a@acme.example", &git2::Time::new(1, 0)).unwrap();
            let id = git.commit(None, &who, &who, message, &tree.unwrap(), &[]);
            id.unwrap().to_string().parse().unwrap()
        });
        MirrorWorld {
            folder,
            mirror,
            commits,
        }
    }

    #[test]
    fn digest_changes_with_each_reference() {
        let MirrorWorld {
            mirror,
            commits: [one, two],
            folder: _folder,
        } = build_world();
        let empty = mirror.reference_digest().unwrap();
        assert_eq!(empty.len(), 64);
        let mut seen = vec![empty.clone()];
        let mut is_new = || {
            let digest = mirror.reference_digest().unwrap();
            let is_new = !seen.contains(&digest);
            seen.push(digest);
            is_new
        };
        mirror.set_branch("main", &one).unwrap();
        assert!(is_new(), "a new branch");
        mirror.set_branch("main", &two).unwrap();
        assert!(is_new(), "a moved branch");
        mirror.set_branch("fix/x", &one).unwrap();
        assert!(is_new(), "a further branch");
        mirror.set_taken(&["huge".to_owned()], &one).unwrap();
        assert!(is_new(), "the name of a branch without objects");
        let id = Oid::from_str(one.as_str()).unwrap();
        mirror
            .objects()
            .reference("refs/wanted/a", id, true, "test")
            .unwrap();
        assert!(is_new(), "a commit before its branch");
        // A tag is fetched by no mirror.
        mirror
            .objects()
            .reference("refs/tags/v1", id, true, "test")
            .unwrap();
        assert!(!is_new(), "a tag");
        for namespace in MIRRORED_NAMESPACES {
            mirror.remove_references(namespace).unwrap();
        }
        assert_eq!(mirror.reference_digest().unwrap(), empty);
    }

    #[test]
    fn name_in_other_encoding_is_digested() {
        let MirrorWorld {
            mirror,
            commits: [one, _],
            folder: _folder,
        } = build_world();
        mirror.set_branch("main", &one).unwrap();
        let before = mirror.reference_digest().unwrap();
        let latin = OsStr::from_bytes(b"caf\xe9");
        fs::write(mirror.path().join("refs/heads").join(latin), format!("{one}\n")).unwrap();
        assert_ne!(mirror.reference_digest().unwrap(), before);
    }

    #[test]
    fn packed_references_have_same_digest() {
        let MirrorWorld {
            folder,
            mirror,
            commits: [one, two],
        } = build_world();
        for (branch, commit) in [("main", &one), ("fix/x", &two), ("fix/x2", &one)] {
            mirror.set_branch(branch, commit).unwrap();
        }
        let loose = mirror.reference_digest().unwrap();
        crate::recovery::pack_references(mirror.path()).unwrap();
        let opened = BareRepository::open(&folder.path().join("mirror.git")).unwrap();
        assert!(!opened.path().join("refs/heads/main").exists());
        assert_eq!(opened.reference_digest().unwrap(), loose);
    }
}
