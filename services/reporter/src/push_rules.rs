//! Rules of the branches that a push has to satisfy: the target branch, and the branch that is pushed.

use domain::{BaseCondition, MetadataPattern, PatternSubject, RepositoryName};
use github::{BranchRules, GitHubWriter};

use crate::effect_error::EffectError;

// Patterns of a push. A ruleset has at most one of each kind, and few rulesets cover a branch.
const MAX_PATTERNS: usize = 20;
// Maximum length of a pattern in bytes. A longer one is left to the server.
const MAX_PATTERN_BYTES: usize = 1000;

/// Rules of the target branch and of the pushed branch.
#[derive(Debug, Default)]
pub(crate) struct PushRules {
    target: NamedRules,
    pushed: NamedRules,
}

#[derive(Debug, Default)]
struct NamedRules {
    branch: String,
    rules: BranchRules,
}

impl PushRules {
    /// Reads the rules at GitHub. A local folder has none.
    pub(crate) async fn read(
        github: &GitHubWriter,
        repository: &RepositoryName,
        target: &str,
        pushed: &str,
    ) -> Result<Self, EffectError> {
        if repository.local_folder().is_some() {
            return Ok(Self::default());
        }
        let read = async |branch: &str| -> Result<NamedRules, EffectError> {
            Ok(NamedRules {
                branch: branch.to_owned(),
                rules: github.branch_rules(repository, branch).await?,
            })
        };
        let (target, pushed) = tokio::try_join!(read(target), read(pushed))?;
        Ok(Self { target, pushed })
    }

    /// Returns the branch that requires signatures; the target branch first.
    pub(crate) fn signed_branch(&self) -> Option<&str> {
        let mut all = [&self.target, &self.pushed].into_iter();
        all.find(|named| named.rules.requires_signatures())
            .map(|named| named.branch.as_str())
    }

    /// Returns true if the pushed branch accepts no merge commit.
    pub(crate) fn is_pushed_linear(&self) -> bool {
        self.pushed.rules.includes(BaseCondition::LinearHistory)
    }

    /// Returns the patterns for the commits of both branches and for the name of the pushed one, each once.
    pub(crate) fn patterns(&self) -> Vec<MetadataPattern> {
        let of_target = self.target.rules.patterns.iter().map(|found| &found.pattern);
        let of_target = of_target.filter(|pattern| pattern.subject != PatternSubject::BranchName);
        let of_pushed = self.pushed.rules.patterns.iter().map(|found| &found.pattern);
        let mut patterns: Vec<MetadataPattern> = Vec::new();
        for pattern in of_target.chain(of_pushed) {
            if pattern.pattern.len() <= MAX_PATTERN_BYTES && !patterns.contains(pattern) {
                patterns.push(pattern.clone());
            }
        }
        patterns.truncate(MAX_PATTERNS);
        patterns
    }
}

#[cfg(test)]
mod tests {
    use domain::PatternOperator;
    use github::BranchPattern;

    use super::*;

    fn build_named(branch: &str, patterns: &[(PatternSubject, &str)]) -> NamedRules {
        let patterns = patterns.iter().map(|(subject, pattern)| BranchPattern {
            pattern: MetadataPattern {
                subject: *subject,
                operator: PatternOperator::StartsWith,
                pattern: (*pattern).to_owned(),
                negate: false,
            },
            ruleset: None,
        });
        NamedRules {
            branch: branch.to_owned(),
            rules: BranchRules {
                patterns: patterns.collect(),
                ..BranchRules::default()
            },
        }
    }

    #[test]
    fn patterns_of_both_branches_count_once() {
        use PatternSubject::{BranchName, CommitMessage};
        let long = "x".repeat(MAX_PATTERN_BYTES + 1);
        let rules = PushRules {
            target: build_named("main", &[(CommitMessage, "ENG-"), (BranchName, "main")]),
            pushed: build_named(
                "fix/x",
                &[
                    (CommitMessage, "ENG-"),
                    (BranchName, "fix/"),
                    (CommitMessage, &long),
                ],
            ),
        };
        let patterns = rules.patterns();
        let texts: Vec<&str> = patterns.iter().map(|pattern| pattern.pattern.as_str()).collect();
        assert_eq!(texts, ["ENG-", "fix/"]);
    }

    #[test]
    fn target_branch_is_named_first_for_signatures() {
        let mut rules = PushRules {
            target: build_named("main", &[]),
            pushed: build_named("fix/x", &[]),
        };
        assert_eq!(rules.signed_branch(), None);
        for named in [&mut rules.pushed, &mut rules.target] {
            named
                .rules
                .requirements
                .conditions
                .push(BaseCondition::SignedCommits);
        }
        assert_eq!(rules.signed_branch(), Some("main"));
        rules.target.rules.requirements.conditions.clear();
        assert_eq!(rules.signed_branch(), Some("fix/x"));
    }
}
