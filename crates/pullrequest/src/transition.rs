//! Choice of a transition among those of a workflow. No other module compares their names.

/// Transition that a workflow offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedTransition {
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
pub enum TransitionMatch<'a> {
    /// No transition matches.
    Nothing,
    /// One transition matches best.
    One(&'a OfferedTransition),
    /// Several transitions match equally well.
    Several(Vec<&'a OfferedTransition>),
}

/// Closeness of a name to code review; the closest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ReviewCloseness {
    Exact,
    OtherCase,
    ContainsCodeReview,
    ContainsReview,
    Acronym,
}

// Names that match exactly; docs/pull-requests.md has the order of all matches.
const CODE_REVIEW: [&str; 2] = ["In Code Review", "Code Review"];

fn rate_closeness(name: &str, acronyms: &[String]) -> Option<ReviewCloseness> {
    let name = name.trim();
    let lower = name.to_lowercase();
    let is_acronym = |word: &str| acronyms.iter().any(|known| known.eq_ignore_ascii_case(word));
    if CODE_REVIEW.contains(&name) {
        Some(ReviewCloseness::Exact)
    } else if CODE_REVIEW.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        Some(ReviewCloseness::OtherCase)
    } else if lower.contains("code review") {
        Some(ReviewCloseness::ContainsCodeReview)
    } else if lower.contains("review") {
        Some(ReviewCloseness::ContainsReview)
    } else if name.split(|c: char| !c.is_alphanumeric()).any(is_acronym) {
        Some(ReviewCloseness::Acronym)
    } else {
        None
    }
}

/// True when a status is one of code review.
pub fn is_review_status(status: &str, acronyms: &[String]) -> bool {
    rate_closeness(status, acronyms).is_some()
}

/// Finds the transition to code review by its name or by the name of its status, whichever is closer. Only
/// the closest matches count.
pub fn find_review_transition<'a>(
    offered: &'a [OfferedTransition],
    acronyms: &[String],
) -> TransitionMatch<'a> {
    let of = |one: &OfferedTransition| {
        let both = [&one.name, &one.leads_to].into_iter();
        both.filter_map(|name| rate_closeness(name, acronyms)).min()
    };
    // Variants of `ReviewCloseness` are ordered by closeness, so the minimum is the best.
    let best = offered.iter().filter_map(of).min();
    let is_best = |one: &&OfferedTransition| best.is_some() && of(one) == best;
    collect_match(offered.iter().filter(is_best).collect())
}

/// Finds the transition that a user names, by its name or by the name of its status. The exact spelling comes
/// before other cases.
pub fn find_named_transition<'a>(offered: &'a [OfferedTransition], choice: &str) -> TransitionMatch<'a> {
    let exact = |one: &&OfferedTransition| one.name == choice;
    let lower = choice.to_lowercase();
    let any_case = |one: &&OfferedTransition| one.name.to_lowercase() == lower;
    let status = |one: &&OfferedTransition| one.leads_to.to_lowercase() == lower;
    let tries: [&dyn Fn(&&OfferedTransition) -> bool; 3] = [&exact, &any_case, &status];
    let mut matches = tries
        .map(|one| offered.iter().filter(one).collect::<Vec<_>>())
        .into_iter();
    collect_match(matches.find(|matching| !matching.is_empty()).unwrap_or_default())
}

/// Lists the positions of all transitions that lead to one of the statuses.
///
/// Earlier statuses come first, then the exact spelling, then fewer required fields. The name of a transition
/// is ignored, because it does not determine its status.
pub fn rank_status_transitions(offered: &[OfferedTransition], statuses: &[String]) -> Vec<usize> {
    let rank = |one: &OfferedTransition| {
        let leads_to = one.leads_to.to_lowercase();
        let place = statuses
            .iter()
            .position(|status| status.to_lowercase() == leads_to)?;
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

fn collect_match(matching: Vec<&OfferedTransition>) -> TransitionMatch<'_> {
    match matching.as_slice() {
        [] => TransitionMatch::Nothing,
        [one] => TransitionMatch::One(one),
        [..] => TransitionMatch::Several(matching),
    }
}

/// Renders a numbered list for users, from 1.
pub fn render_numbered_list<'a>(offered: impl IntoIterator<Item = &'a OfferedTransition>) -> String {
    let line = |(index, one): (usize, &OfferedTransition)| {
        format!("{}. {} (to {})", index + 1, one.name, one.leads_to)
    };
    let lines: Vec<String> = offered.into_iter().enumerate().map(line).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_offered_transitions(names: &[(&str, &str)]) -> Vec<OfferedTransition> {
        let one = |(index, (name, leads_to)): (usize, &(&str, &str))| OfferedTransition {
            id: index.to_string(),
            name: (*name).to_owned(),
            leads_to: (*leads_to).to_owned(),
            fields: 0,
        };
        names.iter().enumerate().map(one).collect()
    }

    fn list_transition_ids(found: TransitionMatch<'_>) -> Vec<String> {
        match found {
            TransitionMatch::Nothing => Vec::new(),
            TransitionMatch::One(one) => vec![one.id.clone()],
            TransitionMatch::Several(several) => several.into_iter().map(|one| one.id.clone()).collect(),
        }
    }

    fn find_review_ids(names: &[&str], acronyms: &[&str]) -> Vec<String> {
        let pairs: Vec<(&str, &str)> = names.iter().map(|name| (*name, "Elsewhere")).collect();
        let acronyms: Vec<String> = acronyms.iter().map(|one| (*one).to_owned()).collect();
        list_transition_ids(find_review_transition(
            &build_offered_transitions(&pairs),
            &acronyms,
        ))
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
            assert_eq!(
                find_review_ids(&all[..=last], &["cr", "ICR"]),
                [expected],
                "{last}"
            );
        }
        assert_eq!(find_review_ids(&["Code Review"], &[]), ["0"]);
        assert_eq!(find_review_ids(&["Code Review Started"], &[]), ["0"]);
    }

    #[test]
    fn acronyms_match_whole_words_when_configured() {
        assert!(find_review_ids(&["CR", "ICR"], &[]).is_empty());
        assert_eq!(find_review_ids(&["Crash", "To ICR"], &["CR", "ICR"]), ["1"]);
    }

    #[test]
    fn equally_close_names_are_ambiguous() {
        assert_eq!(
            find_review_ids(&["Peer review", "Done", "Design review"], &[]),
            ["0", "2"]
        );
        assert!(find_review_ids(&["Done", "In Progress"], &[]).is_empty());
    }

    #[test]
    fn target_status_counts_like_transition_name() {
        let offered =
            build_offered_transitions(&[("Start review", "Reviewing"), ("Hand over", "In Code Review")]);
        assert_eq!(list_transition_ids(find_review_transition(&offered, &[])), ["1"]);
        assert!(is_review_status("In Review", &[]) && !is_review_status("In Progress", &[]));
    }

    #[test]
    fn choice_names_transition_or_status() {
        let offered = build_offered_transitions(&[
            ("Peer review", "In Review"),
            ("PEER REVIEW", "Done"),
            ("Ship", "Shipped"),
        ]);
        assert_eq!(
            list_transition_ids(find_named_transition(&offered, "Peer review")),
            ["0"]
        );
        assert_eq!(
            list_transition_ids(find_named_transition(&offered, "peer review")),
            ["0", "1"]
        );
        assert_eq!(
            list_transition_ids(find_named_transition(&offered, "shipped")),
            ["2"]
        );
        assert!(list_transition_ids(find_named_transition(&offered, "Nowhere")).is_empty());
        assert_eq!(
            render_numbered_list(&offered[1..]),
            "1. PEER REVIEW (to Done)\n2. Ship (to Shipped)"
        );
    }

    fn rank_statuses(offered: &[OfferedTransition], statuses: &[&str]) -> Vec<usize> {
        let statuses: Vec<String> = statuses.iter().map(|status| (*status).to_owned()).collect();
        rank_status_transitions(offered, &statuses)
    }

    #[test]
    fn transitions_rank_by_order_of_statuses() {
        let workflow = build_offered_transitions(&[
            ("Close issue", "Closed"),
            ("Finish", "DONE"),
            ("Done", "Somewhere"),
        ]);
        assert_eq!(rank_statuses(&workflow, &["Done", "closed"]), [1, 0]);
        assert_eq!(rank_statuses(&workflow, &["Shipped", "closed"]), [0]);
        assert!(rank_statuses(&workflow, &["In Review"]).is_empty());
        let cases = build_offered_transitions(&[("One", "DONE"), ("Two", "Done")]);
        assert_eq!(rank_statuses(&cases, &["Done"]), [1, 0]);
    }

    #[test]
    fn case_is_ignored_in_every_script() {
        let workflow = build_offered_transitions(&[("Übergeben", "In Überprüfung"), ("Fertig", "Готово")]);
        assert_eq!(rank_statuses(&workflow, &["ГОТОВО", "IN ÜBERPRÜFUNG"]), [1, 0]);
        for (choice, expected) in [("übergeben", "0"), ("in überprüfung", "0"), ("готово", "1")] {
            let found = find_named_transition(&workflow, choice);
            assert_eq!(list_transition_ids(found), [expected], "{choice}");
        }
    }

    #[test]
    fn transition_without_required_fields_comes_first() {
        let mut workflow = build_offered_transitions(&[
            ("With resolution", "Done"),
            ("Quick", "Done"),
            ("Close", "Closed"),
        ]);
        workflow[0].fields = 1;
        assert_eq!(rank_statuses(&workflow, &["Done", "Closed"]), [1, 0, 2]);
    }
}
