//! Rulesets: rules for branches by name pattern, enforced at merges and pushes.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::ensure;

use super::FakeGitHub;
use super::state::{PullRecord, RepositoryRecord};

// Start of the `update` hook. Git calls it with a reference, its old commit and its new commit; the old
// commit of a new reference is all zeros.
const REFUSE: &str = r#"#!/bin/sh
refuse() { echo "error: GH013: Repository rule violations found. $1" >&2; exit 1; }
new=0000000000000000000000000000000000000000
check_signatures() {
  for commit in $(git rev-list "$1" --not --branches); do
    git cat-file commit "$commit" | sed '/^$/q' | grep -q '^gpgsig ' && continue
    echo "error: GH013: Repository rule violations found." >&2
    echo "- Commits must have verified signatures." >&2
    echo "  Found 1 violation: $commit" >&2
    exit 1
  done
}
check_linear() {
  merges=$(git rev-list --merges "$2" --not --branches)
  [ -z "$merges" ] || refuse_pattern "$1" "This branch must not contain merge commits." "$merges"
}
# Arguments: words of the rule, operator, pattern, yes or no for a negated pattern, value.
meets_pattern() {
  case $2 in
    starts_with) case $5 in "$3"*) found=yes;; *) found=no;; esac;;
    ends_with) case $5 in *"$3") found=yes;; *) found=no;; esac;;
    contains) case $5 in *"$3"*) found=yes;; *) found=no;; esac;;
    # GitHub anchors expressions at lines.
    regex) if printf %s "$5" | grep -qE -e "$3"; then found=yes; else found=no; fi;;
  esac
  [ $found != $4 ]
}
# Arguments: reference, commit, property, words of the rule, operator, pattern, yes or no for a negated pattern.
check_pattern() {
  if [ $3 = branch ]; then
    meets_pattern "$4" "$5" "$6" $7 "${1#refs/heads/}" && return
    refuse_pattern "$1" "$4" "$1"
  fi
  for commit in $(git rev-list "$2" --not --branches); do
    meets_pattern "$4" "$5" "$6" $7 "$(git show -s --format=$3 "$commit")" && continue
    refuse_pattern "$1" "$4" "$commit"
  done
}
refuse_pattern() {
  echo "error: GH013: Repository rule violations found for $1." >&2
  echo "" >&2
  echo "- $2" >&2
  echo "  Found 1 violation:" >&2
  echo "" >&2
  echo "  $3" >&2
  exit 1
}
"#;

/// Rules for the branches that match a pattern.
#[derive(Debug, Clone, Default)]
pub struct BranchRuleset {
    /// Name patterns of branches. `*` matches any part of a name.
    pub branches: Vec<String>,
    /// Checks that must pass before a merge.
    pub required_checks: Vec<String>,
    /// Forbids the creation of such branches.
    pub restricts_creation: bool,
    /// Forbids pushes to such branches. Merges of pull requests are not pushes.
    pub restricts_updates: bool,
    /// Number of approvals that a merge needs.
    pub required_approvals: u64,
    /// Conditions without a value.
    pub conditions: Vec<RulesetCondition>,
    /// Patterns for commits and branch names.
    pub patterns: Vec<RulesetPattern>,
    /// True if the writer may push against the patterns.
    pub is_bypassed: bool,
}

/// Pattern of a ruleset.
#[derive(Debug, Clone)]
pub struct RulesetPattern {
    /// Type of the rule, such as `commit_message_pattern`.
    pub kind: &'static str,
    /// `starts_with`, `ends_with`, `contains` or `regex`.
    pub operator: &'static str,
    /// Text or regular expression.
    pub pattern: String,
    /// True if the property must not match.
    pub negate: bool,
}

impl RulesetPattern {
    /// Pattern of a kind, not negated.
    #[must_use]
    pub fn new(kind: &'static str, operator: &'static str, pattern: &str) -> Self {
        Self {
            kind,
            operator,
            pattern: pattern.to_owned(),
            negate: false,
        }
    }

    /// Reason of a refusal in GitHub's words.
    pub(super) fn reason(&self) -> String {
        let subject = match self.kind {
            "commit_message_pattern" => "Commit message",
            "commit_author_email_pattern" => "Commit author email address",
            "committer_email_pattern" => "Committer email address",
            _ => "Branch name",
        };
        let operator = match self.operator {
            "starts_with" => "start with a matching pattern",
            "ends_with" => "end with a matching pattern",
            "contains" => "contain a matching pattern",
            _ => "match a given regex pattern",
        };
        let verb = if self.negate { "must not" } else { "must" };
        format!("{subject} {verb} {operator}: {}", self.pattern)
    }

    /// Renders the check of the pattern in the hook.
    fn script(&self) -> String {
        let property = match self.kind {
            "commit_message_pattern" => "%B",
            "commit_author_email_pattern" => "%ae",
            "committer_email_pattern" => "%ce",
            _ => "branch",
        };
        let quote = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let negate = if self.negate { "yes" } else { "no" };
        format!(
            "check_pattern $1 $3 {property} {} {} {} {negate}; ",
            quote(&self.reason()),
            self.operator,
            quote(&self.pattern)
        )
    }

    /// True for a pattern of branch names. The others are about commits.
    pub(super) fn is_about_branch(&self) -> bool {
        self.kind == "branch_name_pattern"
    }

    /// True if a commit, or the branch, breaks the rule.
    pub(super) fn is_broken_by(
        &self,
        branch: &str,
        message: &str,
        (author, committer): (&str, &str),
    ) -> bool {
        let value = match self.kind {
            "commit_message_pattern" => message,
            "commit_author_email_pattern" => author,
            "committer_email_pattern" => committer,
            _ => branch,
        };
        let is_match = match self.operator {
            "starts_with" => value.starts_with(&self.pattern),
            "ends_with" => value.trim_end().ends_with(&self.pattern),
            "contains" => value.contains(&self.pattern),
            _ => matches_expression(&self.pattern, value),
        };
        is_match == self.negate
    }
}

/// True if an expression matches a line of the value. The program is that of the hook, so both have the same dialect.
fn matches_expression(pattern: &str, value: &str) -> bool {
    let started = Command::new("grep")
        .args(["-qE", "-e", pattern])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else {
        return false;
    };
    if let Some(mut input) = child.stdin.take() {
        // The program ends at the first match, before it has read everything.
        let _ = input.write_all(value.as_bytes());
    }
    child.wait().is_ok_and(|status| status.success())
}

/// Condition of a ruleset for a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulesetCondition {
    /// The head contains the tip of the base.
    CurrentBase,
    /// Every thread is resolved.
    ResolvedThreads,
    /// Every commit has a verified signature.
    SignedCommits,
    /// The base contains no merge commit.
    LinearHistory,
    /// Merges go through the merge queue.
    MergeQueue,
}

impl BranchRuleset {
    /// True if the ruleset sets the condition.
    pub(super) fn includes(&self, condition: RulesetCondition) -> bool {
        self.conditions.contains(&condition)
    }

    /// Renders the hook's case for the ruleset's branches.
    fn script(&self) -> String {
        let restriction = |is_set: bool, why: &str| {
            if is_set {
                format!("refuse '{why}'")
            } else {
                "true".to_owned()
            }
        };
        let creation = restriction(
            self.restricts_creation,
            "Cannot create ref due to creations being restricted.",
        );
        let update = restriction(self.restricts_updates, "Cannot update this protected ref.");
        let signatures = if self.includes(RulesetCondition::SignedCommits) {
            "check_signatures $3; "
        } else {
            ""
        };
        let patterns: String = if self.is_bypassed {
            String::new()
        } else {
            self.patterns.iter().map(RulesetPattern::script).collect()
        };
        let linear = if self.includes(RulesetCondition::LinearHistory) {
            "check_linear $1 $3; "
        } else {
            ""
        };
        let act =
            format!("{signatures}{linear}{patterns}if [ $2 = $new ]; then {creation}; else {update}; fi");
        let branches = self.branches.iter();
        branches
            .map(|pattern| format!("case $1 in refs/heads/{pattern}) {act};; esac\n"))
            .collect()
    }

    /// True if a pattern matches the branch.
    pub(super) fn is_about(&self, branch: &str) -> bool {
        self.branches
            .iter()
            .any(|pattern| matches_pattern(pattern, branch))
    }
}

fn matches_pattern(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => {
            let Some(tail) = name.strip_prefix(start) else {
                return false;
            };
            let mut cuts = tail.char_indices().map(|(at, _)| &tail[at..]);
            rest.is_empty() || cuts.any(|tail| matches_pattern(rest, tail))
        }
    }
}

impl FakeGitHub {
    /// Replaces the rulesets of a repository.
    ///
    /// # Errors
    /// When the repository does not exist, or its hook cannot be written.
    pub fn set_rulesets(&self, repository: &str, rulesets: &[BranchRuleset]) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        let repo = world.repo(repository)?;
        repo.rulesets = rulesets.to_vec();
        repo.write_update_hook()
    }
}

impl RepositoryRecord {
    /// Writes the `update` hook, which git runs for each branch of a push. The stand-in refuses pushes there, so
    /// the client sees the refusal that GitHub sends.
    pub(super) fn write_update_hook(&self) -> anyhow::Result<()> {
        let rules: String = self.rulesets.iter().map(BranchRuleset::script).collect();
        let queued = self.merge_queue.entries.keys();
        let queued = queued.filter_map(|number| self.pulls.get(number)).map(|pull| {
            format!(
                "case $1 in refs/heads/{}) echo 'error: GH006: Protected branch update failed for $1. \
                 Changes must be made through a merge queue. Branches that are queued for merging cannot be updated.' \
                 >&2; exit 1;; esac\n",
                pull.head
            )
        });
        let script = format!("{REFUSE}{rules}{}", queued.collect::<String>());
        write_hook(&self.path, &script)
    }

    /// Rulesets of a branch.
    pub(super) fn rulesets_of(&self, branch: &str) -> impl Iterator<Item = &BranchRuleset> {
        self.rulesets
            .iter()
            .filter(move |ruleset| ruleset.is_about(branch))
    }

    /// Checks that every check required by classic protection or a ruleset has passed on the head.
    pub(super) fn check_merge(&self, pull: &PullRecord) -> anyhow::Result<()> {
        let classic = self.required_checks.get(&pull.base).into_iter().flatten();
        let rulesets = self
            .rulesets
            .iter()
            .filter(|ruleset| ruleset.is_about(&pull.base));
        let required = classic.chain(rulesets.flat_map(|ruleset| &ruleset.required_checks));
        for name in required {
            let has_passed = self
                .checks
                .iter()
                .any(|check| check.sha == pull.head_sha && check.name == *name && check.conclusion.passes());
            ensure!(has_passed, "Required status check \"{name}\" is expected.");
        }
        let unverified = self
            .requires_signatures(&pull.base)
            .then(|| self.find_unverified(&pull.head_sha, Some(&format!("refs/heads/{}", pull.base))));
        ensure!(
            unverified.flatten().is_none(),
            "Commits must have verified signatures."
        );
        Ok(())
    }
}

fn write_hook(repository: &Path, script: &str) -> anyhow::Result<()> {
    let hooks = repository.join("hooks");
    std::fs::create_dir_all(&hooks)?;
    // A push may run the hook at the same time, so the new one replaces it as a whole.
    let new = hooks.join("update.new");
    std::fs::write(&new, script)?;
    // Git ignores hooks that are not executable.
    std::fs::set_permissions(&new, Permissions::from_mode(0o755))?;
    Ok(std::fs::rename(&new, hooks.join("update"))?)
}

#[cfg(test)]
mod tests {
    use super::matches_pattern;

    #[test]
    fn star_matches_any_part_of_branch() {
        assert!(matches_pattern("main", "main") && !matches_pattern("main", "maint"));
        assert!(matches_pattern("release/*", "release/1.2") && matches_pattern("*", "fix/ENG-1"));
        assert!(
            matches_pattern("fix/*-totals", "fix/ENG-1-totals")
                && !matches_pattern("fix/*-totals", "fix/ENG-1")
        );
    }
}
