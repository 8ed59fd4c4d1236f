//! Comment of a user: a command, or text for active runs.

use std::collections::BTreeSet;

use domain::{
    PullRequestRef, ReactionSubject, RepositoryName, TicketComment, TicketKey, TicketNews, Timestamp,
    TriggerKey, TriggerReason,
};

use super::{
    EventKind, EventVerdict, NewTrigger,
    decision::DecisionEvent,
    discussed::{DiscussionEvent, DiscussionOrder},
    question::QuestionEvent,
    retry::RetryEvent,
    stop::StopEvent,
};
use crate::{
    facts::{DecisionFacts, EventActor, Need, PROGRAM, tracker_reader::convert_user},
    text::{
        command::{CommentCommand, OrderReading},
        mention, text_pin,
    },
    webhook::payload::{
        UnreadablePayload, WebhookPayload, github,
        jira::{JiraHookUser, convert_to_markdown},
    },
};

// Limit of feedback at a gate in characters, equal to that of the API.
const FEEDBACK_CHARS: usize = 8_000;

// Start of the last line in every text that the reporter writes on GitHub.
const OUR_MARKER: &str = "<!-- journeyman:";

/// New comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommentEvent {
    place: CommentLocation,
    key: TriggerKey,
    at: Timestamp,
    author: EventActor,
    /// Text in Markdown.
    text: String,
    /// Ids of the accounts that the document mentions outside of quotations.
    mentioned: Vec<String>,
    /// True for a customer of a service desk. Such a comment is information and never a command.
    by_customer: bool,
}

/// Location of a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CommentLocation {
    Ticket(TicketKey),
    /// Issue or pull request.
    GitHub(RepositoryName, u64),
    /// Discussion, with the GraphQL id of the comment.
    Discussion(RepositoryName, u64, String),
}

pub(super) fn from_webhook(hook: &WebhookPayload<'_>) -> Result<Option<CommentEvent>, UnreadablePayload> {
    match hook {
        WebhookPayload::Jira { instance, payload } => {
            let (Some(comment), Some(_), Some(_)) =
                (payload.new_comment(), &payload.issue, payload.timestamp)
            else {
                return Ok(None);
            };
            let (ticket, at) = payload.ticket_and_time(*instance)?;
            let author = comment
                .author
                .as_ref()
                .map_or_else(|| payload.actor(), Into::into);
            Ok(Some(CommentEvent {
                key: comment_key(comment.id.text()),
                at,
                author: EventActor::of_account(&ticket, &author),
                place: CommentLocation::Ticket(ticket),
                text: convert_to_markdown(&comment.body).unwrap_or_default(),
                mentioned: ::jira::adf::mentioned_accounts(&comment.body),
                by_customer: comment
                    .author
                    .as_ref()
                    .or(payload.user.as_ref())
                    .is_some_and(JiraHookUser::is_customer),
            }))
        }
        WebhookPayload::GitHub {
            event: "issue_comment",
            ..
        } => Ok(from_github(hook.read::<github::CommentPayload>()?, hook)),
        WebhookPayload::GitHub {
            event: "discussion_comment",
            ..
        } => Ok(from_discussion(
            hook.read::<github::DiscussionCommentPayload>()?,
            hook,
        )),
        WebhookPayload::GitHub { .. } => Ok(None),
    }
}

fn from_discussion(
    payload: github::DiscussionCommentPayload,
    hook: &WebhookPayload<'_>,
) -> Option<CommentEvent> {
    let at = Timestamp::parse(&payload.comment.created_at)?;
    let repository = hook.repository(payload.repository);
    let author = github::GithubHookUser::or_ghost(payload.comment.user);
    (payload.action == "created").then(|| CommentEvent {
        key: discussion_key(payload.comment.id),
        at,
        author: author.on(&repository),
        place: CommentLocation::Discussion(repository, payload.discussion.number, payload.comment.node_id),
        text: payload.comment.body,
        mentioned: Vec::new(),
        by_customer: false,
    })
}

fn from_github(payload: github::CommentPayload, hook: &WebhookPayload<'_>) -> Option<CommentEvent> {
    let at = Timestamp::parse(&payload.comment.created_at)?;
    let repository = hook.repository(payload.repository);
    let author = github::GithubHookUser::or_ghost(payload.comment.user);
    (payload.action == "created").then(|| CommentEvent {
        key: comment_key(payload.comment.id),
        at,
        author: author.on(&repository),
        place: CommentLocation::GitHub(repository, payload.issue.number),
        text: payload.comment.body,
        mentioned: Vec::new(),
        by_customer: false,
    })
}

fn comment_key(id: impl std::fmt::Display) -> TriggerKey {
    TriggerKey::new(format!("comment:{id}"))
}

/// Key of a comment in a discussion. Discussion comments have separate ids, so the prefix keeps them apart from
/// issue comments.
fn discussion_key(id: impl std::fmt::Display) -> TriggerKey {
    TriggerKey::new(format!("discussion_comment:{id}"))
}

impl CommentEvent {
    /// Comment on a Jira ticket from a poll.
    pub(crate) fn from_jira_poll(ticket: &TicketKey, comment: &jira::JiraComment) -> Self {
        Self {
            place: CommentLocation::Ticket(ticket.clone()),
            key: comment_key(&comment.id),
            at: comment.created,
            author: EventActor::of_account(
                ticket,
                &domain::TrackerAccount {
                    id: comment.author_account_id.clone(),
                    display_name: comment.author.clone(),
                    is_bot: comment.by_bot,
                },
            ),
            text: comment.text.clone(),
            mentioned: comment.mentioned.clone(),
            by_customer: comment.by_customer,
        }
    }

    /// Comment on an issue or a pull request from a poll.
    pub(crate) fn from_github_poll(
        repository: &RepositoryName,
        number: u64,
        comment: ::github::GitHubComment,
        now: Timestamp,
    ) -> Self {
        Self {
            place: CommentLocation::GitHub(repository.clone(), number),
            key: comment_key(comment.id),
            at: comment.created_at.unwrap_or(now),
            author: EventActor::GitHub {
                repository: repository.clone(),
                login: comment.author,
                id: comment.author_id,
                is_bot: comment.by_bot,
            },
            text: comment.body,
            mentioned: Vec::new(),
            by_customer: false,
        }
    }

    /// Comment in a discussion from a poll.
    pub(crate) fn from_discussion_poll(
        repository: &RepositoryName,
        number: u64,
        comment: ::github::DiscussionComment,
    ) -> Self {
        let author = comment.author.map(convert_user).unwrap_or_default();
        Self {
            place: CommentLocation::Discussion(repository.clone(), number, comment.node_id),
            key: discussion_key(comment.id),
            at: comment.created_at,
            author: EventActor::GitHub {
                repository: repository.clone(),
                login: author.display_name,
                id: author.id.parse().ok(),
                is_bot: author.is_bot,
            },
            text: comment.body,
            mentioned: Vec::new(),
            by_customer: false,
        }
    }

    /// Comment of an API caller on a ticket.
    pub(crate) fn from_api(ticket: TicketKey, key: TriggerKey, by: String, text: String) -> Self {
        Self {
            place: CommentLocation::Ticket(ticket),
            key,
            at: bootstrap::read_wall_clock(),
            author: EventActor::Api { name: by },
            text,
            mentioned: Vec::new(),
            by_customer: false,
        }
    }

    pub(crate) const fn key(&self) -> &TriggerKey {
        &self.key
    }

    pub(crate) const fn at(&self) -> Timestamp {
        self.at
    }

    /// True when the comment mentions an account of ours.
    pub(crate) fn names_us(&self, facts: &DecisionFacts) -> bool {
        facts.names_us(&self.text, &self.mentioned)
    }

    /// True for a text of the reporter, under any account: an account outside the settings may be a person's, whose
    /// comments count. A person who copies the marker only hides their own comment.
    fn has_our_marker(&self) -> bool {
        let last_line = self.text.trim_end().lines().next_back();
        matches!(
            self.place,
            CommentLocation::GitHub(..) | CommentLocation::Discussion(..)
        ) && last_line.is_some_and(|line| line.starts_with(OUR_MARKER))
    }

    /// True for an order, or almost one, to these accounts of ours.
    pub(crate) fn is_order(&self, ours: &BTreeSet<String>) -> bool {
        self.reading(ours) != OrderReading::Text
    }

    /// Order in the comment. `ours` are the names and ids of our accounts.
    fn reading(&self, ours: &BTreeSet<String>) -> OrderReading {
        let is_mentioned = self.mentioned.iter().any(|id| ours.contains(id));
        OrderReading::of(&self.text, |line| {
            mention::strip_mention(line, ours).or_else(|| {
                // A document has the id of the account beside its text, which may be any display name.
                let (name, order) = line.strip_prefix('@')?.split_once(" /")?;
                let is_one = is_mentioned && self.mentioned.len() == 1 && !name.contains(['@', '/', '`']);
                is_one.then(|| &line[line.len() - order.len() - 1..])
            })
        })
    }

    /// Target for reactions. Jira has no reactions, and a comment through the API exists nowhere else.
    fn reactable(&self) -> Option<ReactionSubject> {
        match &self.place {
            CommentLocation::Ticket(_) => None,
            CommentLocation::GitHub(repository, _) => {
                let id = self.key.as_str().strip_prefix("comment:")?.parse().ok()?;
                Some(ReactionSubject::Comment {
                    repository: repository.clone(),
                    id,
                })
            }
            CommentLocation::Discussion(repository, number, comment) => Some(ReactionSubject::Discussion {
                repository: repository.clone(),
                number: *number,
                comment: Some(comment.clone()),
            }),
        }
    }

    /// Ticket of the comment, and our pull request if the comment is on one.
    fn ticket(&self, facts: &DecisionFacts) -> Result<(TicketKey, Option<PullRequestRef>), Need> {
        match &self.place {
            CommentLocation::Ticket(ticket) => Ok((ticket.clone(), None)),
            CommentLocation::Discussion(repository, number, _) => {
                let (repository, number) = (repository.clone(), *number);
                Ok((TicketKey::Discussion { repository, number }, None))
            }
            CommentLocation::GitHub(repository, number) => Ok(match facts.record(repository, number)? {
                Some(record) => (record.ticket.clone(), Some(record.pull_request.clone())),
                None => {
                    let (repository, number) = (repository.clone(), *number);
                    (TicketKey::GitHub { repository, number }, None)
                }
            }),
        }
    }

    /// Forwards text as news to the ticket's live runs. Without a live run it is not needed: a later run reads the
    /// ticket with all comments.
    fn pass_on(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let (ticket, pull_request) = self.ticket(facts)?;
        // A run that began before a move of the issue reads what is said under its new key, whatever rules are there.
        let is_moved = *facts.records(&ticket) != ticket;
        if pull_request.is_none() && !is_moved && facts.place(&ticket)?.candidates().next().is_none() {
            return Ok(EventVerdict::nothing("no rules for where it was said"));
        }
        let progress = *facts.progress(&ticket)?;
        if !progress.is_live {
            let is_question = !self.by_customer && self.names_us(facts);
            if progress.is_behind && is_question {
                // The run that is about to start may not read news, and then the question would stay without an
                // answer.
                return Ok(EventVerdict::behind());
            }
            if is_question {
                return Ok(EventVerdict::Becomes(Box::new(QuestionEvent {
                    ticket,
                    key: self.key.clone(),
                    at: self.at,
                    author: self.author.clone(),
                    text: self.text.clone(),
                    comment: self.reactable(),
                    pull_request,
                })));
            }
            if !progress.is_behind {
                return Ok(EventVerdict::nothing("no run is under way that could read it"));
            }
        }
        self.as_news(ticket, pull_request, facts)
    }

    fn as_news(
        &self,
        ticket: TicketKey,
        pull_request: Option<PullRequestRef>,
        facts: &DecisionFacts,
    ) -> Result<EventVerdict, Need> {
        let may_instruct = !self.by_customer && *facts.authority(&self.author)?;
        let news = TicketNews::Comment {
            comment: TicketComment {
                author: text_pin::pin_words(self.author.name()),
                at: self.at,
                text: text_pin::pin_words(&self.text),
                may_instruct,
                is_new: false,
            },
            pull_request,
            attachments: Vec::new(),
        };
        Ok(self.follows(ticket, TriggerReason::NewsArrived(news)))
    }

    /// Names the meant order for one that is almost right, where an order would count; other text is passed on.
    fn help_out(&self, meant: &str, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let (ticket, pull_request) = self.ticket(facts)?;
        let works_here = pull_request.is_some() || facts.row(&ticket)?.opened > 0;
        if self.by_customer || !works_here || !*facts.authority(&self.author)? {
            return self.pass_on(facts);
        }
        let meant = Some(meant.to_owned());
        Ok(self.follows(
            ticket,
            TriggerReason::HelpAsked {
                on: pull_request,
                meant,
            },
        ))
    }

    fn obey(&self, command: CommentCommand, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        if !*facts.authority(&self.author)? {
            tracing::info!(
                key = self.key.as_str(),
                "order refused: its author is not allowed to give orders"
            );
            return Ok(EventVerdict::nothing("the author is not allowed to give orders"));
        }
        let (ticket, pull_request) = self.ticket(facts)?;
        match command {
            CommentCommand::Cost => {
                let cost = facts.cost(&ticket)?;
                if cost.runs.is_empty() {
                    return Ok(EventVerdict::nothing("no run of the ticket has asked a model"));
                }
                let cost = cost.clone();
                Ok(self.follows(
                    ticket,
                    TriggerReason::CostAsked {
                        on: pull_request,
                        cost,
                    },
                ))
            }
            CommentCommand::Help => {
                // Other programs have the same order, so only work of Journeyman is explained.
                if pull_request.is_none() && facts.row(&ticket)?.opened == 0 {
                    return Ok(EventVerdict::nothing("no run of the ticket has begun"));
                }
                Ok(self.follows(
                    ticket,
                    TriggerReason::HelpAsked {
                        on: pull_request,
                        meant: None,
                    },
                ))
            }
            CommentCommand::Discuss(task) => Ok(EventVerdict::Becomes(Box::new(DiscussionEvent::ordered(
                ticket,
                task,
                DiscussionOrder {
                    key: self.key.clone(),
                    at: self.at,
                    by: self.author.name().to_owned(),
                    comment: self.reactable(),
                },
            )))),
            CommentCommand::Stop => Ok(EventVerdict::Becomes(Box::new(StopEvent {
                ticket,
                key: self.key.clone(),
                at: self.at,
                by: self.author.name().to_owned(),
                run: None,
            }))),
            CommentCommand::Retry => Ok(EventVerdict::Becomes(Box::new(RetryEvent {
                ticket,
                key: self.key.clone(),
                at: self.at,
                by: self.author.name().to_owned(),
            }))),
            CommentCommand::Approve { head } => {
                Ok(self.decided(ticket, domain::DecisionVerdict::Approve, &head, ""))
            }
            CommentCommand::Reject { head } => {
                Ok(self.decided(ticket, domain::DecisionVerdict::Reject, &head, ""))
            }
            CommentCommand::Feedback { head, text } => {
                Ok(self.decided(ticket, domain::DecisionVerdict::Revise, &head, &text))
            }
        }
    }

    fn decided(
        &self,
        ticket: TicketKey,
        verdict: domain::DecisionVerdict,
        head: &str,
        feedback: &str,
    ) -> EventVerdict {
        EventVerdict::Becomes(Box::new(DecisionEvent {
            ticket,
            run: None,
            key: self.key.clone(),
            at: self.at,
            by: self.author.name().to_owned(),
            verdict,
            head: head.to_owned(),
            feedback: text_pin::truncate_text(&text_pin::pin_words(feedback), FEEDBACK_CHARS),
        }))
    }

    fn follows(&self, ticket: TicketKey, reason: TriggerReason) -> EventVerdict {
        EventVerdict::from(NewTrigger {
            ticket,
            key: self.key.clone(),
            at: self.at,
            actor: Some(self.author.name().to_owned()),
            reason,
        })
    }
}

impl EventKind for CommentEvent {
    fn ticket(&self) -> Option<&TicketKey> {
        match &self.place {
            CommentLocation::Ticket(ticket) => Some(ticket),
            CommentLocation::GitHub(..) | CommentLocation::Discussion(..) => None,
        }
    }

    fn seen(&self, ours: &BTreeSet<String>) -> Option<ReactionSubject> {
        self.reactable().filter(|_| self.is_order(ours))
    }

    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        // Journeyman must not answer its own comments.
        if facts.is_ours(&self.author) || self.has_our_marker() {
            return Ok(EventVerdict::nothing("our own account said it"));
        }
        if facts.is_program(&self.author) {
            return Ok(EventVerdict::nothing(PROGRAM));
        }
        match self.reading(&facts.own_accounts) {
            OrderReading::Order(_) if self.by_customer => Ok(EventVerdict::nothing(
                "a customer of the service desk gives no orders",
            )),
            OrderReading::Order(command) => self.obey(command, facts),
            OrderReading::NearMiss(meant) => self.help_out(meant, facts),
            OrderReading::Text => self.pass_on(facts),
        }
    }
}
