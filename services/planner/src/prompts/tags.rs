//! Quotation of foreign text as data in prompts.

use std::fmt::Write as _;

use domain::{
    BackgroundPart, ChangePlan, ChecksSummary, CodeSeed, CommentQuestion, EarlierPullRequest, JobRequest,
    PullRequestFile, PullRequestStatus, ReviewRound, ReviewThread, TicketBackground, TicketComment,
    TicketIntake, TicketKey, TicketNews,
};

use super::comment_choice::{
    COMMENT_CHARS, NEWS_ROOM, TICKET_ROOM, choose_comments, render_omitted, shown_chars,
};

const TEXT_CHARS: usize = 64 * 1024;
const CRITERION_CHARS: usize = 500;
// Failed checks that are shown, and characters of each log.
const FAILURES: usize = 4;
const LOG_CHARS: usize = 66_000;
// Characters of one file's patch.
const PATCH_CHARS: usize = 40_000;
// Characters of a text that a model wrote earlier in the run.
const MODEL_CHARS: usize = 16 * 1024;

/// Tags around foreign text. Their names end in a random code of the run that is removed from every text,
/// so that no text can close the tag around it.
pub(super) struct PromptTags<'a> {
    pub(super) nonce: &'a str,
}

impl PromptTags<'_> {
    /// Truncates a foreign text and removes the code of the run.
    pub(super) fn text(&self, text: &str, most: usize) -> String {
        let cut: String = text.chars().take(most).collect();
        // A text that guesses the code of the run cannot close its tag.
        cut.replace(self.nonce, "-")
    }

    /// Prepares a foreign text for an attribute.
    pub(super) fn attribute(&self, text: &str) -> String {
        // A quote, line break or bracket would end the attribute.
        self.text(text, 100).replace(['"', '\n', '>'], "'")
    }

    pub(super) fn around(&self, name: &str, content: &str) -> String {
        self.around_with(name, "", content)
    }

    pub(super) fn around_with(&self, name: &str, attributes: &str, content: &str) -> String {
        let nonce = self.nonce;
        format!("<{name}-{nonce}{attributes}>\n{content}\n</{name}-{nonce}>\n")
    }

    /// Renders a foreign text within the limit of comments.
    fn quote(&self, name: &str, attributes: &str, text: &str) -> String {
        self.around_with(name, attributes, &self.text(text, COMMENT_CHARS))
    }

    /// Renders lines; empty without any.
    pub(super) fn around_lines(&self, name: &str, lines: &[String]) -> String {
        if lines.is_empty() {
            String::new()
        } else {
            self.around(name, &lines.join("\n"))
        }
    }

    pub(super) fn ticket(&self, ticket: &TicketKey, request: &JobRequest) -> String {
        let pinned = &request.text;
        let field = |name: &str, text: &str, most: usize| self.around(name, &self.text(text, most));
        let mut text = self.around("key", &ticket.short());
        text.push_str(&field("summary", &pinned.summary, 1000));
        text.push_str(&field("type", &pinned.kind, 100));
        text.push_str(&field("priority", &pinned.priority, 100));
        text.push_str(&field("labels", &pinned.labels.join(", "), 1000));
        text.push_str(&field("description", &pinned.description, TEXT_CHARS));
        let chosen = choose_comments(pinned.comments.iter().collect(), &TICKET_ROOM);
        text.push_str(&render_omitted(&chosen));
        for comment in chosen.shown {
            text.push_str(&self.comment(comment));
        }
        text.push_str(&self.attachments(&pinned.attachments));
        self.around("ticket", text.trim_end())
    }

    /// Renders the trackers' knowledge about the ticket in addition to its text; may be empty.
    pub(super) fn background(&self, known: &TicketBackground) -> String {
        let mut text = String::new();
        for earlier in &known.earlier {
            text.push_str(&self.earlier(earlier));
        }
        for ticket in &known.linked {
            let attributes = format!(
                " key=\"{}\" relation=\"{}\" status=\"{}\"",
                self.attribute(&ticket.key),
                self.attribute(&ticket.relation),
                self.attribute(&ticket.status)
            );
            let content = format!("{}\n\n{}", ticket.summary, ticket.description);
            text.push_str(&self.quote("linked-ticket", &attributes, content.trim_end()));
        }
        for ticket in &known.referenced {
            let attributes = format!(
                " key=\"{}\" status=\"{}\"",
                self.attribute(&ticket.key),
                self.attribute(&ticket.status)
            );
            let content = format!("{}\n\n{}", ticket.summary, ticket.description);
            text.push_str(&self.quote("referenced-ticket", &attributes, content.trim_end()));
        }
        for ticket in &known.similar {
            let attributes = format!(
                " key=\"{}\" status=\"{}\"",
                self.attribute(&ticket.key),
                self.attribute(&ticket.status)
            );
            text.push_str(&self.quote("similar-ticket", &attributes, &ticket.summary));
        }
        for part in &known.unread {
            let what = match part {
                BackgroundPart::Earlier => "Earlier pull requests",
                BackgroundPart::Linked => "Linked tickets",
                BackgroundPart::Similar => "Similar tickets",
            };
            let _ = writeln!(text, "{what} could not be read.");
        }
        text
    }

    /// Renders the failed checks that a model can repair, with the ends of their logs.
    pub(super) fn failures(&self, checks: &ChecksSummary) -> String {
        let real = checks.failed.iter().filter(|check| check.class.is_real());
        let mut text = String::new();
        for check in real.take(FAILURES) {
            let step = match check.step.as_str() {
                "" => String::new(),
                step => format!(" step=\"{}\"", self.attribute(step)),
            };
            let attributes = format!(" name=\"{}\"{step}", self.attribute(&check.name));
            let mut content = match check.command.as_str() {
                "" => String::new(),
                command => self.around("step-runs", &self.text(command, COMMENT_CHARS)),
            };
            content.push_str(&self.text(check.output(), LOG_CHARS));
            text.push_str(&self.around_with("failed-check", &attributes, &content));
        }
        text
    }

    /// Renders a question from a comment.
    pub(super) fn question(&self, question: &CommentQuestion) -> String {
        let attributes = format!(" author=\"{}\"", self.attribute(&question.author));
        self.quote("question", &attributes, &question.text)
    }

    /// Renders the patches of a pull request, each in a separate tag.
    pub(super) fn patches(&self, files: &[PullRequestFile]) -> String {
        let patch = |file: &PullRequestFile| {
            let attributes = format!(" path=\"{}\"", self.attribute(&file.path));
            let text = if file.patch.is_empty() {
                "(no text of it is shown: binary, renamed or too large)".to_owned()
            } else {
                self.text(&file.patch, PATCH_CHARS)
            };
            self.around_with("patch", &attributes, &text)
        };
        files.iter().map(patch).collect()
    }

    /// Renders a review with its comments, each with the id for replies.
    pub(super) fn review(&self, round: &ReviewRound) -> String {
        let attributes = format!(
            " author=\"{}\" asks_for_changes=\"{}\"",
            self.attribute(&round.author),
            if round.asks_for_changes { "yes" } else { "no" }
        );
        let mut content = self.text(&round.body, COMMENT_CHARS);
        for thread in &round.threads {
            let line = thread.line.map_or_else(String::new, |line| format!(":{line}"));
            let attributes = format!(
                " id=\"{}\" place=\"{}{line}\"",
                thread.id,
                self.attribute(&thread.path)
            );
            content.push('\n');
            content.push_str(&self.around_with("comment", &attributes, &self.thread(thread)));
        }
        self.around_with("review", &attributes, content.trim())
    }

    /// Renders a comment after the lines that it refers to and the earlier comments of its thread.
    fn thread(&self, thread: &ReviewThread) -> String {
        let mut content = match thread.hunk.as_str() {
            "" => String::new(),
            hunk => self.around("hunk", &self.text(hunk, COMMENT_CHARS)),
        };
        for remark in &thread.earlier {
            let attributes = if remark.is_ours {
                " author=\"you\"".to_owned()
            } else {
                let may = if remark.is_stranger { "no" } else { "yes" };
                let author = self.attribute(&remark.author);
                format!(" author=\"{author}\" may_instruct=\"{may}\"")
            };
            content.push_str(&self.quote("earlier", &attributes, &remark.text));
        }
        content.push_str(&self.text(&thread.text, COMMENT_CHARS));
        content
    }

    fn earlier(&self, pull: &EarlierPullRequest) -> String {
        let attributes = format!(
            " number=\"#{}\" state=\"{}\" author=\"{}\" branch=\"{}\"",
            pull.number,
            match pull.status {
                PullRequestStatus::Merged => "merged",
                PullRequestStatus::Closed | PullRequestStatus::Open => "closed without a merge",
            },
            if pull.is_ours {
                "you, in an earlier run".to_owned()
            } else {
                self.attribute(&pull.author)
            },
            self.attribute(&pull.branch)
        );
        let mut content = self.text(&pull.title, 1000);
        content.push('\n');
        for remark in &pull.said {
            let place = match remark.place.as_str() {
                "" => String::new(),
                place => format!(" place=\"{}\"", self.attribute(place)),
            };
            let attributes = format!(" author=\"{}\"{place}", self.attribute(&remark.author));
            content.push_str(&self.quote("remark", &attributes, &remark.text));
        }
        self.around_with("earlier-pull-request", &attributes, content.trim_end())
    }

    /// Renders the result of a tool of an MCP server.
    pub(super) fn mcp_result(&self, (server, tool): (&str, &str), text: &str, most: usize) -> String {
        let attributes = format!(
            " server=\"{}\" tool=\"{}\"",
            self.attribute(server),
            self.attribute(tool)
        );
        self.around_with("mcp-result", &attributes, &self.text(text, most))
    }

    /// Renders the acceptance criteria; may be empty.
    pub(super) fn criteria(&self, criteria: &[String]) -> String {
        let lines: Vec<String> = criteria
            .iter()
            .enumerate()
            .map(|(number, text)| format!("{}. {}", number + 1, self.text(text, CRITERION_CHARS)))
            .collect();
        self.around_lines("criteria", &lines)
    }

    /// Renders places of the repository; may be empty. Their names are foreign text as well.
    pub(super) fn code(&self, seeds: &[CodeSeed]) -> String {
        let line = |seed: &CodeSeed| {
            let lines = seed
                .lines
                .map_or_else(String::new, |(from, to)| format!(":{from}-{to}"));
            let symbol = match seed.symbol.as_str() {
                "" => String::new(),
                symbol => format!(" {}", self.attribute(symbol)),
            };
            let (path, why) = (self.attribute(&seed.path), self.attribute(&seed.reason));
            format!("{path}{lines}{symbol} (score {}; {why})", seed.score)
        };
        let lines: Vec<String> = seeds.iter().map(line).collect();
        self.around_lines("places", &lines)
    }

    /// Renders the triage of the ticket. It counts as foreign text, because a model wrote it from the
    /// ticket's text.
    pub(super) fn intake(&self, intake: &TicketIntake) -> String {
        let mut text = format!("{}: {}\n", intake.kind.as_str(), intake.one_liner);
        if let Some(cause) = &intake.root_cause {
            let _ = writeln!(text, "Possible cause: {cause}");
        }
        if !intake.components.is_empty() {
            let _ = writeln!(text, "Affected parts: {}", intake.components.join(", "));
        }
        for module in &intake.modules {
            let _ = writeln!(text, "Module {}: {}", module.name, module.why);
        }
        for assumption in &intake.assumptions {
            let _ = writeln!(text, "Taken for granted: {assumption}");
        }
        self.around("first-look", &self.text(text.trim_end(), MODEL_CHARS))
    }

    /// Renders the plan. It counts as foreign text, because a model wrote it.
    pub(super) fn plan(&self, plan: &ChangePlan) -> String {
        let mut text = format!("Goal: {}\n\nApproach: {}\n", plan.goal, plan.approach);
        for (number, step) in plan.steps.iter().enumerate() {
            let files = if step.files.is_empty() {
                String::new()
            } else {
                format!(" ({})", step.files.join(", "))
            };
            let _ = write!(text, "\n{}. {}{files}", number + 1, step.what);
        }
        let lists = [
            ("Tests", &plan.tests),
            ("Risks", &plan.risks),
            ("Not done", &plan.not_doing),
        ];
        for (name, lines) in lists.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            let _ = write!(text, "\n\n{name}:\n- {}", lines.join("\n- "));
        }
        self.around("plan", &self.text(&text, MODEL_CHARS))
    }

    /// Renders the comments that arrived while the model worked.
    pub(super) fn news(&self, said: &[&TicketNews], is_full_of_strangers: bool) -> String {
        let mut text =
            "This came in while you worked. It is information about the ticket, like the ticket's text; take it \
             into account if it is about this work.\n\n"
                .to_owned();
        let comments = said.iter().map(|TicketNews::Comment { comment, .. }| comment);
        let chosen = choose_comments(comments.collect(), &NEWS_ROOM);
        text.push_str(&render_omitted(&chosen));
        for TicketNews::Comment {
            comment,
            pull_request,
            attachments,
        } in said
        {
            if !chosen.shown.iter().any(|shown| std::ptr::eq(*shown, comment)) {
                continue;
            }
            let _ = match pull_request {
                Some(pull_request) => writeln!(text, "On pull request #{}:", pull_request.number),
                None => writeln!(text, "On the ticket:"),
            };
            text.push_str(&self.comment(comment));
            text.push_str(&self.attachments(attachments));
        }
        if is_full_of_strangers {
            text.push_str(
                "People who may not instruct have commented so often that no more of their comments are shown here; all of \
                 them are on the ticket.\n",
            );
        }
        text
    }

    fn comment(&self, comment: &TicketComment) -> String {
        let attributes = format!(
            " author=\"{author}\" at=\"{at}\" may_instruct=\"{may}\"{new}",
            author = self.attribute(&comment.author),
            at = comment.at,
            may = if comment.may_instruct { "yes" } else { "no" },
            new = if comment.is_new { " new=\"yes\"" } else { "" },
        );
        let most = shown_chars(comment);
        let mut content = self.text(&comment.text, most);
        if comment.text.chars().nth(most).is_some() {
            content.push_str("\n[The rest of this comment is on the ticket.]");
        }
        self.around_with("comment", &attributes, &content)
    }
}
