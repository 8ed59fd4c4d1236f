//! The keyword `$Id$` of files with the attribute `ident`: the worktree has the id of the blob in it, the tree
//! has not.

use std::borrow::Cow;

use git2::Oid;

/// Returns the content with plain keywords, as git stores it.
pub(super) fn strip_keywords(content: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    replace_keywords(content, &|keyword| match keyword {
        [b'I', b'd', b':', ..] => Some(b"Id$".to_vec()),
        _ => None,
    })
}

/// Returns the content with the blob's id in its keywords, as git checks it out.
pub(super) fn expand_keywords(content: Cow<'_, [u8]>, blob: Oid) -> Cow<'_, [u8]> {
    replace_keywords(content, &|keyword| match keyword {
        [b'I', b'd', b'$'] => Some(format!("Id: {blob} $").into_bytes()),
        // Spaces at other places are those of another version control, and stay.
        [b'I', b'd', b':', inner @ .., b'$'] if !has_foreign_id(inner) => {
            Some(format!("Id: {blob} $").into_bytes())
        }
        _ => None,
    })
}

/// True when a space follows the first character and is not the last one.
fn has_foreign_id(inner: &[u8]) -> bool {
    let found = inner.iter().skip(1).position(|byte| *byte == b' ');
    found.is_some_and(|at| at + 2 < inner.len())
}

/// Replaces `Id$` and `Id:…$` after a dollar sign. `replace` receives the keyword with its last dollar sign.
fn replace_keywords<'a>(content: Cow<'a, [u8]>, replace: &dyn Fn(&[u8]) -> Option<Vec<u8>>) -> Cow<'a, [u8]> {
    let mut converted = Vec::new();
    let (mut done, mut at) = (0, 0);
    while let Some(start) = find_dollar(&content, at) {
        at = start + 1;
        let rest = content.get(at..).unwrap_or_default();
        let end = match rest {
            [b'I', b'd', b'$', ..] => at + 3,
            [b'I', b'd', b':', ..] => match find_dollar(&content, at + 3) {
                Some(end) => end + 1,
                None => break,
            },
            _ => continue,
        };
        let keyword = content.get(at..end).unwrap_or_default();
        if keyword.contains(&b'\n') {
            continue;
        }
        let Some(new) = replace(keyword) else {
            // Git passes over a plain keyword when it stores a file, and over a foreign one by its first dollar
            // sign only.
            continue;
        };
        converted.extend(content.get(done..at).unwrap_or_default());
        converted.extend(new);
        (done, at) = (end, end);
    }
    if done == 0 {
        return content;
    }
    converted.extend(content.get(done..).unwrap_or_default());
    converted.into()
}

fn find_dollar(content: &[u8], from: usize) -> Option<usize> {
    let rest = content.get(from..)?;
    rest.iter().position(|byte| *byte == b'$').map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(text: &str) -> String {
        String::from_utf8(strip_keywords(Cow::Borrowed(text.as_bytes())).into_owned()).unwrap()
    }

    #[test]
    fn keywords_are_plain_in_tree() {
        for (text, stored) in [
            ("a $Id$ b", "a $Id$ b"),
            ("a $Id: 12 $ b $Id: x$\n", "a $Id$ b $Id$\n"),
            ("$Id: a\nb $", "$Id: a\nb $"),
            ("$Id: open", "$Id: open"),
            ("$Idx$ $$Id:1$", "$Idx$ $$Id$"),
        ] {
            assert_eq!(strip(text), stored, "{text:?}");
        }
    }

    #[test]
    fn keywords_have_blob_id_in_worktree() {
        let id = Oid::from_str("ce013625030ba8dba906f756967f9e9ca394464a").unwrap();
        for (text, written) in [
            ("$Id$", format!("$Id: {id} $")),
            ("$Id:$", format!("$Id: {id} $")),
            ("$Id: old $x", format!("$Id: {id} $x")),
            ("$Id: a.c 1.2 x $", "$Id: a.c 1.2 x $".to_owned()),
            ("$Id: a\nb $", "$Id: a\nb $".to_owned()),
            ("plain", "plain".to_owned()),
        ] {
            let expanded = expand_keywords(Cow::Borrowed(text.as_bytes()), id).into_owned();
            assert_eq!(String::from_utf8(expanded).unwrap(), written, "{text:?}");
        }
    }
}
