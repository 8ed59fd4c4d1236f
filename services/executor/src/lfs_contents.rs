//! Contents of Git LFS files for one workspace: the worktree has them in place of their pointers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use domain::cause::format_error_chain;
use git::{LfsHold, LfsOid, LfsOmission, LfsPointer};

/// Contents that a workspace reads. Empty where the rules do not read Git LFS. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct LfsContents {
    held: Option<Arc<HeldContents>>,
    /// True in a folder of the user, whose own git uploads new contents.
    has_uploads: bool,
}

struct HeldContents {
    /// Keeps the contents in the store.
    hold: LfsHold,
    stored: BTreeSet<LfsOid>,
    /// Reasons of the missing contents.
    left_out: BTreeMap<LfsOid, String>,
}

impl LfsContents {
    /// Collects the stored ones of the held contents. Blocks.
    pub(crate) fn new(hold: LfsHold, left_out: Vec<LfsOmission>) -> Self {
        let stored = hold.stored();
        let left_out = left_out
            .into_iter()
            .map(|omission| (omission.pointer.oid, omission.reason));
        Self {
            held: Some(Arc::new(HeldContents {
                hold,
                stored,
                left_out: left_out.collect(),
            })),
            has_uploads: false,
        }
    }

    /// Contents of a folder of the user: none are read, and new ones are left to the user's git.
    pub(crate) const fn of_user_folder() -> Self {
        Self {
            held: None,
            has_uploads: true,
        }
    }

    /// True where the rules do not read Git LFS.
    pub(crate) const fn is_off(&self) -> bool {
        self.held.is_none()
    }

    /// True when both have the same contents, so that they write the same files.
    pub(crate) fn has_same(&self, other: &Self) -> bool {
        let stored = |contents: &Self| contents.held.as_ref().map(|held| held.stored.clone());
        stored(self) == stored(other)
    }

    /// Describes the contents for a key; empty without any. With others, the same commit has other files.
    pub(crate) fn describe(&self) -> String {
        let stored = self.held.iter().flat_map(|held| &held.stored);
        let names: Vec<&str> = stored.map(LfsOid::as_str).collect();
        if names.is_empty() {
            return String::new();
        }
        // There may be thousands of names.
        LfsOid::of(names.join(" ").as_bytes()).to_string()
    }

    /// True when the content of a pointer is here.
    pub(crate) fn has(&self, pointer: &LfsPointer) -> bool {
        self.held.as_ref().is_some_and(|held| {
            held.stored.contains(&pointer.oid) && held.hold.size_of(&pointer.oid) == Some(pointer.size)
        })
    }

    /// Reads the content for the committed bytes of a file; `None` for bytes that are not a pointer, and for a missing
    /// content. Blocks.
    pub(crate) fn smudge(&self, committed: &[u8]) -> Option<Vec<u8>> {
        let pointer = LfsPointer::parse(committed).filter(|pointer| self.has(pointer))?;
        let held = self.held.as_ref()?;
        match held.hold.read(&pointer.oid) {
            // The disk may have lost bytes since the download was verified.
            Ok(content) if content.len() as u64 == pointer.size => Some(content),
            Ok(_) => {
                tracing::warn!(oid = %pointer.oid, "a stored content of Git LFS is damaged");
                None
            }
            Err(error) => {
                let error = format_error_chain(&error);
                tracing::warn!(oid = %pointer.oid, error, "a stored content of Git LFS cannot be read");
                None
            }
        }
    }

    /// Returns the pointer of a file's bytes, if they are one of these contents. So a moved or copied file gets its
    /// pointer again.
    pub(crate) fn clean(&self, content: &[u8]) -> Option<LfsPointer> {
        let held = self.held.as_ref().filter(|held| !held.stored.is_empty())?;
        let pointer = LfsPointer {
            oid: LfsOid::of(content),
            size: content.len() as u64,
        };
        held.stored.contains(&pointer.oid).then_some(pointer)
    }

    /// True for bytes that a commit can have at a path of Git LFS without an upload, besides the pointers that
    /// [`Self::clean`] returns. An empty file is its own pointer.
    pub(crate) fn can_commit(&self, content: &[u8]) -> bool {
        self.has_uploads || content.is_empty() || git::is_lfs_pointer(content)
    }

    /// Reason why the content of a pointer is missing.
    pub(crate) fn reason_of(&self, committed: &[u8]) -> Option<&str> {
        let pointer = LfsPointer::parse(committed)?;
        let held = self.held.as_ref()?;
        held.left_out.get(&pointer.oid).map(String::as_str)
    }
}

impl fmt::Debug for LfsContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stored = self.held.as_ref().map(|held| held.stored.len());
        f.debug_struct("LfsContents").field("stored", &stored).finish()
    }
}

#[cfg(test)]
mod tests {
    use git::LfsStore;

    use super::*;

    fn store_content(store: &LfsStore, mirror: &std::path::Path, content: &[u8]) -> LfsPointer {
        let pointer = LfsPointer {
            oid: LfsOid::of(content),
            size: content.len() as u64,
        };
        let mut receipt = store.receive(mirror, &pointer).unwrap();
        receipt.write(content).unwrap();
        receipt.finish().unwrap();
        pointer
    }

    #[test]
    fn content_and_pointer_replace_each_other() {
        let folder = tempfile::TempDir::new().unwrap();
        let mirror = folder.path().join("acme/shop.git");
        let store = Arc::new(LfsStore::new(folder.path().to_owned(), 100));
        let pointer = store_content(&store, &mirror, b"content");
        let missing = LfsPointer {
            oid: LfsOid::of(b"missing"),
            size: 7,
        };
        let hold = store.hold(&mirror, [pointer.clone(), missing.clone()]);
        let left_out = LfsOmission {
            pointer: missing.clone(),
            reason: "too large".to_owned(),
        };
        let contents = LfsContents::new(hold, vec![left_out]);
        let committed = pointer.render().into_bytes();
        assert_eq!(contents.smudge(&committed).unwrap(), b"content");
        assert_eq!(
            contents.clean(b"content").unwrap().render().into_bytes(),
            committed
        );
        assert_eq!(contents.clean(b"changed"), None);
        assert_eq!(contents.smudge(b"content"), None);
        let committed = missing.render().into_bytes();
        assert_eq!(contents.smudge(&committed), None);
        assert_eq!(contents.reason_of(&committed), Some("too large"));
        // A pointer with another size is another file.
        let forged = LfsPointer { size: 8, ..pointer };
        assert!(!contents.has(&forged));
        assert!(!contents.has_same(&LfsContents::default()) && contents.has_same(&contents.clone()));
        // Only what is here counts, and a rule without any content changes no file.
        let none = LfsContents::new(store.hold(&mirror, [missing]), Vec::new());
        let other = store_content(&store, &mirror, b"other");
        let others = LfsContents::new(store.hold(&mirror, [other]), Vec::new());
        assert_eq!(none.describe(), LfsContents::default().describe());
        assert_ne!(contents.describe(), none.describe());
        assert_ne!(contents.describe(), others.describe());
    }

    #[test]
    fn without_rule_nothing_is_replaced() {
        let contents = LfsContents::default();
        let pointer = LfsPointer {
            oid: LfsOid::of(b"content"),
            size: 7,
        };
        assert!(contents.is_off() && !contents.has(&pointer));
        assert_eq!(contents.smudge(pointer.render().as_bytes()), None);
        assert_eq!(contents.clean(b"content"), None);
    }

    #[test]
    fn content_without_upload_can_be_committed() {
        let contents = LfsContents::default();
        let pointer = LfsPointer {
            oid: LfsOid::of(b"content"),
            size: 7,
        };
        assert!(contents.can_commit(b"") && contents.can_commit(pointer.render().as_bytes()));
        assert!(!contents.can_commit(b"content"));
        assert!(LfsContents::of_user_folder().can_commit(b"content"));
    }
}
