//! Outputs of effects, and the receipts in which the ledger stores them.

use std::{fmt, slice};

use domain::{ApprovalCount, CommitId, Job, MetadataPattern, ObjectRef, PullRequestFile, PullRequestRef};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{IgnoredAny, MapAccess, Visitor},
    ser::SerializeMap as _,
};

use crate::refused_notice::RefusedNotice;

/// Receipts of one effect, or of the effects of a report so far, in order.
///
/// An effect has a receipt if it leaves an output. Its row in the ledger is a map from the name of the receipt to the
/// output, and is empty without a receipt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EffectReceipts(Vec<EffectReceipt>);

/// Output of an effect that later effects, texts or the planner use.
pub(crate) trait EffectOutput: Sized + 'static {
    /// Returns the outputs of this type in a receipt.
    fn list(receipt: &EffectReceipt) -> &[Self];
}

impl EffectReceipts {
    /// Adds the receipts of a later effect.
    pub(crate) fn extend(&mut self, later: Self) {
        self.0.extend(later.0);
    }

    /// Returns all outputs of a type.
    pub(crate) fn all<T: EffectOutput>(&self) -> impl DoubleEndedIterator<Item = &T> + Clone {
        self.0.iter().flat_map(T::list)
    }

    /// Returns the last output of a type.
    pub(crate) fn last<T: EffectOutput>(&self) -> Option<&T> {
        self.all().next_back()
    }
}

impl From<()> for EffectReceipts {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl<T> From<Option<T>> for EffectReceipts
where
    Self: From<T>,
{
    fn from(output: Option<T>) -> Self {
        output.map_or_else(Self::default, Self::from)
    }
}

/// Declares the receipts: variant, output, and name in the ledger, which never changes. A receipt under `lists` holds
/// several outputs.
macro_rules! receipts {
    (
        single { $($(#[$doc:meta])* $variant:ident($output:ty) = $name:literal),+ $(,)? }
        lists { $($(#[$list_doc:meta])* $list:ident($item:ty) = $list_name:literal),+ $(,)? }
    ) => {
        /// Receipt of an effect that leaves an output.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum EffectReceipt {
            $($(#[$doc])* $variant($output),)+
            $($(#[$list_doc])* $list(Vec<$item>),)+
        }

        $(
            impl EffectOutput for $output {
                fn list(receipt: &EffectReceipt) -> &[Self] {
                    if let EffectReceipt::$variant(output) = receipt {
                        slice::from_ref(output)
                    } else {
                        &[]
                    }
                }
            }

            impl From<$output> for EffectReceipts {
                fn from(output: $output) -> Self {
                    Self(vec![EffectReceipt::$variant(output)])
                }
            }
        )+

        $(
            impl EffectOutput for $item {
                fn list(receipt: &EffectReceipt) -> &[Self] {
                    if let EffectReceipt::$list(outputs) = receipt { outputs } else { &[] }
                }
            }

            impl From<$item> for EffectReceipts {
                fn from(output: $item) -> Self {
                    vec![output].into()
                }
            }

            impl From<Vec<$item>> for EffectReceipts {
                fn from(outputs: Vec<$item>) -> Self {
                    if outputs.is_empty() {
                        Self::default()
                    } else {
                        Self(vec![EffectReceipt::$list(outputs)])
                    }
                }
            }
        )+

        impl Serialize for EffectReceipts {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut row = serializer.serialize_map(Some(self.0.len()))?;
                for receipt in &self.0 {
                    match receipt {
                        $(EffectReceipt::$variant(output) => row.serialize_entry($name, output)?,)+
                        $(EffectReceipt::$list(outputs) => row.serialize_entry($list_name, outputs)?,)+
                    }
                }
                row.end()
            }
        }

        impl EffectReceipt {
            /// Names of all receipts in the ledger.
            #[cfg(test)]
            pub(crate) const NAMES: &[&str] = &[$($name,)+ $($list_name,)+];

            /// Reads the value of a row's entry; `None` for an entry of a newer release.
            fn read<'de, A: MapAccess<'de>>(name: &str, row: &mut A) -> Result<Option<Self>, A::Error> {
                Ok(match name {
                    $($name => Some(Self::$variant(row.next_value()?)),)+
                    $($list_name => Some(Self::$list(row.next_value()?)),)+
                    _ => {
                        row.next_value::<IgnoredAny>()?;
                        None
                    }
                })
            }
        }
    };
}

receipts! {
    single {
        /// The branch was pushed.
        PushBranch(PushedHead) = "pushed",
        /// The difference of the pushed branch is stored.
        KeepDiff(PushedDiff) = "pushed_diff",
        /// Work that a comment requested begins.
        BeginWork(BegunWork) = "begun",
        /// The pull request is open.
        OpenPullRequest(PullRequestRef) = "pull_request",
        /// The ticket was moved, or could not be.
        MoveTicket(TransitionResult) = "moved",
        /// The comment exists.
        WriteComment(WrittenComment) = "comment",
        /// The change that people decide about is stored.
        ShowChange(ShownChange) = "shown",
        /// The changed files of the pull request were read.
        ShowFiles(ChangedFiles) = "changed",
        /// The pull request stays a draft.
        AwaitCheck(AwaitedCheck) = "awaited",
        /// The base branch requires approvals.
        RequireApprovals(ApprovalCount) = "approvals",
        /// Our check run exists.
        CheckRun(CheckRunId) = "check_run",
        /// The failed jobs were restarted, or could not be.
        RerunChecks(RerunResult) = "rerun",
        /// The ticket has no link to the pull request.
        RefuseLink(RefusedLink) = "unlinked",
        /// The ticket is linked to another one.
        LinkIssues(DuplicateLink) = "linked",
        /// The conversation does not accept the text or reaction.
        RefuseNotice(RefusedNotice) = "not_possible",
    }
    lists {
        /// Threads of a research began.
        ResearchThread(BegunThread) = "threads",
        /// Issues were opened.
        CreateIssue(MadeIssue) = "issues",
        /// The repository requires patterns of commits or branch names.
        RequirePatterns(MetadataPattern) = "patterns",
        /// Choices of a triage are left to people.
        LeaveChoice(UnsetChoice) = "left",
    }
}

impl<'de> Deserialize<'de> for EffectReceipts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RowVisitor)
    }
}

/// Reader of the receipts in a row.
struct RowVisitor;

impl<'de> Visitor<'de> for RowVisitor {
    type Value = EffectReceipts;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map of receipts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut row: A) -> Result<Self::Value, A::Error> {
        let mut receipts = Vec::new();
        while let Some(name) = row.next_key::<String>()? {
            receipts.extend(EffectReceipt::read(&name, &mut row)?);
        }
        Ok(EffectReceipts(receipts))
    }
}

/// Head of the remote branch after the push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PushedHead(pub(crate) CommitId);

/// Difference of a pushed branch to its base, in git's format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PushedDiff(pub(crate) ObjectRef);

/// Pushed branch with its difference, if that is not too long.
#[derive(Debug)]
pub(crate) struct PushedBranch {
    pub(crate) head: PushedHead,
    pub(crate) diff: Option<PushedDiff>,
}

impl From<PushedBranch> for EffectReceipts {
    fn from(pushed: PushedBranch) -> Self {
        let mut receipts = Self::from(pushed.head);
        receipts.extend(pushed.diff.into());
        receipts
    }
}

/// Work that begins, by its job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BegunWork(pub(crate) Job);

/// Comment of ours, by its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WrittenComment(pub(crate) String);

/// CI file or required check that has not reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AwaitedCheck(pub(crate) String);

/// Check run of ours, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckRunId(pub(crate) u64);

/// Reason why the ticket has no link to the pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefusedLink(pub(crate) String);

/// Link to the ticket that this one seems to duplicate, by its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DuplicateLink(pub(crate) String);

/// Comment that began a thread of a research.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "(usize, String)")]
pub(crate) struct BegunThread {
    /// Index of the thread's question, from 0.
    pub(crate) question: usize,
    /// Id of the comment.
    pub(crate) comment: String,
}

impl From<(usize, String)> for BegunThread {
    fn from((question, comment): (usize, String)) -> Self {
        Self { question, comment }
    }
}

impl Serialize for BegunThread {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.question, &self.comment).serialize(serializer)
    }
}

/// Issue that the report opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MadeIssue {
    /// Database id of the issue, which links between issues use.
    pub(crate) id: u64,
    /// Number of the issue in its repository.
    pub(crate) number: u64,
    /// Address of the issue's page.
    pub(crate) url: String,
    /// Title of the issue in the plan.
    pub(crate) title: String,
}

/// Receipts of one effect, and their origin.
#[derive(Debug)]
pub(crate) struct SettledEffect<R = EffectReceipts> {
    pub(crate) receipts: R,
    pub(crate) how: EffectOrigin,
}

impl SettledEffect {
    /// Returns the result of an effect that has nothing to do.
    pub(crate) fn unneeded() -> Self {
        Self {
            receipts: EffectReceipts::default(),
            how: EffectOrigin::Known,
        }
    }
}

/// Origin of an effect's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EffectOrigin {
    /// The ledger had a receipt.
    Known,
    /// GitHub or Jira showed that the effect is done.
    Found,
    /// The effect was performed now.
    Created,
}

/// A change as people see it before its push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShownChange {
    /// Commit that a push would publish.
    pub(crate) head: CommitId,
    /// Whole difference in git's format.
    pub(crate) diff: ObjectRef,
    /// Number of files that differ.
    pub(crate) files: usize,
    /// Part of the difference for a comment.
    pub(crate) excerpt: String,
    /// Number of lines that the comment omits.
    pub(crate) hidden_lines: usize,
    /// Files with omitted lines.
    pub(crate) hidden_files: Vec<String>,
}

/// Changed files of a pull request, as far as a comment names them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangedFiles {
    /// The first files, without their differences. Receipts of earlier releases have some.
    pub(crate) files: Vec<PullRequestFile>,
    /// Number of changed files.
    pub(crate) total: usize,
}

/// Result of a restart of failed jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RerunResult {
    /// Some jobs run now.
    Started,
    /// The jobs were restarted before, or run already.
    Before,
    /// GitHub refused the restart.
    Refused {
        /// Reason that GitHub returned.
        detail: String,
    },
}

/// Choice of a triage that is not set on the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnsetChoice {
    /// The choice.
    pub(crate) wish: TriageWish,
    /// The reason why it is not set.
    pub(crate) why: UnsetReason,
}

/// Choice of a triage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TriageWish {
    /// Type of the issue.
    Type { name: String },
    /// Priority of the issue.
    Priority { name: String },
    /// Membership in a project.
    Project { owner: String, number: u64 },
    /// Value of a project's field.
    Field { name: String, value: String },
    /// Link to another ticket.
    Link { to: String },
}

/// Reason why a choice of a triage is not set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UnsetReason {
    /// The rules permit a suggestion only.
    Suggested,
    /// The ticket has another value, which stays.
    Has { current: String },
    /// The settings have no token for projects.
    NoToken,
    /// The project does not have the field.
    NoField,
    /// The field does not accept the value.
    NoValue,
    /// The Jira site does not have the link type.
    NoLinkType { name: String },
    /// GitHub or Jira refused it.
    Refused { detail: String },
}

/// Result of a transition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TransitionResult {
    /// The issue has this status.
    To(String),
    /// The workflow has no transition to the status from the current one.
    Unavailable {
        /// Status that the report requested.
        wanted: String,
        /// Current status of the issue.
        status: String,
        /// Statuses that the workflow offers from the current one.
        reachable: Vec<String>,
    },
    /// Jira refused the transition.
    Refused {
        /// Status that the report requested.
        wanted: String,
        /// Reason that Jira returned.
        detail: String,
        /// Fields of the screen that a person has to fill in.
        #[serde(default)]
        asks_for: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_thread(question: usize) -> BegunThread {
        let comment = format!("DC_{question}");
        BegunThread { question, comment }
    }

    #[test]
    fn receipts_keep_order_of_outputs() {
        let mut receipts = EffectReceipts::from(());
        receipts.extend(build_thread(0).into());
        receipts.extend(WrittenComment("7".to_owned()).into());
        receipts.extend(vec![build_thread(1), build_thread(2)].into());
        receipts.extend(Some(WrittenComment("8".to_owned())).into());
        let threads: Vec<usize> = receipts.all().map(|begun: &BegunThread| begun.question).collect();
        assert_eq!(threads, [0, 1, 2]);
        let comment = receipts.last::<WrittenComment>();
        assert_eq!(comment, Some(&WrittenComment("8".to_owned())));
        assert_eq!(receipts.last::<PushedHead>(), None);
    }

    #[test]
    fn effect_without_output_has_empty_row() {
        for receipts in [
            EffectReceipts::from(()),
            EffectReceipts::from(None::<BegunWork>),
            EffectReceipts::from(Vec::<UnsetChoice>::new()),
        ] {
            assert_eq!(serde_json::to_string(&receipts).unwrap(), "{}");
        }
    }
}
