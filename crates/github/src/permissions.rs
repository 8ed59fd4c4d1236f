//! Permissions and events that the two GitHub Apps need, with reasons: the one list for docs/permissions.md,
//! `journeyman doctor` and installation tokens.

use std::{collections::BTreeMap, fmt};

/// Level of a permission, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PermissionLevel {
    /// Reading alone is permitted.
    Read,
    /// Changes are permitted; includes reading.
    Write,
}

impl PermissionLevel {
    /// GitHub's name of the level: `read` or `write`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "read" => Some(Self::Read),
            // `admin` includes writing, which is the highest level that any call needs.
            "write" | "admin" => Some(Self::Write),
            _ => None,
        }
    }
}

/// Repository permission that one of the Apps needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequiredAppPermission {
    /// Name in the API, e.g. `pull_requests`.
    pub name: &'static str,
    /// Name on GitHub's pages, e.g. `Pull requests`.
    pub title: &'static str,
    /// Lowest level that suffices.
    pub level: PermissionLevel,
    /// Purpose of the permission, as docs/permissions.md shows it.
    pub reason: &'static str,
}

impl fmt::Display for RequiredAppPermission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.level.as_str())
    }
}

const fn describe_permission(
    name: &'static str,
    title: &'static str,
    level: PermissionLevel,
    reason: &'static str,
) -> RequiredAppPermission {
    RequiredAppPermission {
        name,
        title,
        level,
        reason,
    }
}

/// Permissions that the App of `[github_reader]` needs.
pub const READER: [RequiredAppPermission; 7] = [
    describe_permission(
        "metadata",
        "Metadata",
        PermissionLevel::Read,
        "the repository; whether a person may write",
    ),
    describe_permission(
        "checks",
        "Checks",
        PermissionLevel::Read,
        "the check runs of a commit",
    ),
    describe_permission(
        "actions",
        "Actions",
        PermissionLevel::Read,
        "the workflow runs of a commit; the logs of failed jobs",
    ),
    describe_permission(
        "statuses",
        "Commit statuses",
        PermissionLevel::Read,
        "the statuses of a commit",
    ),
    describe_permission(
        "pull_requests",
        "Pull requests",
        PermissionLevel::Read,
        "pull requests that exist for a ticket; what was merged",
    ),
    describe_permission(
        "issues",
        "Issues",
        PermissionLevel::Read,
        "issues that ask for work; comments that ask for something, on pull requests too",
    ),
    describe_permission(
        "discussions",
        "Discussions",
        PermissionLevel::Read,
        "discussions, where the rules let people ask there",
    ),
];

/// Permissions that the App of `[github_writer]` needs.
pub const WRITER: [RequiredAppPermission; 7] = [
    describe_permission("metadata", "Metadata", PermissionLevel::Read, "the repository"),
    describe_permission(
        "contents",
        "Contents",
        PermissionLevel::Write,
        "fetching the mirror, pushing the branch",
    ),
    describe_permission(
        "pull_requests",
        "Pull requests",
        PermissionLevel::Write,
        "opening the draft, marking it ready, back to draft; requesting and answering reviews",
    ),
    describe_permission(
        "issues",
        "Issues",
        PermissionLevel::Write,
        "comments and labels of pull requests and issues; types of issues; opening issues of a plan, closing issues, assigning them and giving them back",
    ),
    describe_permission(
        "actions",
        "Actions",
        PermissionLevel::Write,
        "running failed jobs again that did not fail because of the change",
    ),
    describe_permission(
        "checks",
        "Checks",
        PermissionLevel::Write,
        "the check run `Journeyman` with the rounds of work on a pull request",
    ),
    describe_permission(
        "discussions",
        "Discussions",
        PermissionLevel::Write,
        "comments in discussions; marking an answer, closing",
    ),
];

/// Permissions that the App of `[github_writer]` must not have.
pub const WRITER_MUST_NOT: [RequiredAppPermission; 4] = [
    describe_permission(
        "workflows",
        "Workflows",
        PermissionLevel::Write,
        "without it GitHub itself refuses every push that touches `.github/workflows`",
    ),
    describe_permission(
        "administration",
        "Administration",
        PermissionLevel::Write,
        "nothing needs it",
    ),
    describe_permission("secrets", "Secrets", PermissionLevel::Write, "nothing needs it"),
    describe_permission(
        "environments",
        "Environments",
        PermissionLevel::Write,
        "nothing needs it",
    ),
];

/// Webhook event that the App of `[github_reader]` is subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscribedEvent {
    /// Name in deliveries, e.g. `check_run`.
    pub name: &'static str,
    /// Name on GitHub's pages, e.g. `Check run`.
    pub title: &'static str,
    /// Purpose of the event, as docs/permissions.md shows it.
    pub reason: &'static str,
}

const fn describe_event(name: &'static str, title: &'static str, reason: &'static str) -> SubscribedEvent {
    SubscribedEvent { name, title, reason }
}

/// Webhook events that ingest handles. The App of `[github_writer]` is subscribed to none.
pub const EVENTS: [SubscribedEvent; 11] = [
    describe_event("check_run", "Check run", "checks of our pull requests"),
    describe_event("check_suite", "Check suite", "checks of our pull requests"),
    describe_event("workflow_run", "Workflow run", "checks of our pull requests"),
    describe_event("status", "Status", "checks of our pull requests"),
    describe_event(
        "pull_request",
        "Pull request",
        "merges, closes, reopens; requests for our review",
    ),
    describe_event(
        "pull_request_review",
        "Pull request review",
        "reviews of our pull requests",
    ),
    describe_event("push", "Push", "pushes of others to our branches"),
    describe_event("issues", "Issues", "issues that ask for work or a triage"),
    describe_event(
        "issue_comment",
        "Issue comment",
        "comments on issues and pull requests",
    ),
    describe_event("discussion", "Discussion", "new discussions"),
    describe_event(
        "discussion_comment",
        "Discussion comment",
        "comments in discussions",
    ),
];

/// Returns the superfluous and the missing events of an App, by their names in deliveries.
pub fn compare_events(subscribed: &[String]) -> (Vec<&str>, Vec<&'static str>) {
    let is_heard = |name: &&str| EVENTS.iter().any(|event| event.name == *name);
    let in_vain = subscribed
        .iter()
        .map(String::as_str)
        .filter(|name| !is_heard(name));
    let missing = EVENTS.iter().map(|event| event.name);
    let missing = missing.filter(|name| !subscribed.iter().any(|known| known == name));
    (in_vain.collect(), missing.collect())
}

/// Lists permissions held beyond those of `needed`, as in [`AccountIdentity::permissions`](crate::AccountIdentity).
pub fn find_excess_permissions<'a>(needed: &[RequiredAppPermission], held: &'a [String]) -> Vec<&'a str> {
    let is_needed = |held: &str| {
        let Some((name, level)) = held.split_once(':') else {
            return false;
        };
        let level = PermissionLevel::parse(level);
        needed
            .iter()
            .any(|needed| needed.name == name && level.is_some_and(|level| level <= needed.level))
    };
    let held = held.iter().map(String::as_str);
    held.filter(|held| !is_needed(held)).collect()
}

/// Lists those of `needed` that are missing among the permissions of
/// [`AccountIdentity::permissions`](crate::AccountIdentity).
pub fn find_missing_permissions(
    needed: &[RequiredAppPermission],
    held: &[String],
) -> Vec<RequiredAppPermission> {
    let is_held = |needed: &&RequiredAppPermission| {
        held.iter().any(|held| {
            let Some((name, level)) = held.split_once(':') else {
                return false;
            };
            name == needed.name && PermissionLevel::parse(level).is_some_and(|level| level >= needed.level)
        })
    };
    needed.iter().filter(|needed| !is_held(needed)).copied().collect()
}

/// Lists those of [`WRITER`] without which a change cannot be delivered: the branch and its pull request, and the
/// comments of a ticket that is an issue.
pub fn list_delivery_permissions(is_issue: bool) -> Vec<RequiredAppPermission> {
    let is_needed = |needed: &&RequiredAppPermission| match needed.name {
        "contents" | "pull_requests" => true,
        "issues" => is_issue,
        _ => false,
    };
    WRITER.iter().filter(is_needed).copied().collect()
}

/// Kind of call. Each kind has separate installation tokens with the least permissions that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum AccessKind {
    /// All calls of the reader.
    Look,
    /// Branches, pull requests and comments over the API.
    Write,
    /// End of a draft and update of a head branch, for which GitHub also requires the right to push.
    MarkReady,
    /// Rerun of failed jobs.
    Rerun,
    /// Our own check run.
    Checks,
    /// Comments in discussions.
    Discuss,
    /// Read access for `git fetch`.
    Fetch,
    /// Write access for `git push`.
    Push,
}

impl AccessKind {
    fn wanted(self) -> BTreeMap<&'static str, PermissionLevel> {
        use PermissionLevel::{Read, Write};
        match self {
            Self::Look => READER.iter().map(|needed| (needed.name, needed.level)).collect(),
            Self::Write => BTreeMap::from([
                ("metadata", Read),
                ("contents", Read),
                ("pull_requests", Write),
                ("issues", Write),
            ]),
            Self::MarkReady => {
                BTreeMap::from([("metadata", Read), ("contents", Write), ("pull_requests", Write)])
            }
            Self::Rerun => BTreeMap::from([("metadata", Read), ("actions", Write)]),
            Self::Checks => BTreeMap::from([("metadata", Read), ("checks", Write)]),
            Self::Discuss => BTreeMap::from([("metadata", Read), ("discussions", Write)]),
            Self::Fetch => BTreeMap::from([("metadata", Read), ("contents", Read)]),
            Self::Push => BTreeMap::from([("metadata", Read), ("contents", Write)]),
        }
    }

    /// Permissions to request for a token. GitHub refuses to create a token with more than the installation
    /// has, so missing permissions are left out; the call that needs one is then refused.
    pub(crate) fn within(self, given: &BTreeMap<String, String>) -> BTreeMap<&'static str, &'static str> {
        let wanted = self.wanted().into_iter();
        let asked = wanted.filter_map(|(name, level)| {
            let held = PermissionLevel::parse(given.get(name)?)?;
            Some((name, level.min(held).as_str()))
        });
        asked.collect()
    }
}

/// Renders the permissions that a refusal names in `X-Accepted-GitHub-Permissions`: `contents:write and
/// issues:write`.
pub(crate) fn render_accepted_permissions(header: &str) -> Option<String> {
    // In that header `,` separates permissions that are needed together and `;` separates alternatives. The
    // text goes to the operator, so any other character rejects it.
    let is_plain = |c: char| c.is_ascii_lowercase() || matches!(c, '_' | '=' | ',' | ';' | ' ');
    let text = header.trim();
    if text.is_empty() || text.len() > 200 || !text.chars().all(is_plain) {
        return None;
    }
    let alternatives = text.split(';').map(|set| {
        let set = set.split(',').map(|one| one.trim().replace('=', ":"));
        set.collect::<Vec<_>>().join(" and ")
    });
    Some(alternatives.collect::<Vec<_>>().join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_permissions_stay_within_app_permissions() {
        let covers = |list: &[RequiredAppPermission], access: AccessKind| {
            access.wanted().into_iter().all(|(name, level)| {
                list.iter()
                    .any(|needed| needed.name == name && needed.level >= level)
            })
        };
        assert!(covers(&READER, AccessKind::Look));
        for access in [
            AccessKind::Write,
            AccessKind::MarkReady,
            AccessKind::Rerun,
            AccessKind::Checks,
            AccessKind::Discuss,
            AccessKind::Fetch,
            AccessKind::Push,
        ] {
            assert!(covers(&WRITER, access), "{access:?}");
        }
        let look = AccessKind::Look.wanted();
        assert!(look.values().all(|level| *level == PermissionLevel::Read));
    }

    #[test]
    fn documented_app_permissions_match_checked_ones() {
        let page = include_str!("../../../docs/permissions.md");
        for (app, list) in [("reader", READER.as_slice()), ("writer", WRITER.as_slice())] {
            let rows: String = list
                .iter()
                .map(|needed| {
                    format!(
                        "| {} | {} | {} |\n",
                        needed.title,
                        needed.level.as_str(),
                        needed.reason
                    )
                })
                .collect();
            assert!(page.contains(&rows), "docs/permissions.md, GitHub {app}:\n{rows}");
        }
        let rows = EVENTS.map(|event| format!("| {} | `{}` | {} |\n", event.title, event.name, event.reason));
        assert!(
            page.contains(&rows.concat()),
            "docs/permissions.md, events:\n{}",
            rows.concat()
        );
        let heard = include_str!("../../../docs/events.md");
        for event in EVENTS {
            assert!(
                heard.contains(&format!("`{}`", event.name)),
                "docs/events.md: {}",
                event.name
            );
        }
        for needed in WRITER_MUST_NOT {
            assert!(
                page.contains(&format!("- **{}**: {}", needed.title, needed.reason)),
                "{needed}"
            );
        }
    }

    #[test]
    fn write_level_satisfies_read_requirement() {
        let held = [
            "metadata:read",
            "checks:read",
            "actions:read",
            "statuses:write",
            "issues:read",
        ]
        .map(str::to_owned);
        let missing: Vec<_> = find_missing_permissions(&READER, &held)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(missing, ["pull_requests:read", "discussions:read"]);
    }

    #[test]
    fn delivery_needs_issues_for_issue_alone() {
        let names = |is_issue| {
            let needed = list_delivery_permissions(is_issue);
            needed.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(names(false), ["contents:write", "pull_requests:write"]);
        assert_eq!(
            names(true),
            ["contents:write", "pull_requests:write", "issues:write"]
        );
    }

    #[test]
    fn excess_permissions_are_reported() {
        let held = [
            "metadata:read",
            "checks:write",
            "contents:read",
            "issues:read",
            "odd",
        ]
        .map(str::to_owned);
        assert_eq!(
            find_excess_permissions(&READER, &held),
            ["checks:write", "contents:read", "odd"]
        );
        let all = WRITER.map(|needed| needed.to_string());
        assert!(find_excess_permissions(&WRITER, &all).is_empty());
    }

    #[test]
    fn missing_and_superfluous_events_are_reported() {
        let mut subscribed: Vec<String> = EVENTS.iter().map(|event| event.name.to_owned()).collect();
        assert_eq!(compare_events(&subscribed), (vec![], vec![]));
        subscribed.retain(|name| name != "push");
        subscribed.push("star".to_owned());
        assert_eq!(compare_events(&subscribed), (vec!["star"], vec!["push"]));
    }

    #[test]
    fn token_request_stays_within_installation_permissions() {
        let given = [("contents", "read"), ("metadata", "read"), ("workflows", "write")];
        let given = given
            .map(|(name, level)| (name.to_owned(), level.to_owned()))
            .into();
        let asked = AccessKind::Push.within(&given);
        assert_eq!(
            asked,
            BTreeMap::from([("contents", "read"), ("metadata", "read")])
        );
    }

    #[test]
    fn a_missing_permission_is_named_in_words() {
        assert_eq!(
            render_accepted_permissions("issues=write; pull_requests=write").as_deref(),
            Some("issues:write or pull_requests:write")
        );
        assert_eq!(
            render_accepted_permissions("contents=write,workflows=write").as_deref(),
            Some("contents:write and workflows:write")
        );
        assert_eq!(render_accepted_permissions("<b>"), None);
    }
}
