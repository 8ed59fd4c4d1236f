//! Why something may not leave, for the model that has to change it and for people who read over its shoulder.

use domain::{CommitId, Outside, RepositoryName, TicketKey};

use super::words::code;
use crate::policy::{Place, Violation};

/// Violations that are named.
const NAMED: usize = 20;

/// Every violation in one text.
pub(crate) fn refusal(violations: &[Violation]) -> String {
    let list: Vec<String> = violations
        .iter()
        .take(NAMED)
        .map(|violation| format!("- {}", domain::text::visible(&sentence(violation))))
        .collect();
    let more = violations.len().saturating_sub(NAMED);
    let more = if more > 0 {
        format!("\n- and {more} more")
    } else {
        String::new()
    };
    format!("the change may not leave:\n{}{more}", list.join("\n"))
}

/// The inspection ended without a verdict.
pub(crate) fn not_inspected() -> String {
    "the change could not be inspected within the limits of time and memory; make it smaller: leave out what is generated, \
     and split large files"
        .to_owned()
}

/// The commits did not arrive whole.
pub(crate) fn bad_pack(detail: &str) -> String {
    format!("the commits could not be taken in: {detail}; commit the change once more on a new branch")
}

/// Nobody approved this commit.
pub(crate) fn not_approved(head: &CommitId) -> String {
    format!(
        "the rules of this repository ask for a person's approval before a push, and nobody approved commit {}",
        head.short()
    )
}

/// Nobody approved files of modules that this kind of ticket does not change.
pub(crate) fn out_of_scope(files: &[Outside]) -> String {
    let named: Vec<String> = files
        .iter()
        .take(NAMED)
        .map(|file| format!("{} (module {})", code(&file.path), code(&file.module)))
        .collect();
    let more = match files.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "this kind of ticket does not change {}{more}; take that back or ask for the module with `widen_scope`",
        named.join(", ")
    )
}

/// There are no rules to push by.
pub(crate) fn no_usable_rules(repository: &RepositoryName) -> String {
    format!("there are no usable rules for {repository}; an operator must look into it")
}

/// The ticket has no business in the repository.
pub(crate) fn foreign_project(ticket: &TicketKey, repository: &RepositoryName) -> String {
    format!(
        "the rules of {repository} are not for the ticket {}; an operator must look into it",
        ticket.short()
    )
}

/// Somebody opened a pull request from the branch.
pub(crate) fn foreign_pull_request(number: u64, author: &str) -> String {
    format!(
        "the pull request #{number} by `{author}` is open for this branch already; create a branch with another name, push it, \
         and open the pull request from there"
    )
}

/// The pull request is not one of ours.
pub(crate) fn unknown_pull_request(number: u64) -> String {
    format!("the pull request #{number} was not opened for this ticket")
}

/// GitHub or Jira know us, and do not let us.
pub(crate) fn denied(section: &str, detail: &str) -> String {
    format!(
        "{detail}; an operator must give the account of [{section}] the missing permission (docs/permissions.md)"
    )
}

/// The branch on the remote is not one that was pushed for the ticket.
pub(crate) fn foreign_branch(branch: &str) -> String {
    format!(
        "the branch `{branch}` exists on the remote and was not pushed for this ticket; create a branch with another name"
    )
}

fn sentence(violation: &Violation) -> String {
    const ANEW: &str =
        "create a new branch with create_branch and commit there: this branch would keep it in its history";
    match violation {
        Violation::BranchName { branch } => {
            format!("`{branch}` is not a legal branch name; create a branch with a plain name")
        }
        Violation::BranchOfPeople { branch } => {
            format!("`{branch}` belongs to people; create a branch of your own and commit there")
        }
        Violation::BranchWithoutTicket { branch, ticket } => format!(
            "the branch `{branch}` does not name the ticket; create one whose name contains `{ticket}`"
        ),
        Violation::ForeignBase { base } => {
            format!("the base commit {base} is not in the history of the remote's branches")
        }
        Violation::Unrelated { head, base } => {
            format!("the head {head} does not descend from the base {base}; commit on top of the base")
        }
        Violation::PackTooLarge {
            size_bytes,
            limit_bytes,
        } => format!(
            "the commits pack to {size_bytes} bytes and the limit is {limit_bytes}; remove large files from all of them"
        ),
        Violation::TooManyCommits { limit } => {
            format!(
                "the branch has more than {limit} commits; create a new branch and commit the change there as one"
            )
        }
        Violation::NoChange => "nothing differs from the base; commit a change first".to_owned(),
        Violation::Secret { kind, place } => secret(kind, place, ANEW),
        of_a_commit @ (Violation::Merge { .. }
        | Violation::ForeignAuthor { .. }
        | Violation::CommitHeader { .. }
        | Violation::HiddenCharacters { .. }
        | Violation::Command { .. }) => about_a_commit(of_a_commit),
        of_a_file => about_a_file(of_a_file),
    }
}

fn about_a_file(violation: &Violation) -> String {
    match violation {
        Violation::Protected { path } => {
            format!("`{path}` is protected and only people change it; take it out of the change")
        }
        Violation::GitDirectory { path } => format!("`{path}` lies in a git directory; remove it"),
        Violation::EscapingLink { path, target } => format!(
            "the link `{path}` points out of the repository, or may (`{target}`); remove it, or link to a path inside with `..` \
             at its start only"
        ),
        Violation::Submodule { path } => {
            format!("`{path}` is a submodule, which only people add, move or remove; leave it as it was")
        }
        Violation::LfsContent { path } => format!(
            "Git LFS keeps the content of `{path}` (.gitattributes), and it cannot be uploaded from here; take the file out of \
             the change and say in the pull request what a person has to add"
        ),
        Violation::TooLarge {
            path,
            size_bytes,
            limit_bytes,
        } => format!("`{path}` has {size_bytes} bytes and the limit is {limit_bytes}; remove or shrink it"),
        Violation::TooManyFiles { count } => {
            format!("{count} files differ, which is more than can be checked; leave out what is generated")
        }
        Violation::TooMuch { path } => format!(
            "the change has more content than can be checked, `{path}` among it; leave out what is generated"
        ),
        _ => String::new(),
    }
}

fn about_a_commit(violation: &Violation) -> String {
    const AGAIN: &str = "create a new branch with create_branch and commit there again";
    match violation {
        Violation::Merge { commit } => format!("commit {commit} does not have exactly one parent; {AGAIN}"),
        Violation::ForeignAuthor { commit, who } => {
            format!("commit {commit} names `{who}` and not Journeyman as author or committer; {AGAIN}")
        }
        Violation::CommitHeader { commit, header } => {
            format!("commit {commit} has a header line `{header}`, which ours do not have; {AGAIN}")
        }
        Violation::HiddenCharacters { commit } => format!(
            "the message of commit {commit} holds control or invisible characters; {AGAIN} with a plain message"
        ),
        Violation::Command { words, commit } => format!(
            "the message of commit {commit} says `{words}`, which acts on a ticket when it is pushed; {AGAIN} with a message \
             that names no ticket after such a word"
        ),
        _ => String::new(),
    }
}

fn secret(kind: &str, place: &Place, anew: &str) -> String {
    let found = |place: &str| format!("what looks like a {kind} stands in {place}");
    match place {
        Place::File { path } => format!("{}; remove it, then {anew}", found(&format!("`{path}`"))),
        Place::Path => format!("{}; rename the file, then {anew}", found("the path of a file")),
        Place::Message { commit } => format!("{}; {anew}", found(&format!("the message of commit {commit}"))),
        Place::Branch => format!(
            "{}; create a branch with another name",
            found("the branch's name")
        ),
        Place::Title => format!("{}; leave it out", found("the title of the pull request")),
        Place::Body => format!("{}; leave it out", found("the body of the pull request")),
        Place::IssueTitle => format!("{}; leave it out", found("the title of an issue")),
        Place::IssueText => format!("{}; leave it out", found("the text of an issue")),
        Place::Label => format!("{}; leave it out", found("a label")),
    }
}
