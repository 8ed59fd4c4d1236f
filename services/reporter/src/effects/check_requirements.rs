//! Checks before the work that a change can be delivered: rights of the account, signatures, and patterns for commits and
//! branch names.

use async_trait::async_trait;
use domain::{
    BranchRecord, ChangeNameParts, ChangeNaming, Job, MetadataPattern, OutboundRefusal, PatternSubject,
    RepositoryName, RepositoryRules, TicketKey, cause::format_error_chain, find_unmet_pattern,
};
use github::permissions::list_delivery_permissions;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    effect_error::{EffectError, WritingAccount},
    push_rules::PushRules,
    signing::SigningWay,
};

/// Reads what the repository requires of a change. Refuses work whose result could not be delivered, and returns the
/// patterns that the model has to follow.
#[derive(Debug)]
pub(crate) struct CheckRequirements {
    /// Repository that receives the change.
    pub(crate) repository: RepositoryName,
    /// Job that makes the change.
    pub(crate) job: Job,
}

#[async_trait]
impl OutboundEffect for CheckRequirements {
    type Output = Vec<MetadataPattern>;

    const ONLY_READS: bool = true;

    // The first requirement was the signature of commits, and the name never changes.
    fn name(&self) -> &'static str {
        "check_signing"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Repository(&self.repository)
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        // Without rules, the push is refused anyway.
        let Some(rules) = asked.rules else {
            return Ok(Vec::new());
        };
        if self.repository.local_folder().is_some() {
            return Ok(Vec::new());
        }
        self.pass_unreadable("permissions", self.check_rights(outside, asked).await)?;
        let patterns = self.check_rules(outside, rules, &asked.report.ticket).await;
        self.pass_unreadable("branch_rules", patterns)
    }
}

impl CheckRequirements {
    async fn check_rights(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<(), EffectError> {
        let is_issue = matches!(asked.present, TicketKey::GitHub { .. });
        let needed = list_delivery_permissions(is_issue);
        let missing = outside
            .github
            .missing_permissions(&self.repository, &needed)
            .await?;
        if missing.is_empty() {
            return Ok(());
        }
        let section = WritingAccount::GitHub.section(asked.report);
        let rights: Vec<String> = missing.iter().map(ToString::to_string).collect();
        tracing::error!(section, repository = %self.repository, missing = rights.join(", "), "permissions missing");
        Err(EffectError::Refused(OutboundRefusal::MissingRights {
            repository: self.repository.clone(),
            rights,
            section,
        }))
    }

    /// Checks the rules of the target branch and of the branch that the work will push.
    async fn check_rules(
        &self,
        outside: &OutboundClients,
        rules: &RepositoryRules,
        ticket: &TicketKey,
    ) -> Result<Vec<MetadataPattern>, EffectError> {
        let names = list_sample_names(rules, ticket);
        let known = self.find_known_branch(outside, ticket).await?;
        let pushed = known
            .as_deref()
            .or(names.first().map(String::as_str))
            .unwrap_or_default();
        let found = PushRules::read(&outside.github, &self.repository, rules.target_branch(), pushed).await?;
        // The resolution of a conflict is a merge commit.
        if self.job == Job::ResolveConflict && found.is_pushed_linear() {
            return Err(EffectError::Refused(OutboundRefusal::LinearHistory {
                repository: self.repository.clone(),
                branch: pushed.to_owned(),
            }));
        }
        let way = outside
            .signer
            .choose_way(&outside.github, &self.repository, &found)
            .await?;
        tracing::debug!(repository = %self.repository, ?way, "way to sign commits");
        let patterns = found.patterns();
        // A pull request keeps the name of its branch.
        let is_new = self.job == Job::Implement;
        let unmet_name = is_new.then(|| find_unmet_name(&patterns, &names)).flatten();
        let unmet = unmet_name
            .or_else(|| find_unmet_address(outside, rules, &way, &patterns))
            .or_else(|| find_excluded_sign_off(&patterns, rules, ticket));
        if let Some((pattern, found)) = unmet {
            return Err(EffectError::Refused(OutboundRefusal::UnmetPattern {
                repository: self.repository.clone(),
                pattern: pattern.clone(),
                found,
            }));
        }
        Ok(patterns.into_iter().filter(is_for_model).collect())
    }

    /// Returns the branch of the ticket's newest pull request here; `None` for a new branch. Only the planner knows the one
    /// of a ticket with several open pull requests.
    async fn find_known_branch(
        &self,
        outside: &OutboundClients,
        ticket: &TicketKey,
    ) -> Result<Option<String>, EffectError> {
        if self.job == Job::Implement {
            return Ok(None);
        }
        let records = outside.branches.of_ticket(ticket).await?.into_iter();
        let here = records.filter(|record| record.repository == self.repository);
        let number = |record: &BranchRecord| record.pull_request.as_ref().map(|opened| opened.number);
        let newest = here.filter(|record| number(record).is_some()).max_by_key(number);
        Ok(newest.map(|record| record.branch))
    }

    /// Turns a permanent failure to read a requirement into its absence: the push meets the requirement again, so the
    /// failure must not keep the work back.
    fn pass_unreadable<T: Default>(
        &self,
        what: &str,
        checked: Result<T, EffectError>,
    ) -> Result<T, EffectError> {
        match checked {
            Err(EffectError::Refused(refusal)) if refusal.needs_operator() => {
                Err(EffectError::Refused(refusal))
            }
            Err(
                error @ (EffectError::Refused(_)
                | EffectError::Failed(_)
                | EffectError::Missing(_)
                | EffectError::Denied { .. }
                | EffectError::Unwritable(_)),
            ) => {
                let repository = &self.repository;
                tracing::warn!(%repository, what, error = %format_error_chain(&error), "requirement cannot be read");
                Ok(T::default())
            }
            Err(error) => Err(error),
            Ok(found) => Ok(found),
        }
    }
}

/// Returns true for a pattern that depends on the texts of the model.
fn is_for_model(pattern: &MetadataPattern) -> bool {
    match pattern.subject {
        PatternSubject::CommitMessage | PatternSubject::BranchName => true,
        PatternSubject::AuthorEmail | PatternSubject::CommitterEmail => false,
    }
}

/// Lists a branch name for each type of the rules, that of an ordinary ticket first. The description stays open until the
/// model writes it.
fn list_sample_names(rules: &RepositoryRules, ticket: &TicketKey) -> Vec<String> {
    let naming = ChangeNaming::new(rules, ticket);
    let kinds = std::iter::once("").chain(naming.types());
    let name = |kind| {
        naming.branch(ChangeNameParts {
            kind,
            scope: "",
            title: "change",
        })
    };
    kinds.map(name).collect()
}

/// Returns the pattern that refuses each of the names, with the first name.
fn find_unmet_name<'a>(
    patterns: &'a [MetadataPattern],
    names: &[String],
) -> Option<(&'a MetadataPattern, String)> {
    let unmet = |name: &String| find_unmet_pattern(patterns, PatternSubject::BranchName, name);
    let first = names.first()?;
    let pattern = unmet(first)?;
    names
        .iter()
        .all(|name| unmet(name).is_some())
        .then(|| (pattern, first.clone()))
}

/// Returns the pattern that refuses the author or the committer of our commits, with the address. GitHub itself names
/// both for commits that it creates.
fn find_unmet_address<'a>(
    outside: &OutboundClients,
    rules: &RepositoryRules,
    way: &SigningWay,
    patterns: &'a [MetadataPattern],
) -> Option<(&'a MetadataPattern, String)> {
    let author = rules.commits.author();
    let committer = outside.signer.find_committer(way, &author)?;
    let people = [
        (PatternSubject::AuthorEmail, &author),
        (PatternSubject::CommitterEmail, &committer),
    ];
    people.into_iter().find_map(|(subject, who)| {
        let pattern = find_unmet_pattern(patterns, subject, who.address())?;
        Some((pattern, who.address().to_owned()))
    })
}

/// Returns the pattern that refuses every message with the sign-off of the rules, with that line. The model cannot change
/// the line.
fn find_excluded_sign_off<'a>(
    patterns: &'a [MetadataPattern],
    rules: &RepositoryRules,
    ticket: &TicketKey,
) -> Option<(&'a MetadataPattern, String)> {
    let line = ChangeNaming::new(rules, ticket).sign_off_line()?;
    let mut about = patterns
        .iter()
        .filter(|pattern| pattern.subject == PatternSubject::CommitMessage);
    let excluding = about.find(|pattern| pattern.excludes_last_line(&line))?;
    Some((excluding, line))
}

#[cfg(test)]
mod tests {
    use domain::PatternOperator;

    use super::*;

    fn build_name_pattern(operator: PatternOperator, pattern: &str) -> Vec<MetadataPattern> {
        vec![MetadataPattern {
            subject: PatternSubject::BranchName,
            operator,
            pattern: pattern.to_owned(),
            negate: false,
        }]
    }

    #[test]
    fn name_is_refused_if_no_type_fits() {
        let ticket = TicketKey::jira("ENG-12").unwrap();
        let names = list_sample_names(&RepositoryRules::default(), &ticket);
        assert_eq!(names[0], "feat/ENG-12-change");
        let team = build_name_pattern(PatternOperator::StartsWith, "team/");
        let (pattern, found) = find_unmet_name(&team, &names).unwrap();
        assert_eq!((pattern, found.as_str()), (&team[0], "feat/ENG-12-change"));
        // A bug would have this type, so the model decides.
        let fix = build_name_pattern(PatternOperator::StartsWith, "fix/");
        assert_eq!(find_unmet_name(&fix, &names), None);
        let key = build_name_pattern(PatternOperator::Regex, r"^[a-z]+/[A-Z]+-\d+");
        assert_eq!(find_unmet_name(&key, &names), None);
        assert_eq!(find_unmet_name(&[], &names), None);
    }

    #[test]
    fn excluded_sign_off_is_found_early() {
        let ticket = TicketKey::jira("ENG-12").unwrap();
        let mut rules = RepositoryRules::default();
        let pattern = MetadataPattern {
            subject: PatternSubject::CommitMessage,
            operator: PatternOperator::EndsWith,
            pattern: "(ENG-12)".to_owned(),
            negate: false,
        };
        let patterns = [pattern];
        assert_eq!(find_excluded_sign_off(&patterns, &rules, &ticket), None);
        rules.commits.sign_off = true;
        let line = "Signed-off-by: Journeyman <noreply@journeyman.invalid>".to_owned();
        assert_eq!(
            find_excluded_sign_off(&patterns, &rules, &ticket),
            Some((&patterns[0], line))
        );
        let of_names = [MetadataPattern {
            subject: PatternSubject::BranchName,
            ..patterns[0].clone()
        }];
        assert_eq!(find_excluded_sign_off(&of_names, &rules, &ticket), None);
    }
}
