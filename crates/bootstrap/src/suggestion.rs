//! Suggestion of the name that a misspelled one probably means.

// Similarity from 0 to 1 (Jaro-Winkler) from which on a name is suggested. Names of other subjects stay below.
const CLOSE: f64 = 0.85;

/// Known name that resembles the wanted one most; `None` when none is close.
pub fn find_nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let scored = known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name));
    let close = scored.filter(|(score, _)| *score >= CLOSE);
    let nearest = close.max_by(|(one, _), (other, _)| one.total_cmp(other));
    nearest.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_name_suggests_nearest() {
        let statuses = || vec!["To Do", "Ready for Agent", "In Progress", "Done"];
        let projects = || vec!["OPS", "ENG"];
        for (wanted, known, nearest) in [
            ("Redy for Agent", statuses(), Some("Ready for Agent")),
            ("in progres", statuses(), Some("In Progress")),
            ("Someday", statuses(), None),
            ("ENGG", projects(), Some("ENG")),
            ("SHOP", projects(), None),
            (
                "own_acounts",
                vec!["own_accounts", "listen"],
                Some("own_accounts"),
            ),
            ("own_acounts", Vec::new(), None),
        ] {
            assert_eq!(find_nearest(wanted, known), nearest, "{wanted}");
        }
    }
}
