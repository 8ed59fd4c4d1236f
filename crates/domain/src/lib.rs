//! Data types and pure functions of Journeyman's domain. The crate has no runtime, no I/O and no clock.
// A new variant has to be considered in every match. An intended wildcard needs an `expect` with a reason.
#![warn(clippy::wildcard_enum_match_arm)]

// Types in this crate are stored in streams and buckets, and two releases read them at the same time. Fields
// that a later release added therefore have `serde(default)`. Their default is not written, so that an unused
// feature changes no record.

mod budget;
mod evidence;
mod fleet;
mod health;
mod identity;
mod journal;
mod outbound;
mod rules;
pub mod text;
mod trigger;
mod work;

pub use budget::{
    amounts::{ModelCharge, ModelSpend, RunCost, SpendAmount, SpendSum, TicketCost},
    history::{EffortEstimate, EffortHistory, EffortQuartiles, PastRun, RunEffort},
    run_limits::{BudgetUnit, Dollars, RunLimits},
    shared_budget::{BudgetPeriod, BudgetScope, SharedBudget, TicketLimits},
    spend::{RunSource, Spend, SpendKey, SpendWindow},
};
pub use evidence::{
    check::{self, SetupHint},
    comparison,
    failure::{FailureClass, classify_failure, fingerprint_failure},
    log_failures::list_failures,
    size::{ChangeStatistics, ChangedFileSize, FileRole},
    wording::{EvidenceFacts, describe_evidence},
};
pub use fleet::{
    control::{NewerRecord, ProjectionPosition, StopAll},
    credential::{CredentialEnd, CredentialEnds, service_identity},
    pools::{
        ExecutorMake, ExecutorPool, ExecutorState, ObservedExecutor, PoolFreshness, PoolRecord,
        UnlistedExecutors,
    },
    slots::{SlotQueue, SlotWaiter},
};
pub use health::{
    assessment::assess,
    check_verdict::{CheckFacts, CheckVerdict, can_wait_for_handover, find_last_end, judge_checks},
    memory::{HealthMemory, HealthRecord, RememberedCause, RememberedRemoval, RequestedStep, StepResult},
    rules::{BaseUpdateRule, HealthLimits, HealthRules},
    snapshot::{
        ApprovalCount, AutoMerge, BaseCondition, BaseRequirements, BaseTip, CheckResult, HeadChecks,
        MergeState, ObservedCheck, ObservedWorkflowRun, PullRequestSnapshot, QueueEntry, QueueRemoval,
        QueueState, RemovalReason, ReviewState, WorkflowRunProgress,
    },
    state::{Assessment, HandoverChecks, HealthActor, HealthCause, HealthState, HealthStep},
};
pub use identity::{
    InvalidId,
    attachment::{
        AttachmentContent, FileKind, ImageFormat, OmittedAttachment, TicketAttachment, UnreadReason,
        list_omitted,
    },
    author::{CommitAuthor, WrongAuthor},
    commit::{CommitId, TreeId},
    ids::{CallId, OutboundId, RunId},
    instance::InstanceName,
    object::ObjectRef,
    origin::ServiceOrigin,
    repository::RepositoryName,
    ticket::{TicketComment, TicketKey, TicketQuestion, TicketText, TrackerAccount},
    time::Timestamp,
};
pub use journal::{
    approval_gate::GateStep,
    fact::{Fact, JournalEntry},
    fence::{FenceStamp, ReporterFence, RunFence},
    issue_identity::IssueIdentity,
    kind::RecordKind,
    overview::{PendingDecision, RunOverview, TimeSpent},
    record_format::{self, AnyRecord, RecordError, StoredRecord},
    repair::RepairResult,
    row::{PendingRun, RunStatus, RunSummary, TicketRow},
    stop::{GiveUp, StopClass, StopReason, TicketDeparture, WithdrawalReason},
    wait_condition::WaitCondition,
};
pub use outbound::{
    limits,
    metadata_pattern::{MetadataPattern, PatternOperator, PatternSubject, find_unmet_pattern},
    order::{
        MaintenanceAnswer, MaintenanceOrder, MaintenanceOutcome, MaintenanceTask, PullRequestAnswer,
        PullRequestCall,
    },
    refusal::{OutboundRefusal, PolicyViolation, SecretPlace},
    report::{
        self, BranchPush, OutboundAction, OutboundCursor, OutboundOutcome, OutboundReceipt, OutboundRequest,
        OutboundSettled, PushProposal, RehearsedEffects,
    },
};
pub use rules::{
    RepositoryRules, RulesProblem,
    agent::{
        AgentRules, ApprovalRule, AssigneeRule, AttachmentRule, BaseCheckRule, BudgetRules, ClassTurns,
        FinishRule, PlanningRule, TicketBudgetRules,
    },
    ci::{CiRequired, CiRules},
    commits::{CommitRules, CommitStyle},
    glob::is_path_covered,
    host::HostPattern,
    is_program_name,
    jira::{JiraField, JiraRules, TicketMarks},
    naming::{ChangeNameParts, ChangeNaming},
    reviews::ReviewRules,
    scope::{ChangeScope, OutOfScopeFile, ScopeInputs, WidenedModule},
    sections::{
        BranchingRules, DbtProject, DbtRules, DiscussionRules, ExecutorRules, ExternalContentRules,
        IssueRules, LfsRule, LocationRules, ModuleRules, PullRequestRules, SkipRules,
    },
    triage::{ProjectRules, TriageChoices, TriageRules},
};
pub use text::{
    address::{self, is_readable_on_the_way, is_safe_link},
    cause::{self, ErrorCause},
    commit_orders,
    criteria::acceptance_criteria,
    guide, json,
    template::{TemplateAnswer, fill_template},
};
pub use trigger::{
    background::{
        BackgroundPart, EarlierPullRequest, LinkedTicket, ReviewRemark, SimilarTicket, TicketBackground,
        compare_titles, title_words,
    },
    conflict::{ConflictEnd, ConflictedBase},
    job::{Job, JobAccess, JobInput, JobProfile, Lane, RequestPlace},
    job_subject::{
        AnsweredQuestion, CitedAnswer, CodeCitation, CommentQuestion, DiscussionRequest, DiscussionTask,
        JobRequest, JobSubject, LeftThreads, RehearsedJob, ReviewRound, ReviewThread, ThreadDisposition,
        ThreadRemark, ThreadReply,
    },
    observed_pull_request::{ChecksReaction, ObservedChecks, ObservedPullRequest, ObservedReview},
    pull_request::{
        BranchRecord, BranchRef, ChecksConclusion, ChecksOutcome, ChecksSummary, FailedCheck, OutdatedBase,
        PullRequestFile, PullRequestRecord, PullRequestRef, PullRequestStatus, RepairEnd, SignedCommit,
        SuspectChanges, UpdateWay,
    },
    pull_request_event::{AwaitedReview, PullRequestEnd, PullRequestEvent, PullRequestHead},
    reaction::{ReactionKind, ReactionSubject},
    reason::{DecisionVerdict, GateDecision, TicketNews, Trigger, TriggerChannel, TriggerKey, TriggerReason},
    skip::{RepositoryChoice, SkipPlace, SkipReason, TextMarkup},
};
pub use work::{
    handover::{
        ChangeDescription, ChangeDoubt, ChangePlan, ChangeProof, CheckRow, CriterionNote, DemonstrationClaim,
        DemonstrationResult, FileNote, PhaseOutput, PlanStep, PlannedIssue, RedCheck, ReturnReason, ShownBy,
        WorkExit, WorkHandover,
    },
    intake::{AcceptanceCriterion, IntakeDecision, ModuleNote, TicketIntake, TicketKind, WorkClass},
    mcp::{
        MCP_LIST_MS, MCP_TIMEOUT_MS, MOST_MCP_COMMAND_BYTES, MOST_MCP_TIMEOUT_MS, McpCommand,
        McpCommandProblem, McpProblem, McpServerTools, McpTool, is_mcp_rejection, is_mcp_server_name,
    },
    model::{ModelFault, ModelReply, ModelRole, ReplyBlock, ReplyStop, RunPhase, TokenUsage, ToolCall},
    pull_request_review::{
        CriterionVerdict, JudgedCriterion, LineRemark, ReviewOfChange, ReviewedChange, SinceReview,
    },
    resolution::{
        ConflictFile, ConflictKind, ConflictLeft, DroppedHunk, LostHunk, MergeSide, list_unnamed_hunks,
    },
    review::{ChangeReview, ObjectionWeight, ReviewObjection},
    tool::{LiveOutput, ModelHint, RepetitionKind, ToolResult, ToolSpec, ToolStatus, TurnRepetition},
    workspace::{CodeSeed, ExecutorWorkspace, SandboxLevel, WorkspaceSnapshot},
};
