//! Conversion of one file between tree and worktree, in the order of git.

use std::borrow::Cow;

use git2::Oid;

use crate::lfs_contents::LfsContents;

use super::{
    iconv_encoding::{EncodingProblem, IconvEncoding},
    ident::{expand_keywords, strip_keywords},
    line_ends::LineEndRule,
};

/// Encoding of a file in the worktree.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WorktreeEncoding {
    /// Name in `.gitattributes`, and its tables.
    Known(String, IconvEncoding),
    /// Name of an encoding that is not supported.
    Unknown(String),
}

/// Attributes of a file that change its bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::workspace) struct FileConversion {
    pub(super) line_ends: LineEndRule,
    pub(super) has_ident: bool,
    pub(super) encoding: Option<WorktreeEncoding>,
    /// True when Git LFS keeps the content.
    pub(in crate::workspace) is_lfs: bool,
    /// Filter program, which is not run here.
    pub(super) filter: Option<String>,
}

/// Reason why a file cannot be stored as git would store it. The text follows the path.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::workspace) enum ConversionRefusal {
    #[error(
        ".gitattributes gives it to the filter {0}, which does not run here, so that it cannot be changed"
    )]
    Filter(String),
    #[error("its encoding {0} in .gitattributes is not supported here, so that it cannot be changed")]
    UnknownEncoding(String),
    #[error(".gitattributes says that it is {name}, but {problem}; write it in that encoding")]
    NotEncoded { name: String, problem: EncodingProblem },
    #[error(
        ".gitattributes gives it to Git LFS, and a new content cannot be uploaded from here; put the content at a path \
         without Git LFS, or leave the file as it was and say in the pull request what a person has to change"
    )]
    LfsContent,
}

impl FileConversion {
    /// Returns the bytes of the tree for those of the worktree.
    ///
    /// `read_indexed` returns the content of the path in the index. A content of Git LFS becomes its pointer; one that
    /// needs an upload is refused.
    pub(in crate::workspace) fn to_tree<'a>(
        &self,
        content: &'a [u8],
        lfs: &LfsContents,
        read_indexed: &dyn Fn() -> Option<Vec<u8>>,
    ) -> Result<Cow<'a, [u8]>, ConversionRefusal> {
        if let Some(filter) = &self.filter {
            return Err(ConversionRefusal::Filter(filter.clone()));
        }
        if self.is_lfs {
            if let Some(pointer) = lfs.clean(content) {
                return Ok(pointer.render().into_bytes().into());
            }
            if !lfs.can_commit(content) {
                return Err(ConversionRefusal::LfsContent);
            }
        }
        let mut converted = Cow::Borrowed(content);
        match &self.encoding {
            // Git converts no empty file, thus it may lack a byte order mark.
            Some(WorktreeEncoding::Known(name, encoding)) if !content.is_empty() => {
                let text = encoding
                    .decode(content)
                    .map_err(|problem| ConversionRefusal::NotEncoded {
                        name: name.clone(),
                        problem,
                    })?;
                converted = Cow::Owned(text.into_bytes());
            }
            Some(WorktreeEncoding::Unknown(name)) if !content.is_empty() => {
                return Err(ConversionRefusal::UnknownEncoding(name.clone()));
            }
            Some(WorktreeEncoding::Known(..) | WorktreeEncoding::Unknown(_)) | None => {}
        }
        converted = self.line_ends.to_tree(converted, read_indexed);
        if self.has_ident {
            converted = strip_keywords(converted);
        }
        Ok(converted)
    }

    /// Returns the bytes of the worktree for those of the tree.
    ///
    /// As in git, a text that the encoding does not have stays in UTF-8, and filter programs do not run. A pointer of
    /// Git LFS becomes its content, if that is here.
    pub(in crate::workspace) fn to_worktree<'a>(
        &self,
        content: &'a [u8],
        lfs: &LfsContents,
        blob: Oid,
    ) -> Cow<'a, [u8]> {
        if self.is_lfs
            && let Some(content) = lfs.smudge(content)
        {
            return content.into();
        }
        let mut converted = Cow::Borrowed(content);
        if self.has_ident {
            converted = expand_keywords(converted, blob);
        }
        converted = self.line_ends.to_worktree(converted);
        if let Some(WorktreeEncoding::Known(_, encoding)) = &self.encoding
            && !converted.is_empty()
        {
            let encoded = std::str::from_utf8(&converted)
                .ok()
                .and_then(|text| encoding.encode(text).ok());
            if let Some(encoded) = encoded {
                converted = encoded.into();
            }
        }
        converted
    }
}
