//! Texts of skip reasons. The reporter uses them on tickets, ingest in the API.

use super::{RepositoryChoice, SkipPlace, SkipReason};
use crate::{health::state::HealthCause, trigger::pull_request::PullRequestRef};

/// Formatting of inserted names for the medium in which a text is read.
#[derive(Clone, Copy, Debug)]
pub struct TextMarkup {
    /// Formats the name of a program, phrase or setting.
    pub code: fn(&str) -> String,
    /// Formats the name of a person.
    pub person: fn(&str) -> String,
    /// Formats a name of the tracker, e.g. of a status.
    pub name: fn(&str) -> String,
    /// Formats a text with the URL that it links to.
    pub link: fn(&str, &str) -> String,
}

impl TextMarkup {
    /// Formatting without markup.
    pub const PLAIN: Self = Self {
        code: str::to_owned,
        person: str::to_owned,
        name: str::to_owned,
        link: |words, url| format!("{words} ({url})"),
    };
}

impl SkipReason {
    /// Describes the skipped request, the reason, and the next step.
    pub fn words(&self, marks: &TextMarkup) -> String {
        let TextMarkup {
            code,
            person,
            name,
            link,
        } = marks;
        match self {
            Self::NotAllowed { actor, group, role } => describe_missing_permission(actor, group, role, marks),
            Self::NoWritePermission { actor } => format!(
                "Journeyman did not start work that {} asked for: only people with write permission in this repository may \
                 ask for it. One of them can start it.",
                person(actor)
            ),
            Self::Bot { actor } => format!(
                "Journeyman did not start work that {} asked for: that is a program, and the rules of this repository do not \
                 name it in {}. A person can start it. Journeyman does not reply to this program here again.",
                person(actor),
                code("review.agents")
            ),
            Self::MayNotAsk { actor, group, on } => describe_unauthorized_mention(actor, group, on.is_some(), marks),
            Self::Phrase { phrase, place } => format!(
                "Journeyman leaves this ticket alone: {} is in {}. Remove it first.",
                code(phrase),
                match place {
                    SkipPlace::Summary => "the summary".to_owned(),
                    SkipPlace::Description => "the description".to_owned(),
                    SkipPlace::Comment { author } => format!("a comment by {}", person(author)),
                }
            ),
            Self::Label { label } => format!(
                "Journeyman leaves this ticket alone: it has the label {}. Remove the label first.",
                code(label)
            ),
            Self::PullRequestExists { url, author } => format!(
                "Journeyman leaves this ticket alone: {} by {} is open for it. Close that one first.",
                link("a pull request", url),
                person(author)
            ),
            Self::StatusLeft { wanted, status } => format!(
                "Journeyman did not start work: the ticket was moved to {}, and it is in {} now.",
                name(wanted),
                name(status)
            ),
            Self::TextChanged { by } => format!(
                "Journeyman did not start work: {}, who is not allowed to ask for work, changed the ticket's text after \
                 it was asked for. Read the text again.",
                person(by)
            ),
            Self::UnclearDecision { heads } => {
                let heads: Vec<String> = heads
                    .iter()
                    .map(|head| code(&format!("/approve {head}")))
                    .collect();
                format!(
                    "Journeyman did not take the decision: it has to name what it is about. Comment {}; to refuse or to change \
                     it, name it in the same way.",
                    heads.join(" or ")
                )
            }
            Self::UnclearRepository { .. } => {
                "Journeyman did not start work: several repositories share this project, and the ticket does not say which one \
                 is meant. Give it what exactly one of them goes by."
                    .to_owned()
            }
            Self::NoIssues => format!(
                "Journeyman opens no issues here: the rules of this repository allow none. {} in the rules says how many a plan may have.",
                code("issues.most_planned")
            ),
            Self::ChecksWait {
                pull_request,
                checks,
                needs_approval,
                page,
            } => describe_waiting_checks(pull_request, checks, *needs_approval, page, marks),
            Self::MergeWaits {
                pull_request,
                cause,
                base_branch,
                since: _,
            } => describe_merge_block(pull_request, *cause, base_branch, marks),
            Self::Unreadable => "Journeyman did not start work: Jira's answer about this ticket could not be read. Make the text \
                                 simpler, for example with fewer nested lists."
                .to_owned(),
        }
    }

    /// Lists the choices, one per line; empty for most reasons.
    pub fn choices(&self, marks: &TextMarkup) -> Vec<String> {
        let Self::UnclearRepository { choices } = self else {
            return Vec::new();
        };
        choices.iter().map(|one| describe_choice(one, marks)).collect()
    }

    /// Returns true when the same request can succeed after the cause is removed.
    pub const fn can_be_retried(&self) -> bool {
        match self {
            Self::UnclearDecision { .. }
            | Self::NoIssues
            | Self::MayNotAsk { .. }
            | Self::ChecksWait { .. }
            | Self::MergeWaits { .. } => false,
            Self::NotAllowed { .. }
            | Self::NoWritePermission { .. }
            | Self::Bot { .. }
            | Self::Phrase { .. }
            | Self::Label { .. }
            | Self::PullRequestExists { .. }
            | Self::StatusLeft { .. }
            | Self::TextChanged { .. }
            | Self::UnclearRepository { .. }
            | Self::Unreadable => true,
        }
    }
}

fn describe_waiting_checks(
    pull_request: &PullRequestRef,
    checks: &[String],
    needs_approval: bool,
    page: &str,
    marks: &TextMarkup,
) -> String {
    let names: Vec<String> = checks.iter().map(|name| (marks.code)(name)).collect();
    let names = names.join(", ");
    let name = format!("pull request {}#{}", pull_request.repository, pull_request.number);
    let ours = (marks.link)(&name, &pull_request.url);
    if needs_approval {
        let runs = (marks.link)("the workflow runs", page);
        return format!(
            "The checks of {ours} are not complete: GitHub runs {names} only after a maintainer has approved it. Approve {runs}; \
             until they have ended, the pull request stays a draft."
        );
    }
    let page = if page.is_empty() {
        String::new()
    } else {
        format!(" See {}.", (marks.link)("the page of the check", page))
    };
    let (have, they) = match checks.len() {
        1 => ("has", "it has"),
        _ => ("have", "they have"),
    };
    format!(
        "The checks of {ours} are not complete: {names} {have} not ended for a long time.{page} The pull request stays a draft until \
         {they}. If that never happens, mark the pull request ready for review."
    )
}

fn describe_merge_block(
    pull_request: &PullRequestRef,
    cause: HealthCause,
    base_branch: &str,
    marks: &TextMarkup,
) -> String {
    let name = format!("pull request {}#{}", pull_request.repository, pull_request.number);
    let ours = (marks.link)(&name, &pull_request.url);
    let base = (marks.code)(base_branch);
    let (why, next) = match cause {
        HealthCause::Archived => (
            "the repository is archived".to_owned(),
            "Open the repository again, or close the pull request.",
        ),
        HealthCause::QueueChecks => (
            "the merge queue removed it after a failed check".to_owned(),
            "Look at the check of the queue, and add the pull request again.",
        ),
        HealthCause::QueueConflict => (
            "the merge queue removed it for a conflict with an entry before it".to_owned(),
            "Add it to the queue again after that entry is merged.",
        ),
        HealthCause::QueueRemoval => (
            "it was removed from the merge queue".to_owned(),
            "Add it to the queue again when it should be merged.",
        ),
        HealthCause::Conflict => (
            format!("it conflicts with {base}"),
            "Merge the base branch and resolve the conflict.",
        ),
        HealthCause::RunApproval => (
            "its workflow runs wait for an approval".to_owned(),
            "A maintainer has to approve the runs on the page of the pull request.",
        ),
        HealthCause::FailedChecks => ("a check failed".to_owned(), "Repair the check, or run it again."),
        HealthCause::PendingChecks => (
            "a check has not ended for a long time".to_owned(),
            "Look whether the check still runs.",
        ),
        HealthCause::AbsentChecks => (
            "no check has reported".to_owned(),
            "Start the checks, or mark the pull request ready for review.",
        ),
        HealthCause::RequiredChecks => (
            format!("a check that {base} requires has not reported"),
            "Start the check, or remove it from the requirements of the branch.",
        ),
        HealthCause::Draft => ("it is still a draft".to_owned(), "Mark it ready for review."),
        HealthCause::OutdatedBase => (
            format!("it lacks commits of {base}, which requires them"),
            "Update the branch on the page of the pull request.",
        ),
        HealthCause::ChangeRequests => (
            "a reviewer requests changes".to_owned(),
            "The reviewer has to review it again.",
        ),
        HealthCause::Approvals => (
            "approvals are missing".to_owned(),
            "Reviewers have to approve it.",
        ),
        HealthCause::OpenThreads => (
            "threads of its reviews are not resolved".to_owned(),
            "Resolve them on the page of the pull request.",
        ),
        HealthCause::Signatures => (
            format!("{base} requires signed commits, and some are not signed"),
            "Sign the commits, or merge without the requirement.",
        ),
        HealthCause::Protection => (
            format!("a rule of {base} is not met"),
            "The page of the pull request names the rule.",
        ),
        HealthCause::Mergeability => (
            "GitHub has not computed whether it can be merged".to_owned(),
            "Open its page, or push to its branch.",
        ),
    };
    format!("The {ours} cannot be merged: {why}. {next}")
}

fn describe_missing_permission(actor: &str, group: &str, role: &str, marks: &TextMarkup) -> String {
    let actor = (marks.person)(actor);
    if group.is_empty() && role.is_empty() {
        return format!(
            "Journeyman did not start work that {actor} asked for: no group may ask for work yet. An operator names the Jira \
             group whose members may ask for work in the setting {}.",
            (marks.code)("ingest.jira_trigger_group")
        );
    }
    format!(
        "Journeyman did not start work that {actor} asked for: only {} may ask for it. A member can start it.",
        describe_allowed_users(group, role, marks.name)
    )
}

fn describe_unauthorized_mention(
    actor: &str,
    group: &str,
    on_pull_request: bool,
    marks: &TextMarkup,
) -> String {
    let who = match (group, on_pull_request) {
        ("", true) => "people with write permission in this repository".to_owned(),
        ("", false) => "people who may ask for work on this ticket".to_owned(),
        (group, _) => format!("members of the Jira group {}", (marks.name)(group)),
    };
    format!(
        "{} mentioned Journeyman, which answers {who} only. One of them can ask the same.",
        (marks.person)(actor)
    )
}

fn describe_allowed_users(group: &str, role: &str, name: fn(&str) -> String) -> String {
    let members = format!("members of the Jira group {}", name(group));
    let players = format!("people with the role {} in this project", name(role));
    match (group.is_empty(), role.is_empty()) {
        (false, true) => members,
        (true, _) => players,
        (false, false) => format!("{members} and {players}"),
    }
}

fn describe_choice(choice: &RepositoryChoice, marks: &TextMarkup) -> String {
    let code = marks.code;
    let named = |what: &str, names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| code(name)).collect();
        (!names.is_empty()).then(|| format!("the {what} {}", names.join(" or ")))
    };
    let found = [
        named("component", &choice.components),
        named("label", &choice.labels),
    ];
    let field = choice.field.as_ref().map(|field| {
        let values: Vec<String> = field.values.iter().map(|value| code(value)).collect();
        format!("{} in the field {}", values.join(" or "), code(&field.name))
    });
    let found: Vec<String> = found.into_iter().flatten().chain(field).collect();
    format!("{}: {}", code(&choice.repository), found.join(", or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unauthorized_user_reads_who_is_authorized() {
        let may_not_ask = |group: &str, on| SkipReason::MayNotAsk {
            actor: "@eve".to_owned(),
            group: group.to_owned(),
            on,
        };
        let pull_request = PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 7,
            branch: "fix/ENG-1".to_owned(),
            url: String::new(),
        };
        assert_eq!(
            may_not_ask("agents", None).words(&TextMarkup::PLAIN),
            "@eve mentioned Journeyman, which answers members of the Jira group agents only. One of them can ask the same."
        );
        let on_github = may_not_ask("", Some(pull_request)).words(&TextMarkup::PLAIN);
        assert!(on_github.contains("people with write permission"), "{on_github}");
        let elsewhere = may_not_ask("", None).words(&TextMarkup::PLAIN);
        assert!(elsewhere.contains("people who may ask for work"), "{elsewhere}");
    }

    #[test]
    fn merge_block_names_cause_with_next_step() {
        use strum::VariantArray as _;

        let mut texts = std::collections::BTreeSet::new();
        for cause in HealthCause::VARIANTS {
            let reason = SkipReason::MergeWaits {
                pull_request: PullRequestRef {
                    repository: "acme/shop".parse().unwrap(),
                    number: 7,
                    branch: "fix/ENG-1".to_owned(),
                    url: String::new(),
                },
                cause: *cause,
                base_branch: "main".to_owned(),
                since: crate::identity::time::Timestamp::default(),
            };
            let text = reason.words(&TextMarkup::PLAIN);
            assert!(
                text.starts_with("The pull request acme/shop#7") && text.ends_with('.'),
                "{text}"
            );
            assert!(texts.insert(text), "{cause:?}");
        }
    }

    #[test]
    fn skip_reason_differs_only_in_markup() {
        let quoted = TextMarkup {
            code: |text| format!("`{text}`"),
            ..TextMarkup::PLAIN
        };
        let reason = SkipReason::Label {
            label: "no-agent".to_owned(),
        };
        let plain = reason.words(&TextMarkup::PLAIN);
        assert!(plain.contains("it has the label no-agent."), "{plain}");
        assert_eq!(reason.words(&quoted).replace('`', ""), plain);
        assert!(reason.can_be_retried() && !SkipReason::NoIssues.can_be_retried());
    }
}
