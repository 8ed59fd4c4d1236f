//! Attachments that a ticket or a comment names, before their contents are read.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    AttachmentRule, Job, JobRequest, JobSubject, RepositoryName, TicketAttachment, TicketKey, TicketNews,
    Timestamp, TriggerReason,
};
use github::AttachmentThread;

use crate::{
    events::NewTrigger,
    text::{
        attachment_links::{AttachmentLink, list_attachment_links},
        text_pin,
    },
};

// Limit of a file name, in characters, so that prompts show it whole.
const NAME_CHARS: usize = 90;
const ALT_CHARS: usize = 300;
// Time before a comment in which its author uploads what it shows.
const UPLOAD_MS: i64 = 10 * 60 * 1000;

/// Location of the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttachmentSource {
    Jira(jira::JiraAttachment),
    GitHub {
        repository: RepositoryName,
        address: String,
    },
    /// Address outside of the tracker.
    Elsewhere,
}

/// Attachment before its content is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedAttachment {
    pub(crate) name: String,
    /// Identity at the tracker.
    pub(crate) id: String,
    pub(crate) alt: String,
    /// Size by the tracker; 0: unknown.
    pub(crate) size_bytes: u64,
    pub(crate) source: AttachmentSource,
}

/// Issue, pull request or discussion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GitHubThread {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
    pub(crate) kind: AttachmentThread,
}

impl GitHubThread {
    fn of_ticket(ticket: &TicketKey) -> Option<Self> {
        let (repository, number, kind) = match ticket {
            TicketKey::GitHub { repository, number } => (repository, number, AttachmentThread::Issue),
            TicketKey::Discussion { repository, number } => {
                (repository, number, AttachmentThread::Discussion)
            }
            TicketKey::Jira { .. } | TicketKey::Folder { .. } => return None,
        };
        Some(Self {
            repository: repository.clone(),
            number: *number,
            kind,
        })
    }
}

/// Texts of a trigger whose attachments are read.
#[derive(Clone, Debug)]
pub(crate) struct AttachmentRequest {
    pub(crate) ticket: TicketKey,
    /// Thread on GitHub with the texts; absent: they are not on GitHub.
    pub(crate) thread: Option<GitHubThread>,
    pub(crate) rule: AttachmentRule,
    texts: Vec<String>,
    /// Time after which an attachment is too late.
    at: Timestamp,
    /// True for a comment, which brings its own attachments alone.
    is_comment: bool,
}

impl AttachmentRequest {
    /// Attachments that a trigger needs; `None` when it has no new text.
    pub(crate) fn of(follows: &NewTrigger, news_rule: AttachmentRule) -> Option<Self> {
        let ticket = follows.ticket.clone();
        match &follows.reason {
            TriggerReason::JobRequested(job) if pins_new_text(job) => {
                let text = &job.text;
                let comments = text.comments.iter().map(|comment| comment.text.clone());
                Some(Self {
                    thread: GitHubThread::of_ticket(&ticket),
                    ticket,
                    rule: job.rules.agent.attachments,
                    texts: std::iter::once(text.description.clone())
                        .chain(comments)
                        .collect(),
                    at: follows.at,
                    is_comment: false,
                })
            }
            TriggerReason::NewsArrived(TicketNews::Comment {
                comment,
                pull_request,
                ..
            }) => {
                let on_pull_request = pull_request.as_ref().map(|known| GitHubThread {
                    repository: known.repository.clone(),
                    number: known.number,
                    kind: AttachmentThread::Issue,
                });
                Some(Self {
                    thread: on_pull_request.or_else(|| GitHubThread::of_ticket(&ticket)),
                    ticket,
                    rule: news_rule,
                    texts: vec![comment.text.clone()],
                    at: comment.at,
                    is_comment: true,
                })
            }
            TriggerReason::JobRequested(_)
            | TriggerReason::PullRequest(_)
            | TriggerReason::ReviewWithdrawn { .. }
            | TriggerReason::TicketLeft(_)
            | TriggerReason::Skipped(_)
            | TriggerReason::StopRequested { .. }
            | TriggerReason::RetryRequested
            | TriggerReason::Decided(_)
            | TriggerReason::ReportSettled(_)
            | TriggerReason::CostAsked { .. }
            | TriggerReason::HelpAsked { .. } => None,
        }
    }

    /// True when the attachments of the Jira issue are needed. A comment without a sign of a file costs no request.
    pub(crate) fn needs_issue(&self) -> bool {
        let is_jira = matches!(self.ticket, TicketKey::Jira { .. });
        let names_file = || {
            let signs = ["(image", "(file"];
            let has_sign = |text: &String| signs.iter().any(|sign| text.contains(sign));
            self.texts.iter().any(has_sign)
        };
        is_jira && (!self.is_comment || names_file())
    }

    /// Attachments of the texts, those that a text names first. `is_on_github` is true for an address at which GitHub
    /// keeps files.
    pub(crate) fn list(
        &self,
        of_issue: &[jira::JiraAttachment],
        is_on_github: impl Fn(&RepositoryName, &str) -> bool,
    ) -> Vec<NamedAttachment> {
        let mut found = self.list_of_issue(of_issue);
        let mut known: BTreeSet<String> = found.iter().map(|one| one.id.clone()).collect();
        for link in self.texts.iter().flat_map(|text| list_attachment_links(text)) {
            let own = self.thread.as_ref().map(|thread| &thread.repository);
            let own = own.filter(|name| is_on_github(name, &link.address));
            let is_web = link.address.starts_with("https://") || link.address.starts_with("http://");
            let source = match own {
                Some(repository) => AttachmentSource::GitHub {
                    repository: repository.clone(),
                    address: link.address.clone(),
                },
                None if link.is_image && is_web => AttachmentSource::Elsewhere,
                None => continue,
            };
            if known.insert(link.address.clone()) {
                found.push(name_link(link, source));
            }
        }
        make_names_unique(&mut found);
        found
    }

    fn list_of_issue(&self, of_issue: &[jira::JiraAttachment]) -> Vec<NamedAttachment> {
        let is_early = |one: &&jira::JiraAttachment| one.created.is_none_or(|created| created <= self.at);
        let place = |one: &jira::JiraAttachment| {
            let mut places = self.texts.iter().enumerate().filter_map(|(number, text)| {
                let at = text.find(one.name.as_str()).filter(|_| !one.name.is_empty())?;
                Some((number, at))
            });
            places.next()
        };
        let is_recent = |one: &jira::JiraAttachment| {
            one.created
                .is_some_and(|created| created.plus_ms(UPLOAD_MS) >= self.at)
        };
        let mut chosen: Vec<_> = of_issue
            .iter()
            .filter(is_early)
            .map(|one| (place(one), one))
            .filter(|(place, one)| !self.is_comment || place.is_some() || is_recent(one))
            .collect();
        // Named ones in the order of the text, then the newest: limits drop what is least likely to matter.
        chosen.sort_by_key(|(place, one)| (place.is_none(), *place, std::cmp::Reverse(one.created)));
        let named = chosen.into_iter().map(|(_, one)| NamedAttachment {
            name: clean_name(&one.name),
            id: one.id.clone(),
            alt: String::new(),
            size_bytes: one.size_bytes,
            source: AttachmentSource::Jira(one.clone()),
        });
        named.collect()
    }
}

/// True for a job whose text was pinned for this trigger. Repairs have the text, and the attachments, of the work before.
fn pins_new_text(job: &JobRequest) -> bool {
    let is_new = match job.job {
        Job::Implement | Job::Answer | Job::Triage | Job::Discuss | Job::Review => true,
        Job::FixCi
        | Job::AddressReview
        | Job::ResolveConflict
        | Job::MarkReady
        | Job::Finish
        | Job::UpdateBase
        | Job::BackToDraft
        | Job::Reopen
        | Job::Rehearse
        | Job::Remind => false,
    };
    is_new && job.text.attachments.is_empty()
}

/// Puts attachments into the text of a trigger.
pub(crate) fn attach(follows: &mut NewTrigger, attached: Vec<TicketAttachment>) {
    match &mut follows.reason {
        TriggerReason::JobRequested(job) => {
            // Work that a question may start has the same text.
            if let JobSubject::Question(question) = &mut job.about
                && let Some(work) = &mut question.work
                && work.text.attachments.is_empty()
            {
                work.text.attachments.clone_from(&attached);
            }
            job.text.attachments = attached;
        }
        TriggerReason::NewsArrived(TicketNews::Comment { attachments, .. }) => *attachments = attached,
        TriggerReason::PullRequest(_)
        | TriggerReason::ReviewWithdrawn { .. }
        | TriggerReason::TicketLeft(_)
        | TriggerReason::Skipped(_)
        | TriggerReason::StopRequested { .. }
        | TriggerReason::RetryRequested
        | TriggerReason::Decided(_)
        | TriggerReason::ReportSettled(_)
        | TriggerReason::CostAsked { .. }
        | TriggerReason::HelpAsked { .. } => {}
    }
}

fn name_link(link: AttachmentLink, source: AttachmentSource) -> NamedAttachment {
    let alt = if link.is_image {
        clean_line(&link.text, ALT_CHARS)
    } else {
        String::new()
    };
    NamedAttachment {
        name: clean_name(&choose_name(&link)),
        alt,
        id: link.address,
        size_bytes: 0,
        source,
    }
}

/// Name from the address of a file, otherwise from the text of its link.
fn choose_name(link: &AttachmentLink) -> String {
    let path = link.address.split(['?', '#']).next().unwrap_or_default();
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let decoded = percent_encoding::percent_decode_str(last).decode_utf8_lossy();
    // GitHub's addresses of images end in an id without an extension.
    if decoded.contains('.') {
        decoded.into_owned()
    } else if link.is_image {
        "image".to_owned()
    } else if link.text.contains('.') {
        link.text.clone()
    } else {
        "file".to_owned()
    }
}

fn clean_name(name: &str) -> String {
    let name = clean_line(name, NAME_CHARS).replace(['/', '\\', '`', '"', '<', '>'], "_");
    match name.trim() {
        "" => "file".to_owned(),
        name => name.to_owned(),
    }
}

fn clean_line(text: &str, chars: usize) -> String {
    let line = text_pin::sanitize_text(text)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    text_pin::truncate_text(&line, chars)
}

/// Numbers repeated names: `image.png`, `image-2.png`.
fn make_names_unique(attachments: &mut [NamedAttachment]) {
    let (mut known, mut last_numbers) = (BTreeSet::new(), BTreeMap::new());
    for attachment in attachments {
        let mut name = attachment.name.clone();
        // The search continues behind the last number of the name: a text may have thousands of equal names.
        let number = last_numbers.entry(name.to_lowercase()).or_insert(1_usize);
        while !known.insert(name.to_lowercase()) {
            *number += 1;
            name = match attachment.name.rsplit_once('.') {
                Some((stem, extension)) => format!("{stem}-{number}.{extension}"),
                None => format!("{}-{number}", attachment.name),
            };
        }
        attachment.name = name;
    }
}

#[cfg(test)]
mod tests {
    use domain::{RepositoryRules, TicketBackground, TicketComment, TicketText, TriggerKey};

    use super::*;

    const ASSET: &str = "https://github.com/user-attachments/assets/0a1b2c3d";

    fn build_file(id: &str, name: &str, created: i64) -> jira::JiraAttachment {
        jira::JiraAttachment {
            id: id.to_owned(),
            name: name.to_owned(),
            size_bytes: 10,
            created: Some(Timestamp::from_unix_ms(created)),
            content: String::new(),
        }
    }

    fn build_trigger(ticket: &str, reason: TriggerReason) -> NewTrigger {
        NewTrigger {
            key: TriggerKey::new("k"),
            ticket: ticket.parse().unwrap(),
            at: Timestamp::from_unix_ms(1_000_000),
            actor: None,
            reason,
        }
    }

    fn build_job(ticket: &str, job: Job, description: &str) -> NewTrigger {
        let request = JobRequest {
            job,
            repository: RepositoryName::new("acme", "shop").unwrap(),
            text: TicketText {
                description: description.to_owned(),
                ..TicketText::default()
            },
            rules: RepositoryRules::default(),
            background: TicketBackground::default(),
            about: JobSubject::default(),
        };
        build_trigger(ticket, TriggerReason::JobRequested(Box::new(request)))
    }

    fn build_news(ticket: &str, text: &str) -> NewTrigger {
        let comment = TicketComment {
            author: "Ada".to_owned(),
            at: Timestamp::from_unix_ms(1_000_000),
            text: text.to_owned(),
            may_instruct: true,
            is_new: false,
        };
        let news = TicketNews::Comment {
            comment,
            pull_request: None,
            attachments: Vec::new(),
        };
        build_trigger(ticket, TriggerReason::NewsArrived(news))
    }

    fn list_names(follows: &NewTrigger, of_issue: &[jira::JiraAttachment]) -> Vec<String> {
        let request = AttachmentRequest::of(follows, AttachmentRule::All).unwrap();
        let is_on_github =
            |_: &RepositoryName, address: &str| address.starts_with("https://github.com/user-attachments/");
        let found = request.list(of_issue, is_on_github);
        found.into_iter().map(|one| one.name).collect()
    }

    #[test]
    fn named_files_come_first_later_ones_never() {
        let files = [
            build_file("1", "old.log", 1),
            build_file("2", "new.log", 900_000),
            build_file("3", "named.png", 2),
            build_file("4", "late.log", 1_000_001),
            build_file("5", "named.png", 3),
        ];
        let job = build_job("jira:ENG-1", Job::Implement, "see (image `named.png`)");
        assert_eq!(
            list_names(&job, &files),
            ["named.png", "named-2.png", "new.log", "old.log"]
        );
    }

    #[test]
    fn comment_brings_its_own_files_alone() {
        let files = [
            build_file("1", "old.log", 1),
            build_file("2", "named.log", 2),
            build_file("3", "pasted.png", 990_000),
        ];
        let news = build_news("jira:ENG-1", "now (file `named.log`)");
        assert_eq!(list_names(&news, &files), ["named.log", "pasted.png"]);
        let request = AttachmentRequest::of(&news, AttachmentRule::All).unwrap();
        assert!(request.needs_issue());
        let plain = build_news("jira:ENG-1", "Round up.");
        assert!(
            !AttachmentRequest::of(&plain, AttachmentRule::All)
                .unwrap()
                .needs_issue()
        );
    }

    #[test]
    fn github_files_and_foreign_images_are_named() {
        let text = format!(
            "![the dialog]({ASSET}) [trace.log](https://github.com/user-attachments/files/1/trace%20a.log) \
             ![logo](https://a.example/logo.svg?x=1) [page](https://a.example/page) ![again]({ASSET}) ![here](local.png)"
        );
        let job = build_job("github:acme/shop#7", Job::Implement, &text);
        assert_eq!(list_names(&job, &[]), ["image", "trace a.log", "logo.svg"]);
    }

    #[test]
    fn repair_keeps_attachments_of_earlier_work() {
        for job in [Job::FixCi, Job::AddressReview] {
            let follows = build_job("jira:ENG-1", job, "x");
            assert!(AttachmentRequest::of(&follows, AttachmentRule::All).is_none());
        }
    }

    #[test]
    fn hostile_name_becomes_plain_file_name() {
        for (name, expected) in [
            ("../../etc/passwd", ".._.._etc_passwd"),
            ("a\u{202e}gnp.exe", "agnp.exe"),
            ("\n", "file"),
            ("<x>\"y`.log", "_x__y_.log"),
        ] {
            assert_eq!(clean_name(name), expected, "{name}");
        }
    }
}
