//! Severities of `git fsck` faults in fetched objects, and the parser of its refusal.

use crate::Error;

// Severities of object faults that must not depend on the defaults of git's release; all others keep the
// default.
//
// Faults of old tools in names, dates and modes mislead no reader, and history with them cannot be rewritten:
// each is a warning. Tree entries that a checkout or tool would misinterpret, and objects that two readers
// interpret differently, are errors.
pub(crate) const FETCH_SEVERITIES: [(&str, &str); 35] = [
    ("badDate", "warn"),
    ("badDateOverflow", "warn"),
    ("badEmail", "warn"),
    ("badFilemode", "warn"),
    ("badName", "warn"),
    ("badTimezone", "warn"),
    ("largePathname", "warn"),
    ("missingEmail", "warn"),
    ("missingNameBeforeEmail", "warn"),
    ("missingSpaceBeforeDate", "warn"),
    ("missingSpaceBeforeEmail", "warn"),
    ("multipleAuthors", "warn"),
    ("nulInCommit", "warn"),
    ("zeroPaddedDate", "warn"),
    ("zeroPaddedFilemode", "warn"),
    ("badTree", "error"),
    ("duplicateEntries", "error"),
    ("emptyName", "error"),
    ("fullPathname", "error"),
    ("gitattributesBlob", "error"),
    ("gitattributesLarge", "error"),
    ("gitattributesLineLength", "error"),
    ("gitmodulesBlob", "error"),
    ("gitmodulesLarge", "error"),
    ("gitmodulesName", "error"),
    ("gitmodulesPath", "error"),
    ("gitmodulesSymlink", "error"),
    ("gitmodulesUpdate", "error"),
    ("gitmodulesUrl", "error"),
    ("hasDot", "error"),
    ("hasDotdot", "error"),
    ("hasDotgit", "error"),
    ("nullSha1", "error"),
    ("treeNotSorted", "error"),
    ("unknownType", "error"),
];

/// Parses the object and fault for which `git` refused a fetch; `None` for other failures.
pub(crate) fn find_refused_object(stderr: &str) -> Option<Error> {
    let mut lines = stderr.lines().filter_map(|line| {
        let line = line.trim().strip_prefix("error: ")?;
        let (object, rest) = line.strip_prefix("object ")?.split_once(": ")?;
        let (fault, words) = rest.split_once(": ").unwrap_or((rest, ""));
        let is_id = object.len() >= 40 && object.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_fault = !fault.is_empty() && fault.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (is_id && is_fault).then(|| Error::RefusedObject {
            object: object.to_owned(),
            fault: fault.to_owned(),
            detail: words.chars().take(200).collect(),
        })
    });
    lines.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_object_has_id_and_fault() {
        let object = "2fe53b4bdbd3a1f4f4e6ad2c1a2b3c4d5e6f7081";
        let stderr = format!(
            "remote: Enumerating objects: 3, done.\nwarning: in commit {object}: badTimezone: x\n\
             error: object {object}: hasDotgit: contains '.git'\nfatal: fsck error in packed object\n"
        );
        let found = find_refused_object(&stderr).unwrap();
        let Error::RefusedObject {
            object: named, fault, ..
        } = &found
        else {
            panic!("{found}");
        };
        assert_eq!((named.as_str(), fault.as_str()), (object, "hasDotgit"));
        assert!(find_refused_object("error: object file: cannot be read").is_none());
    }
}
