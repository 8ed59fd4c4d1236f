//! Data types and pure functions of Journeyman's domain. The crate has no runtime, no I/O and no clock.
// A new variant has to be considered in every match. An intended wildcard needs an `expect` with a reason.
#![warn(clippy::wildcard_enum_match_arm)]

// Types in this crate are stored in streams and buckets, and two releases read them at the same time. Fields
// that
// a later release added therefore have `serde(default)`. Their default is not written, so that an unused
// feature
// changes no record.
mod about;
pub mod address;
mod approval_gate;
mod author;
mod background;
mod budget;
pub mod cause;
mod change;
mod changed_file;
pub mod check;
mod ci;
mod commit;
pub mod commit_orders;
pub mod comparison;
mod control;
mod credential;
mod criteria;
mod fact;
mod failing_tests;
mod failure;
mod fence;
mod glob;
mod handover;
mod hint;
mod history;
mod host;
mod identity;
mod ids;
mod instance;
mod intake;
mod invalid;
mod job;
pub mod json;
mod kind;
mod lane;
pub mod limits;
mod link;
mod live;
mod maintenance;
mod model;
mod naming;
mod news;
mod object;
mod origin;
mod outside;
mod overview;
mod phase;
mod plan;
mod pools;
mod pull_request_call;
mod pull_request_review;
mod question;
mod reactable;
mod refusal;
mod repair;
pub mod report;
mod repository;
mod review;
mod row;
mod rules;
mod sandbox;
mod scope;
mod seed;
mod setup_hint;
mod size;
mod skip;
mod slots;
mod spend;
mod standing;
mod stop;
pub mod stored;
mod template;
pub mod text;
mod ticket;
mod time;
mod tool;
mod trigger;
mod waiting;
mod workspace;

pub use about::{
    About, Answered, AnsweredQuestion, Citation, CommentQuestion, DiscussionRequest, DiscussionTask,
    Disposition, JobRequest, LeftThreads, Rehearsal, ReviewRound, ReviewThread, ThreadRemark, ThreadReply,
};
pub use approval_gate::GateStep;
pub use author::{CommitAuthor, WrongAuthor};
pub use background::{
    Background, BackgroundPart, EarlierPullRequest, LinkedTicket, ReviewRemark, SimilarTicket, likeness,
    title_words,
};
pub use budget::{Budget, Dollars, RunLimits};
pub use cause::Cause;
pub use change::{
    BranchRecord, BranchRef, ChecksSummary, Conclusion, FailedCheck, PullRequestRecord, PullRequestRef,
    PullRequestStatus, RepairEnd, Suspects,
};
pub use changed_file::ChangedFile;
pub use ci::{CiRequired, CiRules};
pub use commit::{CommitId, TreeId};
pub use control::{NewerRecord, Place, StopAll};
pub use credential::{CredentialEnd, CredentialEnds};
pub use criteria::acceptance_criteria;
pub use fact::{Entry, Fact};
pub use failing_tests::list_failures;
pub use failure::{FailureClass, classify, fingerprint};
pub use fence::{FenceStamp, ReportFence, RunFence};
pub use glob::covers;
pub use handover::{
    ChangeDoubt, CheckRow, CriterionNote, Demonstrated, Demonstration, Description, Exit, FileNote, Handover,
    PhaseOutput, Proof, RedCheck, Return, ShownBy,
};
pub use hint::{Hint, Repetition, RepetitionKind};
pub use history::{Effort, Forecast, History, Middle, PastRun};
pub use host::HostPattern;
pub use identity::service_identity;
pub use ids::{CallId, ReportId, RunId};
pub use instance::Instance;
pub use intake::{Class, Criterion, Intake, IntakeDecision, ModuleNote, TicketKind};
pub use invalid::InvalidId;
pub use job::Job;
pub use kind::RecordKind;
pub use lane::Lane;
pub use link::{is_readable_on_the_way, is_safe_link};
pub use live::LiveOutput;
pub use maintenance::{MaintenanceAnswer, MaintenanceOrder, MaintenanceOutcome, MaintenanceTask};
pub use model::{Block, ModelFault, Reply, ReplyStop, ToolCall, Usage};
pub use naming::{Named, Naming};
pub use news::News;
pub use object::ObjectRef;
pub use origin::Origin;
pub use outside::Outside;
pub use overview::{Gate, Overview, Spend, TimeSpent};
pub use phase::{ModelRole, Phase};
pub use plan::{Plan, PlanStep, PlannedIssue};
pub use pools::{ExecutorMake, ExecutorSeen, ExecutorState, LeftOut, Pool, PoolNews, PoolRecord};
pub use pull_request_call::{PullRequestAnswer, PullRequestCall};
pub use pull_request_review::{
    CriterionVerdict, JudgedCriterion, LineRemark, ReviewOfChange, ReviewedChange, SinceReview,
};
pub use question::Question;
pub use reactable::{Reactable, Reaction};
pub use refusal::{Refusal, SecretPlace, Violation};
pub use repair::RepairResult;
pub use report::{
    Proposal, PushBranch, Receipt, Rehearsed, Report, ReportCursor, ReportOutcome, ReportRequest,
    ReportSettled,
};
pub use repository::RepositoryName;
pub use review::{Objection, Review, Weight};
pub use row::{Pending, Row, RunStatus, RunSummary};
pub use rules::{
    AgentRules, Approval, Assign, BranchingRules, BudgetRules, ClassTurns, CommitRules, CommitStyle,
    DbtProject, DbtRules, DiscussionRules, ExecutorRules, Finish, IssueRules, JiraField, JiraRules,
    ModuleRules, Planned, ProjectRules, PullRequestRules, RepoRules, ReviewRules, Rules, RulesProblem,
    SkipRules, TicketBudgetRules, TicketMarks, TriageChoices, TriageRules, is_program_name,
};
pub use sandbox::SandboxLevel;
pub use scope::{Scope, ScopeOf, Widened};
pub use seed::CodeSeed;
pub use setup_hint::SetupHint;
pub use size::{ChangeSize, FileChange, FileRole};
pub use skip::{Marks, RepositoryChoice, SkipPlace, SkipReason};
pub use slots::{SlotQueue, SlotWaiter};
pub use spend::{Amount, BudgetOf, Period, RunCost, SharedBudget, TicketCost, TicketLimits};
pub use standing::{ChecksFollow, ChecksSeen, ReviewSeen, Standing};
pub use stop::{GiveUp, StopReason, Withdrawal};
pub use stored::{AnyRecord, Stored, Undecodable};
pub use template::{TemplateAnswer, fill_template};
pub use ticket::{Account, TicketComment, TicketKey, TicketText};
pub use time::Timestamp;
pub use tool::{ToolResult, ToolSpec, ToolStatus};
pub use trigger::{Decision, Reason, Source, Trigger, TriggerKey, Verdict};
pub use waiting::WaitsFor;
pub use workspace::{Snapshot, WorkspaceInfo};
