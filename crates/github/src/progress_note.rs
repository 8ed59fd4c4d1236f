//! Note in the description of a pull request that replaces the draft state in a repository without drafts.

/// Comments around the note, which GitHub does not show.
const START: &str = "<!-- journeyman:in-progress -->";
const END: &str = "<!-- /journeyman:in-progress -->";

/// Puts the note before a description. A description that has one stays unchanged.
pub(crate) fn add_progress_note(body: &str, note: &str) -> String {
    if has_progress_note(body) {
        return body.to_owned();
    }
    format!("{START}\n{}\n{END}\n\n{body}", note.trim())
}

/// True when a description has the note.
pub(crate) fn has_progress_note(body: &str) -> bool {
    find_progress_note(body).is_some()
}

/// Removes the note from a description, with the empty lines behind it.
pub(crate) fn remove_progress_note(body: &str) -> String {
    let Some((before, after)) = find_progress_note(body) else {
        return body.to_owned();
    };
    format!("{before}{}", after.trim_start_matches(['\r', '\n']))
}

/// Texts before and after the note.
fn find_progress_note(body: &str) -> Option<(&str, &str)> {
    let (before, rest) = body.split_once(START)?;
    let (_, after) = rest.split_once(END)?;
    Some((before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_is_added_once_then_removed() {
        for body in ["", "Adds a page.", "Adds a page.\n\n---\n\nFor ENG-1\n"] {
            let noted = add_progress_note(body, "> Work in progress\n");
            assert!(has_progress_note(&noted) && noted.contains("> Work in progress\n"));
            assert!(noted.ends_with(body));
            assert_eq!(add_progress_note(&noted, "> Another note"), noted);
            assert_eq!(remove_progress_note(&noted), body);
        }
    }

    #[test]
    fn edited_description_loses_note_alone() {
        let edited = format!("Please wait.\r\n{START}\r\n> changed by hand\r\n{END}\r\n\r\nText");
        assert_eq!(remove_progress_note(&edited), "Please wait.\r\nText");
    }

    #[test]
    fn half_of_note_is_none() {
        for body in [
            START.to_owned(),
            END.to_owned(),
            format!("{END} {START}"),
            "in-progress".to_owned(),
        ] {
            assert!(!has_progress_note(&body), "{body}");
            assert_eq!(remove_progress_note(&body), body);
        }
    }
}
