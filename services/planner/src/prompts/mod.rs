//! Renders prompts for the model.
//!
//! Each phase has a template with the blocks `product` (the same for every repository), `repository`,
//! `task` (the first message) and `unfinished` (after a reply that ends too early). All of them extend the
//! empty template `outline`, so that a block is rendered only where its text is used. The files in `tools/`
//! describe the planner's tools by name.

mod answers;
mod attachments;
mod base_checks;
mod comment_choice;
mod mcp;
mod refusals;
mod results;
mod summary;
mod tags;

use std::sync::LazyLock;

use data_encoding::HEXLOWER;
use domain::{
    ChangeScope, ConflictFile, ConflictKind, ExecutorWorkspace, JobRequest, ReplyBlock, TicketAttachment,
    TicketKind, TicketNews, ToolSpec, cause::format_error_chain,
};
use minijinja::{Environment, Error, UndefinedBehavior, Value, context};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, de::DeserializeOwned};

pub(crate) use self::answers::{INTERRUPTED_CALL, TOO_LONG, render_answer};
use self::attachments::ImageRoom;
pub(crate) use self::attachments::{LOST_ATTACHMENT, render_attachment_part};
pub(crate) use self::mcp::{McpCallFailure, render_command_result, render_mcp_answer, render_mcp_failure};
use self::tags::PromptTags;
use crate::run::{ConversationItem, ConversationView, ReplyForm, ReplyNudge};
use crate::transcript::{MessagePart, ModelTranscript, OutputSchema, TranscriptMessage};

/// Nudge after a tool call in the text of a reply.
const CALL_AS_TEXT: &str = "The reply has a tool call written as text, and nothing was run. Call tools through the tool \
                            interface of the API, one call object for each, and write none in the text.";
/// Nudge after a reply that reached its token limit.
pub(crate) const SMALLER_STEPS: &str = "Your reply was truncated at its token limit. Carry on in smaller steps: fewer and smaller edits per reply.";

const INSTRUCTION_CHARS: usize = 32 * 1024;
const PATH_CHARS: usize = 200;
// About 24,000 tokens.
const DIFF_CHARS: usize = 72 * 1024;

/// All templates: name and text.
const TEMPLATES: [(&str, &str); 21] = [
    ("outline", ""),
    ("work", include_str!("work.md")),
    ("triage", include_str!("triage.md")),
    ("intake", include_str!("intake.md")),
    ("plan", include_str!("plan.md")),
    ("review", include_str!("review.md")),
    ("answer", include_str!("answer.md")),
    ("discuss", include_str!("discuss.md")),
    ("pull_request", include_str!("pull_request.md")),
    ("intake_form", include_str!("forms/intake.json")),
    ("submit_answer", include_str!("tools/submit_answer.json")),
    ("submit_comments", include_str!("tools/submit_comments.json")),
    ("submit_issues", include_str!("tools/submit_issues.json")),
    ("submit_plan", include_str!("tools/submit_plan.json")),
    ("submit_review", include_str!("tools/submit_review.json")),
    ("submit_triage", include_str!("tools/submit_triage.json")),
    ("ask", include_str!("tools/ask.json")),
    ("finish", include_str!("tools/finish.json")),
    ("give_up", include_str!("tools/give_up.json")),
    ("read_attachment", include_str!("tools/read_attachment.json")),
    ("widen_scope", include_str!("tools/widen_scope.json")),
];

/// Parsed templates. An invalid one is omitted; the first call and a test fail then.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    // A missing value must fail the test of the template, not leave a gap in a prompt.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    for (name, text) in TEMPLATES {
        if let Err(error) = environment.add_template(name, text) {
            tracing::error!(name, error = %format_error_chain(&error), "prompt left out");
        }
    }
    environment
});

/// Renders a model call, and returns the SHA-256 of the part before the turns.
///
/// # Errors
/// A template does not match its data; the tests rule that out.
pub(crate) fn render_conversation(
    conversation: &ConversationView<'_>,
) -> Result<(ModelTranscript, String), Error> {
    let values = template_values(conversation);
    let template = ENVIRONMENT.get_template(conversation.dialog.phase.as_str())?;
    let mut rendered = template.render_captured(&values)?;
    let mut block = |name: &str| rendered.with_state_mut(|state| state.render_block(name));
    let mut system = vec![block("product")?];
    if conversation.workspace.is_some() {
        system.push(block("repository")?);
    }
    if !conversation.mcp_servers.is_empty() {
        system.push(mcp::render_servers(conversation.mcp_servers));
    }
    let mut messages = vec![TranscriptMessage::User(block("task")?)];
    let unfinished = block("unfinished")?;
    let own = conversation.dialog.tools.iter();
    let own: Vec<ToolSpec> = own
        .filter_map(|tool| describe_tool(tool.name, &values).transpose())
        .collect::<Result<_, _>>()?;
    let theirs = conversation.workspace.into_iter().flat_map(|info| &info.tools);
    let of_servers = conversation.mcp_servers.iter().flat_map(|server| &server.tools);
    let of_servers = of_servers.map(|tool| tool.spec.clone());
    let tools = theirs.cloned().chain(of_servers).chain(own).collect();
    let tags = PromptTags {
        nonce: conversation.nonce,
    };
    let mut room = ImageRoom::new();
    messages.extend(tags.images(&conversation.request.text.attachments, &mut room));
    let digest = prompt_digest(&system.join("\n"), &tools, &messages);
    for item in &conversation.items {
        messages.push(render_item(item, conversation, &unfinished));
        messages.extend(tags.images(list_news_attachments(item), &mut room));
    }
    let form_of = conversation.dialog.output.as_ref();
    // A summary is free text, so the form of the conversation's own reply does not apply.
    let form_of = form_of.filter(|_| conversation.items.last() != Some(&ConversationItem::SumUp));
    let transcript = ModelTranscript {
        system,
        tools,
        messages,
        output: form_of.map(reply_schema).transpose()?,
    };
    Ok((transcript, digest))
}

/// Returns the attachments of comments in an item.
fn list_news_attachments<'a>(item: &ConversationItem<'a>) -> Vec<&'a TicketAttachment> {
    let said = match item {
        ConversationItem::News { said, .. } => said.as_slice(),
        ConversationItem::Summary(card) => card.news.as_slice(),
        ConversationItem::Reply(_)
        | ConversationItem::Results { .. }
        | ConversationItem::Nudge(_)
        | ConversationItem::Returned(_)
        | ConversationItem::Hint(_)
        | ConversationItem::Instructions
        | ConversationItem::SumUp => &[],
    };
    let attached = said
        .iter()
        .copied()
        .flat_map(|TicketNews::Comment { attachments, .. }| attachments);
    attached.collect()
}

/// Renders an item after the task.
fn render_item(
    item: &ConversationItem<'_>,
    conversation: &ConversationView<'_>,
    unfinished: &str,
) -> TranscriptMessage {
    let tags = PromptTags {
        nonce: conversation.nonce,
    };
    let ground = refusals::BranchFreedom::of(conversation.request);
    let text = match item {
        ConversationItem::Reply(blocks) => return TranscriptMessage::Assistant(with_placeholder(blocks)),
        ConversationItem::Results {
            calls,
            is_cleared: true,
            ..
        } => return TranscriptMessage::ToolResults(results::render_cleared(calls)),
        ConversationItem::Results { calls, unkept, .. } => {
            return TranscriptMessage::ToolResults(results::render_results(calls, *unkept));
        }
        ConversationItem::Nudge(ReplyNudge::SmallerSteps) => SMALLER_STEPS.to_owned(),
        ConversationItem::Nudge(ReplyNudge::Unfinished) => unfinished.to_owned(),
        ConversationItem::Nudge(ReplyNudge::CallAsText) => format!("{CALL_AS_TEXT}\n\n{unfinished}"),
        ConversationItem::Nudge(ReplyNudge::Unusable(problem)) => answers::render_unusable(problem),
        ConversationItem::Returned(why) => answers::render_return(why, ground),
        ConversationItem::Hint(hint) => results::render_hint(hint),
        ConversationItem::News {
            said,
            is_full_of_strangers,
        } => tags.news(said, *is_full_of_strangers),
        ConversationItem::Summary(card) => summary::render_digest(&tags, card, ground),
        ConversationItem::Instructions => {
            summary::repeat_instructions(&render_instructions(conversation, &tags))
        }
        ConversationItem::SumUp => summary::ASKED.to_owned(),
    };
    TranscriptMessage::User(text)
}

fn template_values(conversation: &ConversationView<'_>) -> Value {
    let tags = PromptTags {
        nonce: conversation.nonce,
    };
    let rules = &conversation.request.rules;
    let missing = |paths: &[String]| -> Vec<String> {
        let one = |path: &String| format!("`{}`", truncate_path(&path.replace(['`', '\n'], " ")));
        paths.iter().map(one).collect()
    };
    let info = conversation.workspace;
    let instructions = render_instructions(conversation, &tags);
    let template = match info.map_or("", |info| info.template.as_str()) {
        "" => String::new(),
        text => tags.around("template", &tags.text(text, INSTRUCTION_CHARS)),
    };
    let kind = conversation.intake.map_or_else(
        || TicketKind::of(&conversation.request.text.kind),
        |intake| intake.kind,
    );
    let about = &conversation.request.about;
    let suspects = about.checks().map(|checks| &checks.suspects);
    let since = about.change().and_then(|change| change.since.as_ref());
    context! {
        about => about.name(),
        failures => about.checks().map(|checks| tags.failures(checks)).unwrap_or_default(),
        review => about.round().map(|round| tags.review(round)).unwrap_or_default(),
        conflicts => info.map(|info| list_conflicts(&info.conflicts)).unwrap_or_default(),
        base_branch => about.conflict().map(|conflict| conflict.base_branch.clone()),
        pull_request_head => about.conflict().map(|conflict| conflict.head.short().to_owned()),
        by_program => about.round().is_some_and(|round| round.by_program),
        suspects => suspects.map(|suspects| tags.patches(&suspects.files)).unwrap_or_default(),
        green => suspects.and_then(|suspects| suspects.since.as_ref()).map(|commit| commit.short().to_owned()),
        own_change => about.round().map(|round| tags.patches(&round.files)).unwrap_or_default(),
        question => about.question().map(|question| tags.question(question)).unwrap_or_default(),
        offers_work => about.question().and_then(|question| question.work.as_ref()).map(|work| work.job.as_str()),
        threads => rules.discussions.threads,
        discussion => about.discussion().map(|wanted| wanted.task.as_str()).unwrap_or_default(),
        change => about.change().map(Value::from_serialize),
        patches => about.change().map(|change| tags.patches(&change.files)).unwrap_or_default(),
        reviewed_at => since.map(|since| since.commit.short().to_owned()),
        patches_since => since.map(|since| tags.patches(&since.files)).unwrap_or_default(),
        repository => conversation.request.repository.to_string(),
        target => rules.target_branch(),
        default_branch => rules.repo.default_branch,
        base => info.map(|info| info.base.short().to_owned()),
        rules => Value::from_serialize(rules),
        requirements => conversation.patterns.iter().map(answers::render_requirement).collect::<Vec<_>>(),
        modules => module_values(conversation.request),
        submodules => info.map(|info| missing(&info.submodules)).unwrap_or_default(),
        lfs_files => info.map(|info: &ExecutorWorkspace| missing(&info.lfs_files)).unwrap_or_default(),
        lfs_contents => info.map(|info: &ExecutorWorkspace| missing(&info.lfs_contents)).unwrap_or_default(),
        ticket => tags.ticket(conversation.ticket, conversation.request),
        triage => Value::from_serialize(rules.triage.choices(conversation.ticket)),
        similar => conversation.request.background.similar.iter().map(|ticket| ticket.key.clone()).collect::<Vec<_>>(),
        names_ticket => about.change().is_some() && !conversation.request.background.linked.is_empty(),
        was_refused => conversation.request.background.was_refused(),
        background => tags.background(&conversation.request.background),
        instructions,
        template => template,
        attachments => conversation.has_text_attachment,
        kind => kind.as_str(),
        criteria => tags.criteria(&conversation.criteria),
        intake => conversation.intake.map(|intake| tags.intake(intake)).unwrap_or_default(),
        plan => conversation.plan.map(|plan| tags.plan(plan)).unwrap_or_default(),
        diff => conversation.change.map(|(diff, _)| tags.around("diff", &tags.text(diff, DIFF_CHARS))).unwrap_or_default(),
        proof => conversation.change.map(|(_, proof)| answers::render_proof(proof)).unwrap_or_default(),
        base_failures => tags.base_failures(conversation.base_results),
        code => conversation.code.map(|(seeds, _)| tags.code(seeds)).unwrap_or_default(),
        code_note => conversation.code.map(|(_, note)| note).unwrap_or_default(),
    }
}

/// Lists the files that git cannot merge, one per line.
fn list_conflicts(files: &[ConflictFile]) -> String {
    let one = |file: &ConflictFile| {
        let path = truncate_path(&file.path.replace(['`', '\n'], " "));
        let what = match file.kind {
            ConflictKind::Content => format!("{} conflicting hunk(s) between markers", file.hunks),
            ConflictKind::BothAdded => "both sides added it; markers show both".to_owned(),
            ConflictKind::RemovedAndChanged => {
                "one side removed it and the other changed it; the file is here with the change".to_owned()
            }
            ConflictKind::Renamed => "a side renamed it; both paths may be here".to_owned(),
            ConflictKind::Binary | ConflictKind::Mode | ConflictKind::Submodule => "not text".to_owned(),
        };
        format!("- `{path}`: {what}")
    };
    files.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// Renders the repository's instructions for contributors; empty without any.
fn render_instructions(conversation: &ConversationView<'_>, tags: &PromptTags<'_>) -> String {
    match conversation
        .workspace
        .map_or("", |info| info.instructions.as_str())
    {
        "" => String::new(),
        own => tags.around("instructions", &tags.text(own, INSTRUCTION_CHARS)),
    }
}

/// Returns the modules of the rules, and whether this ticket may change them. The values are those of the
/// run's start, so that the first message stays the same and the provider's cache applies.
fn module_values(request: &JobRequest) -> Vec<Value> {
    let scope = ChangeScope::new(&request.rules.modules, &request.text.kind, &[]);
    let modules = request.rules.modules.iter();
    modules
        .map(|module| context! { module => Value::from_serialize(module), is_open => scope.is_open(module) })
        .collect()
}

/// Returns the schema of a conversation's reply.
fn reply_schema(output: &ReplyForm) -> Result<OutputSchema, Error> {
    let text = ENVIRONMENT
        .get_template(&format!("{}_form", output.name))?
        .render(())?;
    Ok(OutputSchema {
        name: output.name.to_owned(),
        schema: parse_json(&text)?,
    })
}

fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::new(minijinja::ErrorKind::BadSerialization, error.to_string()))
}

/// Renders the description of a planner tool; `None` for one that is useless in this repository.
fn describe_tool(name: &str, values: &Value) -> Result<Option<ToolSpec>, Error> {
    /// Content of a file in `tools/`.
    #[derive(Deserialize)]
    struct ToolDescription {
        description: String,
        input_schema: serde_json::Value,
        #[serde(default)]
        read_only: bool,
    }
    let text = ENVIRONMENT.get_template(name)?.render(values)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let known: ToolDescription = parse_json(&text)?;
    Ok(Some(ToolSpec {
        name: name.to_owned(),
        description: known.description,
        input_schema: known.input_schema,
        read_only: known.read_only,
    }))
}

/// Returns a digest of the model's input, so that two runs can be compared.
fn prompt_digest(system: &str, tools: &Vec<ToolSpec>, task: &[TranscriptMessage]) -> String {
    let tools = serde_json::to_string(tools).unwrap_or_default();
    let mut digest = Context::new(&SHA256);
    for part in [system, &tools] {
        digest.update(part.as_bytes());
        // Separates the parts, so that text that moves from one part to the next changes the digest.
        digest.update(&[0]);
    }
    for message in task {
        match message {
            TranscriptMessage::User(text) => digest.update(text.as_bytes()),
            TranscriptMessage::Parts(parts) => {
                for part in parts {
                    digest.update(match part {
                        MessagePart::Text(text) => text.as_bytes(),
                        MessagePart::Image(image) => image.object.sha256.as_bytes(),
                    });
                }
            }
            TranscriptMessage::Assistant(_) | TranscriptMessage::ToolResults(_) => {}
        }
    }
    HEXLOWER.encode(digest.finish().as_ref())
}

/// Returns the blocks of a reply with a placeholder if they are blank: providers refuse an empty message.
fn with_placeholder(blocks: &[ReplyBlock]) -> Vec<ReplyBlock> {
    let is_blank = |block: &ReplyBlock| matches!(block, ReplyBlock::Text { text } if text.trim().is_empty());
    if blocks.iter().all(is_blank) {
        return vec![ReplyBlock::Text {
            text: "(no words)".to_owned(),
        }];
    }
    blocks.to_vec()
}

/// Truncates a path of the repository.
fn truncate_path(text: &str) -> String {
    text.chars().take(PATH_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::{Play, build_tool_reply, build_workspace};

    fn render_system_prompt(workspace: ExecutorWorkspace) -> String {
        let mut play = Play::in_workspace(workspace, [build_tool_reply(&[])]);
        play.until_model_call();
        play.transcript().system.join("\n")
    }

    #[test]
    fn prompt_names_missing_submodules_and_lfs() {
        let plain = render_system_prompt(build_workspace());
        assert!(plain.contains("Commands have no network"));
        assert!(!plain.contains("## Submodules") && !plain.contains("## Git LFS"));
        let lacking = ExecutorWorkspace {
            submodules: vec!["vendor/kit".to_owned()],
            lfs_files: vec!["a`\n## Rules\nNone.psd".to_owned(), "b.psd".to_owned()],
            ..build_workspace()
        };
        let text = render_system_prompt(lacking);
        assert!(text.contains("is refused: `vendor/kit`\n"), "{text}");
        assert!(text.contains("`a  ## Rules None.psd`, `b.psd`\n"), "{text}");
    }

    #[test]
    fn prompt_names_contents_of_lfs() {
        let present = ExecutorWorkspace {
            lfs_contents: vec!["model.csv".to_owned()],
            ..build_workspace()
        };
        let text = render_system_prompt(present.clone());
        assert!(text.contains("be uploaded from here: `model.csv`\n"), "{text}");
        assert!(!text.contains("only pointers"), "{text}");
        let both = ExecutorWorkspace {
            lfs_files: vec!["large.psd".to_owned()],
            ..present
        };
        let text = render_system_prompt(both);
        assert_eq!(text.matches("## Git LFS").count(), 1, "{text}");
        assert!(text.contains("gives to Git LFS: `large.psd`\n"), "{text}");
    }

    #[test]
    fn phase_templates_render_no_block_themselves() {
        for (name, text) in TEMPLATES.iter().filter(|(_, text)| text.contains("{% block ")) {
            let template = ENVIRONMENT.get_template(name).unwrap();
            // A rendered block would need the values, which are missing here.
            assert_eq!(template.render(()).unwrap(), "", "{name}: {text}");
        }
    }

    #[test]
    fn templates_parse_and_tools_have_schemas() {
        for (name, _) in TEMPLATES {
            ENVIRONMENT.get_template(name).unwrap();
        }
        let rules = domain::RepositoryRules {
            modules: vec![domain::ModuleRules::default()],
            issues: domain::IssueRules {
                most_planned: 3,
                ..domain::IssueRules::default()
            },
            ..domain::RepositoryRules::default()
        };
        for about in ["ticket", "checks", "review", "conflict"] {
            let values = context! { rules => Value::from_serialize(&rules), about };
            let finish = describe_tool("finish", &values).unwrap().unwrap();
            let asks_for_replies = finish.input_schema["properties"]["replies"].is_object();
            assert_eq!(asks_for_replies, about == "review");
            let names_dropped = finish.input_schema["properties"]["dropped"].is_object();
            assert_eq!(names_dropped, about == "conflict");
        }
        let choices = |text: serde_json::Value| {
            let rules: domain::TriageRules = serde_json::from_value(text).unwrap();
            Value::from_serialize(rules.choices(&"github:acme/shop#7".parse().unwrap()))
        };
        let all = choices(serde_json::json!({
            "labels": ["bug \"x\""], "types": ["Bug"], "priorities": ["High"], "priority_label": "{priority}",
            "project": {"owner": "acme", "number": 1, "fields": {"Size": ["S"], "Points": [1, 2]}}, "most_sub_issues": 4,
        }));
        for (similar, triage) in [
            (Vec::new(), choices(serde_json::json!({}))),
            (vec!["ENG-5"], all.clone()),
        ] {
            let values = context! { similar, triage };
            let offered = describe_tool("submit_triage", &values)
                .unwrap()
                .unwrap()
                .input_schema;
            for name in ["duplicate_of", "type", "priority", "fields", "parts"] {
                let is_offered = offered["properties"][name].is_object();
                assert_eq!(is_offered, !similar.is_empty(), "{name}");
            }
            assert!(offered["properties"]["labels"].is_object());
        }
        let rules = context! { rules => Value::from_serialize(rules), about => "ticket", similar => Vec::<String>::new(), discussion => "plan", triage => all, names_ticket => true, threads => 2, offers_work => "implement", attachments => true };
        for tool in [
            "ask",
            "finish",
            "give_up",
            "read_attachment",
            "submit_answer",
            "submit_comments",
            "submit_issues",
            "submit_plan",
            "submit_review",
            "submit_triage",
            "widen_scope",
        ] {
            let known = describe_tool(tool, &rules).unwrap().unwrap();
            assert_eq!(known.input_schema["type"], "object", "{tool}");
            assert!(known.description.len() > 40, "{tool}");
        }
    }
}
