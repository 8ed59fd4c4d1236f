//! Plan of the writes for a request in the present state. A dry run returns exactly this plan.

use std::collections::BTreeMap;

use domain::CommitId;
use serde::Serialize;

use crate::{
    CallProblem, ProblemKind, ValidatedRequest,
    transition::{self, OfferedTransition, TransitionMatch},
};

/// Present state of branch, pull request and issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedState {
    /// Commits of the branch.
    pub heads: BranchHeads,
    /// Open pull request of the branch.
    pub open: Option<ExistingPullRequest>,
    /// State of the issue.
    pub issue: ObservedIssue,
}

/// Commits at the head of the branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchHeads {
    /// Head in the working directory; absent without such a branch.
    pub local: Option<CommitId>,
    /// Head at GitHub; absent without such a branch.
    pub remote: Option<CommitId>,
    /// True when the local head descends from the remote one, or GitHub has no such branch.
    pub is_forward: bool,
}

/// Open pull request of the branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingPullRequest {
    /// Number in its repository.
    pub number: u64,
    /// URL of its page.
    pub url: String,
    /// Branch that it would be merged into.
    pub base_branch: String,
    /// True while it is a draft.
    pub draft: bool,
    /// True when our account opened it.
    pub by_us: bool,
}

/// State of the request's issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservedIssue {
    /// The request names no issue.
    NotAsked,
    /// The issue cannot be read.
    Unseen(CallProblem),
    /// The issue was read.
    There {
        /// Name of its status.
        status: String,
        /// Transitions that its workflow offers.
        offered: Vec<OfferedTransition>,
    },
}

/// One write to GitHub or Jira.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "write", rename_all = "snake_case")]
pub enum PlannedWrite {
    /// Push of the branch, which never discards commits of the remote.
    PushBranch {
        /// Name of the branch.
        branch: String,
        /// Commit of the branch after the push.
        commit: CommitId,
        /// Commit of the branch before the push; absent for a new branch.
        expected: Option<CommitId>,
    },
    /// Opening of the pull request.
    OpenPullRequest {
        /// Name of its head branch.
        branch: String,
        /// Branch that it would be merged into.
        base_branch: String,
        /// Title in one line.
        title: String,
        /// Description in Markdown.
        description: String,
        /// True when it is opened as a draft.
        draft: bool,
    },
    /// End of its draft state.
    MarkReady,
    /// Link on the issue, or a comment where the link fails.
    LinkIssue {
        /// Key of the issue.
        jira_key: String,
    },
    /// Transition of the issue.
    MoveIssue {
        /// Key of the issue.
        jira_key: String,
        /// Name of the transition.
        transition: String,
        /// Status that it leads to.
        leads_to: String,
        /// Values for the fields of its screen, by the fields' names.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        fields: BTreeMap<String, String>,
        /// Jira's id of the transition.
        #[serde(skip)]
        id: String,
    },
}

/// Writes of a request, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritePlan {
    /// Pull request that exists already.
    pub open: Option<ExistingPullRequest>,
    /// Writes in their order.
    pub steps: Vec<PlannedWrite>,
    /// Failures of Jira that are known in advance.
    pub problems: Vec<CallProblem>,
    /// True when the issue is in review already.
    pub is_in_review: bool,
}

/// Plans the writes of a request. `choice` names a transition, for workflows in which several match.
///
/// # Errors
/// The problem that prevents the pull request.
pub fn plan_writes(
    request: &ValidatedRequest,
    seen: &ObservedState,
    acronyms: &[String],
    choice: Option<&str>,
) -> Result<WritePlan, CallProblem> {
    let mut plan = WritePlan {
        open: adopt_pull_request(request, seen)?,
        steps: Vec::new(),
        problems: Vec::new(),
        is_in_review: false,
    };
    // The push comes first: GitHub opens no pull request for a branch that it lacks.
    plan.steps.extend(plan_push(request, &seen.heads)?);
    // Only a draft can be marked ready; GitHub refuses any other pull request.
    let is_draft = match &plan.open {
        Some(open) => open.draft,
        None => {
            plan.steps.push(plan_opening(request));
            request.draft
        }
    };
    if request.mark_ready && is_draft {
        plan.steps.push(PlannedWrite::MarkReady);
    }
    if let Some(key) = &request.jira_key {
        plan.add_issue(key, &seen.issue, acronyms, choice);
        plan.fill_in(&request.transition_fields);
    }
    Ok(plan)
}

/// Adopts the open pull request if our account opened it with the requested base branch.
fn adopt_pull_request(
    request: &ValidatedRequest,
    seen: &ObservedState,
) -> Result<Option<ExistingPullRequest>, CallProblem> {
    let Some(open) = &seen.open else {
        return Ok(None);
    };
    // A pull request of another account stays unchanged, and so does one with another base branch.
    if open.by_us && open.base_branch == request.base_branch {
        return Ok(Some(open.clone()));
    }
    let said = format!("A pull request for branch '{}' already exists", request.branch);
    let whose = if open.by_us {
        format!("it goes to '{}'", open.base_branch)
    } else {
        "another account opened it".to_owned()
    };
    Err(CallProblem::new(
        ProblemKind::PrCreationFailed,
        format!("Failed to create pull request: {said}"),
    )
    .about_branch(&request.branch)
    .with_error_output(format!("{}: {whose}", open.url)))
}

/// Plans the push; `None` where GitHub has the commit already.
fn plan_push(request: &ValidatedRequest, heads: &BranchHeads) -> Result<Option<PlannedWrite>, CallProblem> {
    let branch = &request.branch;
    match (&heads.local, &heads.remote) {
        (None, None) => Err(CallProblem::new(
            ProblemKind::BranchNotFound,
            format!("Branch '{branch}' does not exist locally or remotely"),
        )
        .about_branch(branch)),
        // GitHub's branch is used unchanged when the working directory lacks it.
        (None, Some(_)) => Ok(None),
        (Some(local), Some(remote)) if local == remote => Ok(None),
        // A push would discard the commits of other users.
        (Some(_), Some(_)) if !heads.is_forward => Err(CallProblem::new(
            ProblemKind::GitPushFailed,
            format!("Branch '{branch}' has commits at GitHub that the working directory does not have; pull them first"),
        )
        .about_branch(branch)),
        (Some(local), remote) => Ok(Some(PlannedWrite::PushBranch {
            branch: branch.clone(),
            commit: local.clone(),
            expected: remote.clone(),
        })),
    }
}

fn plan_opening(request: &ValidatedRequest) -> PlannedWrite {
    PlannedWrite::OpenPullRequest {
        branch: request.branch.clone(),
        base_branch: request.base_branch.clone(),
        title: request.title.clone(),
        description: request.description.clone(),
        draft: request.draft,
    }
}

impl WritePlan {
    fn fill_in(&mut self, given: &BTreeMap<String, String>) {
        for step in &mut self.steps {
            if let PlannedWrite::MoveIssue { fields, .. } = step {
                fields.clone_from(given);
            }
        }
    }

    fn add_issue(&mut self, key: &str, issue: &ObservedIssue, acronyms: &[String], choice: Option<&str>) {
        let (status, offered) = match issue {
            ObservedIssue::NotAsked => return,
            ObservedIssue::Unseen(problem) => return self.problems.push(problem.clone()),
            ObservedIssue::There { status, offered } => (status, offered),
        };
        // The link is independent of the transition, which may fail or be ambiguous.
        self.steps.push(PlannedWrite::LinkIssue {
            jira_key: key.to_owned(),
        });
        // A named choice is compared with the status itself; other review statuses do not count then.
        self.is_in_review = match choice {
            Some(choice) => status.eq_ignore_ascii_case(choice),
            None => transition::is_review_status(status, acronyms),
        };
        if self.is_in_review {
            return;
        }
        match choose_transition(key, offered, acronyms, choice) {
            Ok(step) => self.steps.push(step),
            Err(problem) => self.problems.push(problem),
        }
    }
}

fn choose_transition(
    key: &str,
    offered: &[OfferedTransition],
    acronyms: &[String],
    choice: Option<&str>,
) -> Result<PlannedWrite, CallProblem> {
    let names = |of: &mut dyn Iterator<Item = &OfferedTransition>| of.map(|one| one.name.clone()).collect();
    let found = match choice {
        Some(choice) => transition::find_named_transition(offered, choice),
        None => transition::find_review_transition(offered, acronyms),
    };
    let problem = match found {
        TransitionMatch::One(one) => {
            return Ok(PlannedWrite::MoveIssue {
                jira_key: key.to_owned(),
                transition: one.name.clone(),
                leads_to: one.leads_to.clone(),
                fields: BTreeMap::new(),
                id: one.id.clone(),
            });
        }
        TransitionMatch::Nothing => CallProblem::new(
            ProblemKind::JiraTransitionFailed,
            format!("Could not transition {key} to Code Review state"),
        )
        .with_error_output(match choice {
            Some(choice) => format!("No transition is called '{choice}'"),
            None => "No transition found matching 'Code Review' pattern".to_owned(),
        })
        .offering(names(&mut offered.iter())),
        TransitionMatch::Several(several) => CallProblem::new(
            ProblemKind::JiraTransitionAmbiguous,
            format!(
                "More than one transition of {key} matches; choose one:\n{}",
                transition::render_numbered_list(several.iter().copied())
            ),
        )
        .offering(names(&mut several.into_iter())),
    };
    Err(problem.about_issue(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BranchLocation;

    fn build_commit_id(digit: &str) -> CommitId {
        digit.repeat(40).parse().unwrap()
    }

    fn build_request() -> ValidatedRequest {
        ValidatedRequest {
            branch: "feature/login".to_owned(),
            base_branch: "main".to_owned(),
            title: "Add a login".to_owned(),
            description: "A login form".to_owned(),
            jira_key: None,
            mark_ready: false,
            draft: true,
            transition: None,
            transition_fields: BTreeMap::new(),
            dry_run: false,
            place: BranchLocation::Folder("/work/shop".into()),
        }
    }

    fn build_observed_state() -> ObservedState {
        ObservedState {
            heads: BranchHeads {
                local: Some(build_commit_id("a")),
                remote: None,
                is_forward: true,
            },
            open: None,
            issue: ObservedIssue::NotAsked,
        }
    }

    fn build_pull_request() -> ExistingPullRequest {
        ExistingPullRequest {
            number: 7,
            url: "https://github.example/acme/shop/pull/7".to_owned(),
            base_branch: "main".to_owned(),
            draft: true,
            by_us: true,
        }
    }

    fn list_planned_writes(
        request: &ValidatedRequest,
        seen: &ObservedState,
    ) -> Result<Vec<String>, ProblemKind> {
        let plan = plan_writes(request, seen, &[], None).map_err(|problem| problem.kind)?;
        let name = |step: &PlannedWrite| {
            serde_json::to_value(step).unwrap()["write"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        Ok(plan.steps.iter().map(name).collect())
    }

    #[test]
    fn branch_is_pushed_forward_when_needed() {
        let (local, other) = (build_commit_id("a"), build_commit_id("b"));
        let table = [
            (
                Some(&local),
                None,
                true,
                Ok(vec!["push_branch", "open_pull_request"]),
            ),
            (Some(&local), Some(&local), true, Ok(vec!["open_pull_request"])),
            (None, Some(&local), false, Ok(vec!["open_pull_request"])),
            (
                Some(&local),
                Some(&other),
                true,
                Ok(vec!["push_branch", "open_pull_request"]),
            ),
            (Some(&local), Some(&other), false, Err(ProblemKind::GitPushFailed)),
            (None, None, true, Err(ProblemKind::BranchNotFound)),
        ];
        for (local, remote, is_forward, expected) in table {
            let heads = BranchHeads {
                local: local.cloned(),
                remote: remote.cloned(),
                is_forward,
            };
            let found = list_planned_writes(
                &build_request(),
                &ObservedState {
                    heads,
                    ..build_observed_state()
                },
            );
            let expected = expected.map(|names| names.into_iter().map(str::to_owned).collect());
            assert_eq!(found, expected, "{local:?} {remote:?} {is_forward}");
        }
    }

    #[test]
    fn only_own_pull_request_is_adopted() {
        let with = |open| ObservedState {
            open: Some(open),
            ..build_observed_state()
        };
        assert_eq!(
            list_planned_writes(&build_request(), &with(build_pull_request())).unwrap(),
            ["push_branch"]
        );
        let foreign = ExistingPullRequest {
            by_us: false,
            ..build_pull_request()
        };
        assert_eq!(
            list_planned_writes(&build_request(), &with(foreign)),
            Err(ProblemKind::PrCreationFailed)
        );
        let elsewhere = ExistingPullRequest {
            base_branch: "develop".to_owned(),
            ..build_pull_request()
        };
        let problem = plan_writes(&build_request(), &with(elsewhere), &[], None).unwrap_err();
        assert!(
            problem.message.ends_with("'feature/login' already exists"),
            "{problem:?}"
        );
    }

    #[test]
    fn only_draft_is_marked_ready() {
        let asked = |draft| ValidatedRequest {
            mark_ready: true,
            draft,
            ..build_request()
        };
        let ready = |request: &ValidatedRequest, seen: &ObservedState| {
            list_planned_writes(request, seen)
                .unwrap()
                .contains(&"mark_ready".to_owned())
        };
        assert!(ready(&asked(true), &build_observed_state()));
        assert!(!ready(&asked(false), &build_observed_state()));
        assert!(!ready(&build_request(), &build_observed_state()));
        let open = ObservedState {
            open: Some(build_pull_request()),
            ..build_observed_state()
        };
        assert!(ready(&asked(false), &open), "the one that is open is a draft");
    }

    fn of_issue(status: &str, names: &[&str], choice: Option<&str>) -> WritePlan {
        let offered = names.iter().map(|name| OfferedTransition {
            id: format!("id of {name}"),
            name: (*name).to_owned(),
            leads_to: format!("status of {name}"),
            fields: 0,
        });
        let issue = ObservedIssue::There {
            status: status.to_owned(),
            offered: offered.collect(),
        };
        let request = ValidatedRequest {
            jira_key: Some("ENG-1".to_owned()),
            ..build_request()
        };
        plan_writes(
            &request,
            &ObservedState {
                issue,
                ..build_observed_state()
            },
            &[],
            choice,
        )
        .unwrap()
    }

    fn find_issue_move(plan: &WritePlan) -> Option<&str> {
        plan.steps.iter().find_map(|step| match step {
            PlannedWrite::MoveIssue { id, .. } => Some(id.as_str()),
            _ => None,
        })
    }

    #[test]
    fn ambiguous_transitions_are_listed_until_chosen() {
        let names = ["Peer Review", "Done", "Design Review"];
        let asked = of_issue("In Progress", &names, None);
        let [problem] = asked.problems.as_slice() else {
            panic!("{asked:?}")
        };
        assert_eq!(problem.kind, ProblemKind::JiraTransitionAmbiguous);
        let list = "1. Peer Review (to status of Peer Review)\n2. Design Review (to status of Design Review)";
        assert!(problem.message.ends_with(list), "{}", problem.message);
        let offered = problem.context.available_transitions.as_ref().unwrap();
        assert_eq!(offered, &["Peer Review", "Design Review"]);
        assert_eq!(find_issue_move(&asked), None);

        let answered = of_issue("In Progress", &names, Some("design review"));
        assert_eq!(find_issue_move(&answered), Some("id of Design Review"));
        assert!(answered.problems.is_empty());
    }

    #[test]
    fn without_a_match_the_transitions_are_listed() {
        let plan = of_issue("In Progress", &["Done", "Blocked"], None);
        let [problem] = plan.problems.as_slice() else {
            panic!("{plan:?}")
        };
        assert_eq!(problem.kind, ProblemKind::JiraTransitionFailed);
        assert_eq!(problem.message, "Could not transition ENG-1 to Code Review state");
        assert_eq!(
            problem.context.available_transitions.as_ref().unwrap(),
            &["Done", "Blocked"]
        );
        assert!(plan.steps.contains(&PlannedWrite::LinkIssue {
            jira_key: "ENG-1".to_owned()
        }));
    }

    #[test]
    fn an_issue_in_review_stays_there() {
        let plan = of_issue("In Review", &["Reopen review"], None);
        assert!(plan.is_in_review && find_issue_move(&plan).is_none() && plan.problems.is_empty());
    }
}
