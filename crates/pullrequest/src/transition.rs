//! Choice of a transition among those of a workflow. No other module compares their names.

/// Transition that a workflow offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Jira's id of the transition.
    pub id: String,
    /// Name of the transition.
    pub name: String,
    /// Name of the status that it leads to.
    pub leads_to: String,
    /// Number of fields that a user would have to fill in.
    pub fields: usize,
}

/// Result of a search for a transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// No transition matches.
    Nothing,
    /// One transition matches best.
    One(&'a Offered),
    /// Several transitions match equally well.
    Several(Vec<&'a Offered>),
}

/// Closeness of a name to code review; the closest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    Exact,
    OtherCase,
    ContainsCodeReview,
    ContainsReview,
    Acronym,
}

// Names that match exactly; docs/pull-requests.md has the order of all matches.
const CODE_REVIEW: [&str; 2] = ["In Code Review", "Code Review"];

fn closeness(name: &str, acronyms: &[String]) -> Option<Closeness> {
    let name = name.trim();
    let lower = name.to_lowercase();
    let is_acronym = |word: &str| acronyms.iter().any(|known| known.eq_ignore_ascii_case(word));
    if CODE_REVIEW.contains(&name) {
        Some(Closeness::Exact)
    } else if CODE_REVIEW.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        Some(Closeness::OtherCase)
    } else if lower.contains("code review") {
        Some(Closeness::ContainsCodeReview)
    } else if lower.contains("review") {
        Some(Closeness::ContainsReview)
    } else if name.split(|c: char| !c.is_alphanumeric()).any(is_acronym) {
        Some(Closeness::Acronym)
    } else {
        None
    }
}

/// True when a status is one of code review.
pub fn is_review(status: &str, acronyms: &[String]) -> bool {
    closeness(status, acronyms).is_some()
}

/// Finds the transition to code review by its name or by the name of its status, whichever is closer. Only
/// the closest matches count.
pub fn to_review<'a>(offered: &'a [Offered], acronyms: &[String]) -> Found<'a> {
    let of = |one: &Offered| {
        let both = [&one.name, &one.leads_to].into_iter();
        both.filter_map(|name| closeness(name, acronyms)).min()
    };
    // Variants of `Closeness` are ordered by closeness, so the minimum is the best.
    let best = offered.iter().filter_map(of).min();
    let is_best = |one: &&Offered| best.is_some() && of(one) == best;
    found(offered.iter().filter(is_best).collect())
}

/// Finds the transition that a user names, by its name or by the name of its status. The exact spelling comes
/// before other cases.
pub fn named<'a>(offered: &'a [Offered], choice: &str) -> Found<'a> {
    let exact = |one: &&Offered| one.name == choice;
    let any_case = |one: &&Offered| one.name.eq_ignore_ascii_case(choice);
    let status = |one: &&Offered| one.leads_to.eq_ignore_ascii_case(choice);
    let tries: [&dyn Fn(&&Offered) -> bool; 3] = [&exact, &any_case, &status];
    let mut matches = tries
        .map(|one| offered.iter().filter(one).collect::<Vec<_>>())
        .into_iter();
    found(matches.find(|matching| !matching.is_empty()).unwrap_or_default())
}

/// Lists the positions of all transitions that lead to one of the statuses.
///
/// Earlier statuses come first, then the exact spelling, then fewer required fields. The name of a transition
/// is ignored, because it does not determine its status.
pub fn to_statuses(offered: &[Offered], statuses: &[String]) -> Vec<usize> {
    let rank = |one: &Offered| {
        let place = statuses
            .iter()
            .position(|status| one.leads_to.eq_ignore_ascii_case(status))?;
        Some((place, one.leads_to != statuses[place], one.fields))
    };
    let mut ranked: Vec<_> = offered
        .iter()
        .enumerate()
        .filter_map(|(index, one)| Some((rank(one)?, index)))
        .collect();
    // The index makes each entry unique, so that the order is stable.
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, index)| index).collect()
}

fn found(matching: Vec<&Offered>) -> Found<'_> {
    match matching.as_slice() {
        [] => Found::Nothing,
        [one] => Found::One(one),
        [..] => Found::Several(matching),
    }
}

/// Renders a numbered list for users, from 1.
pub fn numbered<'a>(offered: impl IntoIterator<Item = &'a Offered>) -> String {
    let line = |(index, one): (usize, &Offered)| format!("{}. {} (to {})", index + 1, one.name, one.leads_to);
    let lines: Vec<String> = offered.into_iter().enumerate().map(line).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(names: &[(&str, &str)]) -> Vec<Offered> {
        let one = |(index, (name, leads_to)): (usize, &(&str, &str))| Offered {
            id: index.to_string(),
            name: (*name).to_owned(),
            leads_to: (*leads_to).to_owned(),
            fields: 0,
        };
        names.iter().enumerate().map(one).collect()
    }

    fn ids(found: Found<'_>) -> Vec<String> {
        match found {
            Found::Nothing => Vec::new(),
            Found::One(one) => vec![one.id.clone()],
            Found::Several(several) => several.into_iter().map(|one| one.id.clone()).collect(),
        }
    }

    fn review(names: &[&str], acronyms: &[&str]) -> Vec<String> {
        let pairs: Vec<(&str, &str)> = names.iter().map(|name| (*name, "Elsewhere")).collect();
        let acronyms: Vec<String> = acronyms.iter().map(|one| (*one).to_owned()).collect();
        ids(to_review(&offered(&pairs), &acronyms))
    }

    #[test]
    fn closest_transition_name_wins() {
        let all = [
            "CR",
            "Peer review",
            "Ready for code review",
            "CODE REVIEW",
            "In Code Review",
        ];
        // Each name wins over the previous ones.
        for (last, expected) in ["0", "1", "2", "3", "4"].into_iter().enumerate() {
            assert_eq!(review(&all[..=last], &["cr", "ICR"]), [expected], "{last}");
        }
        assert_eq!(review(&["Code Review"], &[]), ["0"]);
        assert_eq!(review(&["Code Review Started"], &[]), ["0"]);
    }

    #[test]
    fn acronyms_match_whole_words_when_configured() {
        assert!(review(&["CR", "ICR"], &[]).is_empty());
        assert_eq!(review(&["Crash", "To ICR"], &["CR", "ICR"]), ["1"]);
    }

    #[test]
    fn equally_close_names_are_ambiguous() {
        assert_eq!(review(&["Peer review", "Done", "Design review"], &[]), ["0", "2"]);
        assert!(review(&["Done", "In Progress"], &[]).is_empty());
    }

    #[test]
    fn target_status_counts_like_transition_name() {
        let offered = offered(&[("Start review", "Reviewing"), ("Hand over", "In Code Review")]);
        assert_eq!(ids(to_review(&offered, &[])), ["1"]);
        assert!(is_review("In Review", &[]) && !is_review("In Progress", &[]));
    }

    #[test]
    fn choice_names_transition_or_status() {
        let offered = offered(&[
            ("Peer review", "In Review"),
            ("PEER REVIEW", "Done"),
            ("Ship", "Shipped"),
        ]);
        assert_eq!(ids(named(&offered, "Peer review")), ["0"]);
        assert_eq!(ids(named(&offered, "peer review")), ["0", "1"]);
        assert_eq!(ids(named(&offered, "shipped")), ["2"]);
        assert!(ids(named(&offered, "Nowhere")).is_empty());
        assert_eq!(
            numbered(&offered[1..]),
            "1. PEER REVIEW (to Done)\n2. Ship (to Shipped)"
        );
    }

    fn order(offered: &[Offered], statuses: &[&str]) -> Vec<usize> {
        let statuses: Vec<String> = statuses.iter().map(|status| (*status).to_owned()).collect();
        to_statuses(offered, &statuses)
    }

    #[test]
    fn transitions_rank_by_order_of_statuses() {
        let workflow = offered(&[
            ("Close issue", "Closed"),
            ("Finish", "DONE"),
            ("Done", "Somewhere"),
        ]);
        assert_eq!(order(&workflow, &["Done", "closed"]), [1, 0]);
        assert_eq!(order(&workflow, &["Shipped", "closed"]), [0]);
        assert!(order(&workflow, &["In Review"]).is_empty());
        let cases = offered(&[("One", "DONE"), ("Two", "Done")]);
        assert_eq!(order(&cases, &["Done"]), [1, 0]);
    }

    #[test]
    fn transition_without_required_fields_comes_first() {
        let mut workflow = offered(&[
            ("With resolution", "Done"),
            ("Quick", "Done"),
            ("Close", "Closed"),
        ]);
        workflow[0].fields = 1;
        assert_eq!(order(&workflow, &["Done", "Closed"]), [1, 0, 2]);
    }
}
