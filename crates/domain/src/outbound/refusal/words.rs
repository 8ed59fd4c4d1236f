//! Descriptions of refusals for people: the single wording for tickets, pages and terminal. The planner
//! describes for the model how to resolve them.

use super::{OutboundRefusal, PolicyViolation, SecretPlace};
use crate::{
    outbound::metadata_pattern::PatternSubject,
    rules::scope::OutOfScopeFile,
    text::characters::{escape_hidden, format_code},
};

// Maximum number of listed files or violations.
const NAMED: usize = 20;

impl OutboundRefusal {
    /// Describes the problem for people, without a final line break; names are marked as code in Markdown.
    pub fn words(&self) -> String {
        describe_refusal(self)
    }
}

// One table without `_`, so that a new refusal does not compile without its text.
fn describe_refusal(refusal: &OutboundRefusal) -> String {
    match refusal {
        OutboundRefusal::Policy { violations } => list_violations(violations),
        OutboundRefusal::NotInspected => {
            "the change could not be inspected within the limits of time and memory".to_owned()
        }
        OutboundRefusal::BadPack { detail } => format!("the commits could not be taken in: {detail}"),
        OutboundRefusal::NotApproved { head } => format!(
            "the rules of this repository ask for a person's approval before a push, and nobody approved commit {}",
            head.short()
        ),
        OutboundRefusal::OutOfScope { files } => list_out_of_scope_files(files),
        OutboundRefusal::UncheckedHead { known, now } => format!(
            "what is known of checks is about {} and the pull request is at {} now; it stays a draft until that is checked",
            known.short(),
            now.short()
        ),
        OutboundRefusal::TooManyIssues { allowed: 0, .. } => {
            "the rules of the repository let me open no issues (`issues.most_planned`)".to_owned()
        }
        OutboundRefusal::TooManyIssues { planned, allowed } => format!(
            "the plan has {planned} issues, and the rules of the repository allow {allowed} (`issues.most_planned`)"
        ),
        OutboundRefusal::TooManyParts { planned, allowed } => format!(
            "the ticket would get {planned} parts, and the rules of the repository allow {allowed} (`triage.most_sub_issues`)"
        ),
        OutboundRefusal::PartedAlready => "the issue has parts already, so no others are opened".to_owned(),
        OutboundRefusal::NoSigningKey { repository, branch } => format!(
            "the branch {} of {repository} accepts signed commits alone, and there is no way to sign them; an operator must \
             set an SSH key (`reporter.signing.private_key`) or let a GitHub App write (`github_writer.app_id`)",
            format_code(branch)
        ),
        OutboundRefusal::UnverifiedSignature { commit, reason } => format!(
            "the repository requires signed commits, and GitHub does not accept the signature of commit {} ({}); an operator \
             must correct the signing key or its account",
            commit.short(),
            format_code(reason)
        ),
        OutboundRefusal::MissingRights {
            repository,
            rights,
            section,
        } => {
            let named: Vec<String> = rights.iter().map(|right| format_code(right)).collect();
            format!(
                "the account that writes to {repository} lacks the permissions {}; an operator must grant them to the account \
                 of {}",
                named.join(", "),
                format_code(&format!("[{section}]"))
            )
        }
        OutboundRefusal::UnmetPattern {
            repository,
            pattern,
            found,
        } => format!(
            "a rule of {repository} requires that {}, and {} does not; {}",
            pattern.words(),
            format_code(found),
            name_setting(pattern.subject)
        ),
        OutboundRefusal::LinearHistory { repository, branch } => format!(
            "the rules of the branch {} of {repository} accept no merge commits, so its base branch cannot be merged into it; \
             please rebase the branch, or exempt it from the rule",
            format_code(branch)
        ),
        OutboundRefusal::PushRejected { branch, detail } => {
            format!(
                "the server refused the push to the branch {}: {detail}",
                format_code(branch)
            )
        }
        OutboundRefusal::Workspace { detail } | OutboundRefusal::Outside { detail } => detail.clone(),
        OutboundRefusal::NoRules { repository } => {
            format!("there are no usable rules for {repository}; an operator must look into it")
        }
        OutboundRefusal::ForeignProject { ticket, repository } => format!(
            "the rules of {repository} are not for the ticket {}; an operator must look into it",
            ticket.short()
        ),
        OutboundRefusal::ForeignBranch { branch } => format!(
            "the branch {} exists on the remote and was not pushed for this ticket",
            format_code(branch)
        ),
        OutboundRefusal::BranchOfAnotherTicket { branch, ticket } => {
            format!(
                "the branch {} belongs to the ticket {}",
                format_code(branch),
                ticket.short()
            )
        }
        OutboundRefusal::BranchMoved {
            branch,
            head: Some(head),
        } => format!(
            "somebody pushed to the branch {} meanwhile: it is at {}, and nothing of theirs is overwritten",
            format_code(branch),
            head.short()
        ),
        OutboundRefusal::BranchMoved { branch, head: None } => format!(
            "the branch {} is gone from the remote, or is not where this work left it",
            format_code(branch)
        ),
        OutboundRefusal::BranchInTheWay { branch, by } => format!(
            "the branch {} cannot be made while there is a branch {}, because one of the names is a folder of the other; \
             rename that branch, or change the pattern of branch names in the rules",
            format_code(branch),
            format_code(by)
        ),
        OutboundRefusal::NotPushed { branch } => format!("the branch {} was not pushed", format_code(branch)),
        OutboundRefusal::ForeignPullRequest { number, author } => format!(
            "{} opened pull request #{number} for the branch",
            if author.is_empty() {
                "somebody else".to_owned()
            } else {
                format_code(author)
            }
        ),
        OutboundRefusal::UnknownPullRequest { number } => {
            format!("the pull request #{number} was not opened for this ticket")
        }
        OutboundRefusal::PullRequestOver { number } => {
            format!("the pull request #{number} was merged or closed meanwhile")
        }
    }
}

/// Names the setting that a pattern contradicts.
const fn name_setting(subject: PatternSubject) -> &'static str {
    match subject {
        PatternSubject::CommitMessage => {
            "change `commits.sign_off` in the rules of the repository, or its ruleset"
        }
        PatternSubject::AuthorEmail => {
            "set `commits.author` in the rules of the repository to an author with such an address, or change its ruleset"
        }
        PatternSubject::CommitterEmail => {
            "set `commits.author` in the rules of the repository, or `reporter.signing.committer` where a key signs, or change \
             its ruleset"
        }
        PatternSubject::BranchName => {
            "change `branching.pattern` in the rules of the repository, or its ruleset"
        }
    }
}

fn list_out_of_scope_files(files: &[OutOfScopeFile]) -> String {
    let named = files.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|file| {
            format!(
                "{} (module {})",
                format_code(&file.path),
                format_code(&file.module)
            )
        })
        .collect();
    let more = match files.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("this kind of ticket does not change {}{more}", named.join(", "))
}

fn list_violations(violations: &[PolicyViolation]) -> String {
    let named = violations.iter().take(NAMED);
    let list: Vec<String> = named
        // Paths and messages come from the model or the repository, so hidden characters are made visible.
        .map(|violation| format!("- {}", escape_hidden(&describe_violation(violation))))
        .collect();
    let more = match violations.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("\n- and {more} more"),
    };
    format!("the change may not leave:\n{}{more}", list.join("\n"))
}

fn describe_violation(violation: &PolicyViolation) -> String {
    match violation {
        PolicyViolation::BranchName { branch } => format!("`{branch}` is not a legal branch name"),
        PolicyViolation::BranchOfPeople { branch } => format!("the branch `{branch}` belongs to people"),
        PolicyViolation::BranchWithoutTicket { branch, ticket } => {
            format!("the branch `{branch}` does not name the ticket: `{ticket}` is missing")
        }
        PolicyViolation::ForeignBase { base } => {
            format!("the base commit {base} is not in the history of the remote's branches")
        }
        PolicyViolation::Unrelated { head, base } => {
            format!("the head {head} does not descend from the base {base}")
        }
        PolicyViolation::PackTooLarge {
            size_bytes,
            limit_bytes,
        } => format!("the commits pack to {size_bytes} bytes and the limit is {limit_bytes}"),
        PolicyViolation::TooManyCommits { limit } => format!("the branch has more than {limit} commits"),
        PolicyViolation::NoChange => "nothing differs from the base".to_owned(),
        PolicyViolation::Protected { path } => format!("`{path}` is protected: only people change it"),
        PolicyViolation::GitDirectory { path } => format!("`{path}` lies in a git directory"),
        PolicyViolation::EscapingLink { path, target } => {
            format!("the link `{path}` points out of the repository, or may (`{target}`)")
        }
        PolicyViolation::Submodule { path } => {
            format!("`{path}` is a submodule, which only people add, move or remove")
        }
        PolicyViolation::LfsContent { path } => format!(
            "Git LFS keeps the content of `{path}` (.gitattributes), and it cannot be uploaded from here; a person has to add it"
        ),
        PolicyViolation::TooLarge {
            path,
            size_bytes,
            limit_bytes,
        } => format!("`{path}` has {size_bytes} bytes and the limit is {limit_bytes}"),
        PolicyViolation::TooManyFiles { count } => {
            format!("{count} files differ, which is more than can be checked")
        }
        PolicyViolation::TooMuch { path } => {
            format!("the change has more content than can be checked, `{path}` among it")
        }
        PolicyViolation::LostHunk { path, line } if line.is_empty() => {
            format!("the merge drops the change of `{path}` without a reason")
        }
        PolicyViolation::LostHunk { path, line } => {
            format!("the merge drops a change of `{path}` without a reason (`{line}`)")
        }
        PolicyViolation::ConflictMarker { path } => format!("`{path}` has markers of a conflict"),
        PolicyViolation::Merge { commit } => format!("commit {commit} does not have exactly one parent"),
        PolicyViolation::ForeignAuthor { commit, who } => {
            format!("commit {commit} names `{who}` and not Journeyman as author or committer")
        }
        PolicyViolation::CommitHeader { commit, header } => {
            format!("commit {commit} has a header line `{header}`, which ours do not have")
        }
        PolicyViolation::HiddenCharacters { commit } => {
            format!("the message of commit {commit} holds control or invisible characters")
        }
        PolicyViolation::Command { words, commit } => {
            format!(
                "the message of commit {commit} says `{words}`, which acts on tickets, people or checks when it is pushed"
            )
        }
        PolicyViolation::Pattern { requires, commit } if commit.is_empty() => {
            format!("a rule of the repository is not met: {}", requires.words())
        }
        PolicyViolation::Pattern { requires, commit } => {
            format!(
                "commit {commit} does not meet a rule of the repository: {}",
                requires.words()
            )
        }
        PolicyViolation::Secret { kind, place } => {
            format!(
                "what looks like a {kind} stands in {}",
                describe_secret_place(place)
            )
        }
    }
}

fn describe_secret_place(place: &SecretPlace) -> String {
    match place {
        SecretPlace::File { path } => format!("`{path}`"),
        SecretPlace::Path => "the path of a file".to_owned(),
        SecretPlace::Message { commit } => format!("the message of commit {commit}"),
        SecretPlace::Branch => "the branch's name".to_owned(),
        SecretPlace::Title => "the title of the pull request".to_owned(),
        SecretPlace::Body => "the body of the pull request".to_owned(),
        SecretPlace::IssueTitle => "the title of an issue".to_owned(),
        SecretPlace::IssueText => "the text of an issue".to_owned(),
        SecretPlace::Label => "a label".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{journal::record_format::decode_stored_record, outbound::report::OutboundOutcome};

    /// Every stored refusal. The file contains each code at least once; a test in `tests/stored.rs` verifies
    /// that.
    fn read_stored_refusals() -> Vec<OutboundRefusal> {
        let lines = include_str!("../../../tests/stored/v1/outcome.jsonl").lines();
        let outcomes = lines.map(|line| decode_stored_record(line.as_bytes()).unwrap());
        let refusals = outcomes.filter_map(|outcome| match outcome {
            OutboundOutcome::Refused(refusal) => Some(refusal),
            OutboundOutcome::Done(_) | OutboundOutcome::Failed { .. } => None,
        });
        refusals.collect()
    }

    #[test]
    fn refusal_texts_describe_problems_for_people() {
        let texts: Vec<String> = read_stored_refusals()
            .iter()
            .map(OutboundRefusal::words)
            .collect();
        assert!(
            texts
                .iter()
                .all(|text| !text.is_empty() && !text.contains("\n- \n"))
        );
        let all = texts.join("\n");
        for order in ["create_branch", "commit_changes", "widen_scope", "call finish"] {
            assert!(!all.contains(order), "{all}");
        }
        insta::assert_snapshot!(all, @"
        a secret
        the change may not leave:
        - `a b` is not a legal branch name
        - the branch `main` belongs to people
        - the branch `fix/tax` does not name the ticket: `ENG-12` is missing
        - the base commit aaaaaaaaaaaa is not in the history of the remote's branches
        - the head bbbbbbbbbbbb does not descend from the base aaaaaaaaaaaa
        - the commits pack to 9 bytes and the limit is 8
        - the branch has more than 200 commits
        - nothing differs from the base
        - `.github/workflows/ci.yml` is protected: only people change it
        - `a/.git/config` lies in a git directory
        - the link `a` points out of the repository, or may (`../b`)
        - `vendor/kit` is a submodule, which only people add, move or remove
        - Git LFS keeps the content of `a.psd` (.gitattributes), and it cannot be uploaded from here; a person has to add it
        - `a.bin` has 9 bytes and the limit is 8
        - 9 files differ, which is more than can be checked
        - the change has more content than can be checked, `a.txt` among it
        the change may not leave:
        - commit cccccccccccc does not have exactly one parent
        - commit cccccccccccc names `Eve <eve@example.com>` and not Journeyman as author or committer
        - the message of commit cccccccccccc says `Closes #99`, which acts on tickets, people or checks when it is pushed
        - commit cccccccccccc has a header line `gpgsig`, which ours do not have
        - the message of commit cccccccccccc holds control or invisible characters
        - what looks like a GitHub token stands in `a.py`
        - what looks like a GitHub token stands in the path of a file
        - what looks like a GitHub token stands in the message of commit cccccccccccc
        - what looks like a GitHub token stands in the branch's name
        - what looks like a GitHub token stands in the title of the pull request
        - what looks like a GitHub token stands in the body of the pull request
        - what looks like a GitHub token stands in the title of an issue
        - what looks like a GitHub token stands in the text of an issue
        - what looks like a GitHub token stands in a label
        the change could not be inspected within the limits of time and memory
        the commits could not be taken in: an object is missing
        the rules of this repository ask for a person's approval before a push, and nobody approved commit aaaaaaaaaaaa
        this kind of ticket does not change `api/v1.py` (module `api`), `b.py` (module `b`)
        there are no usable rules for acme/shop; an operator must look into it
        the rules of acme/shop are not for the ticket ENG-12; an operator must look into it
        the branch `fix/tax` exists on the remote and was not pushed for this ticket
        the branch `fix/tax` belongs to the ticket ENG-13
        somebody pushed to the branch `fix/tax` meanwhile: it is at bbbbbbbbbbbb, and nothing of theirs is overwritten
        the branch `fix/tax` is gone from the remote, or is not where this work left it
        the branch `fix/tax` was not pushed
        `ann` opened pull request #7 for the branch
        somebody else opened pull request #7 for the branch
        the pull request #7 was not opened for this ticket
        the pull request #7 was merged or closed meanwhile
        what is known of checks is about aaaaaaaaaaaa and the pull request is at bbbbbbbbbbbb now; it stays a draft until that is checked
        the plan has 9 issues, and the rules of the repository allow 3 (`issues.most_planned`)
        the rules of the repository let me open no issues (`issues.most_planned`)
        there is nothing to commit
        GH013: a ruleset forbids it
        the ticket would get 5 parts, and the rules of the repository allow 3 (`triage.most_sub_issues`)
        the issue has parts already, so no others are opened
        the branch `fix/ENG-12-cart` cannot be made while there is a branch `fix`, because one of the names is a folder of the other; rename that branch, or change the pattern of branch names in the rules
        the change may not leave:
        - the merge drops a change of `a.py` without a reason (`x = 1`)
        - `a.py` has markers of a conflict
        the branch `main` of acme/shop accepts signed commits alone, and there is no way to sign them; an operator must set an SSH key (`reporter.signing.private_key`) or let a GitHub App write (`github_writer.app_id`)
        the repository requires signed commits, and GitHub does not accept the signature of commit cccccccccccc (`unknown_key`); an operator must correct the signing key or its account
        the account that writes to acme/shop lacks the permissions `contents:write`, `pull_requests:write`; an operator must grant them to the account of `[github_writer]`
        a rule of acme/shop requires that the branch name must start with `team/`, and `fix/ENG-12-change` does not; change `branching.pattern` in the rules of the repository, or its ruleset
        a rule of acme/shop requires that the mail address of the author must end with `@acme.example`, and `noreply@journeyman.invalid` does not; set `commits.author` in the rules of the repository to an author with such an address, or change its ruleset
        the server refused the push to the branch `fix/tax`: error: GH013: Repository rule violations found; - Commit message must start with ENG
        the change may not leave:
        - a rule of the repository is not met: the commit message must match the regular expression `^ENG-`
        - commit cccccccccccc does not meet a rule of the repository: the commit message must not contain `WIP`
        the rules of the branch `fix/tax` of acme/shop accept no merge commits, so its base branch cannot be merged into it; please rebase the branch, or exempt it from the rule
        ");
    }
}
