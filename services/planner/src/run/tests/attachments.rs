//! Attachments of a ticket: excerpts and images in the prompt, the tool that reads the rest, and those of comments.

use domain::{
    AttachmentContent, Fact, FileKind, ImageFormat, Job, JobRequest, ObjectRef, OutboundAction,
    TicketAttachment, TicketComment, TicketNews, Timestamp, UnreadReason,
};
use serde_json::json;

use super::play::{Play, build_job_request, build_tool_reply};
use crate::run::{RunAction, decide_action};
use crate::transcript::{MessagePart, ModelTranscript, TranscriptMessage};

fn build_object(letter: &str) -> ObjectRef {
    ObjectRef {
        sha256: letter.repeat(64),
        size_bytes: 9,
    }
}

fn build_attachment(name: &str, content: AttachmentContent) -> TicketAttachment {
    TicketAttachment {
        name: name.to_owned(),
        source: name.to_owned(),
        alt: String::new(),
        size_bytes: 9,
        content,
    }
}

fn build_text(name: &str) -> TicketAttachment {
    let content = AttachmentContent::Text {
        object: build_object("a"),
        lines: 3,
        head: "first line".to_owned(),
        tail: "last line".to_owned(),
    };
    build_attachment(name, content)
}

fn build_image(name: &str) -> TicketAttachment {
    let content = AttachmentContent::Image {
        object: build_object("b"),
        format: ImageFormat::Png,
        width: 40,
        height: 30,
    };
    build_attachment(name, content)
}

fn build_request(attachments: &[TicketAttachment]) -> JobRequest {
    let mut request = build_job_request(Job::Implement);
    request.text.attachments = attachments.to_vec();
    request
}

/// Lets the model reply, and drives to its next call.
fn take_turn(play: &mut Play) {
    let asked = decide_action(&play.state);
    play.perform(asked);
    play.until_model_call();
}

fn play_with(attachments: &[TicketAttachment], calls: &[(&str, serde_json::Value)]) -> Play {
    let mut play = Play::implement(build_request(attachments), [build_tool_reply(calls)]);
    play.attached = "first line\nthe answer is 42\nlast line\n".to_owned();
    play.until_model_call();
    play
}

fn list_shown_images(transcript: &ModelTranscript) -> Vec<&str> {
    let parts = transcript.messages.iter().filter_map(|message| match message {
        TranscriptMessage::Parts(parts) => Some(parts),
        TranscriptMessage::User(_) | TranscriptMessage::Assistant(_) | TranscriptMessage::ToolResults(_) => {
            None
        }
    });
    let images = parts.flatten().filter_map(|part| match part {
        MessagePart::Image(image) => Some(image.name.as_str()),
        MessagePart::Text(_) => None,
    });
    images.collect()
}

fn find_last_result(transcript: &ModelTranscript) -> String {
    let mut results = transcript.messages.iter().filter_map(|message| match message {
        TranscriptMessage::ToolResults(results) => results.last(),
        TranscriptMessage::User(_) | TranscriptMessage::Parts(_) | TranscriptMessage::Assistant(_) => None,
    });
    results
        .next_back()
        .map(|(_, result)| result.content.clone())
        .unwrap()
}

#[test]
fn prompt_has_excerpt_image_and_reason() {
    let kind = FileKind::Archive;
    let archive = AttachmentContent::Unread {
        why: UnreadReason::Kind { kind },
    };
    let play = play_with(
        &[
            build_text("trace.log"),
            build_image("shot.png"),
            build_attachment("all.zip", archive),
        ],
        &[],
    );
    let shown = play.transcript();
    let TranscriptMessage::User(task) = &shown.messages[0] else {
        panic!("{shown:?}")
    };
    for text in [
        "first line\n[Lines 2 to 2 are left out",
        "last line",
        "name=\"all.zip\"",
        "an archive",
    ] {
        assert!(task.contains(text), "{text}: {task}");
    }
    assert_eq!(list_shown_images(&shown), ["shot.png"]);
    assert!(shown.tools.iter().any(|tool| tool.name == "read_attachment"));
}

#[test]
fn tool_is_offered_for_texts_alone() {
    for attachments in [&[][..], &[build_image("shot.png")]] {
        let shown = play_with(attachments, &[]).transcript();
        assert!(!shown.tools.iter().any(|tool| tool.name == "read_attachment"));
    }
}

#[test]
fn planner_reads_attachment_without_executor() {
    let call = json!({"name": "trace.log", "search": "ANSWER"});
    let mut play = play_with(&[build_text("trace.log")], &[("read_attachment", call)]);
    play.until(|action| matches!(action, RunAction::ReadAttachment { .. }));
    play.until_model_call();
    let answered = find_last_result(&play.transcript());
    assert!(answered.contains("2\tthe answer is 42"), "{answered}");
    let is_call = |fact: &Fact| matches!(fact, Fact::ToolRequested { call, own: false, .. } if call.name == "read_attachment");
    assert_eq!(
        play.entries.iter().filter(|entry| is_call(&entry.fact)).count(),
        1
    );
}

#[test]
fn wrong_attachment_request_names_choices() {
    let wrong = [
        (json!({"name": "other.log"}), "Choose from: trace.log."),
        (json!({"name": "shot.png"}), "not a text"),
        (json!({"name": "trace.log", "page": 1}), "unknown field"),
        (
            json!({"name": "trace.log", "search": "x".repeat(201)}),
            "200 characters",
        ),
    ];
    for (input, words) in wrong {
        let attachments = [build_text("trace.log"), build_image("shot.png")];
        let mut play = play_with(&attachments, &[("read_attachment", input)]);
        take_turn(&mut play);
        let answered = find_last_result(&play.transcript());
        assert!(answered.contains(words), "{answered}");
    }
}

#[test]
fn comment_brings_image_and_text() {
    let call = ("read_attachment", json!({"name": "new.log"}));
    let mut play = Play::implement(build_request(&[]), [build_tool_reply(&[call])]);
    play.attached = "the answer is 42".to_owned();
    let comment = TicketComment {
        author: "ada".to_owned(),
        at: Timestamp::from_unix_ms(1),
        text: "See new.log.".to_owned(),
        may_instruct: true,
        is_new: false,
    };
    let news = TicketNews::Comment {
        comment,
        pull_request: None,
        attachments: vec![build_text("new.log"), build_image("new.png")],
    };
    play.append(Fact::NewsArrived {
        sequence: 60,
        at: Timestamp::from_unix_ms(1),
        news,
    });
    play.until_model_call();
    let shown = play.transcript();
    assert_eq!(list_shown_images(&shown), ["new.png"]);
    let is_shown = |message: &TranscriptMessage| matches!(message, TranscriptMessage::User(words) if words.contains("name=\"new.log\""));
    assert!(shown.messages.iter().any(is_shown));
    take_turn(&mut play);
    let answered = find_last_result(&play.transcript());
    assert!(answered.contains("the answer is 42"), "{answered}");
}

#[test]
fn start_of_work_names_omitted_attachments_once() {
    let large = UnreadReason::TooLarge { most_bytes: 5 };
    let omitted = [
        build_attachment("dump.log", AttachmentContent::Unread { why: large }),
        build_attachment(
            "logo.png",
            AttachmentContent::Unread {
                why: UnreadReason::Elsewhere,
            },
        ),
    ];
    for (job, expected) in [(Job::Implement, &["dump.log"][..]), (Job::AddressReview, &[])] {
        let mut request = build_job_request(job);
        request.text.attachments = omitted.to_vec();
        let play = Play::implement(request, []);
        let begun = play.state.lifecycle().begun();
        let names: Vec<_> = begun.omitted.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, expected, "{job:?}");
    }
    let mut play = Play::implement(build_request(&omitted), []);
    play.until(|action| matches!(action, RunAction::AskModel { .. }));
    let announcements = play.entries.iter().filter(|entry| {
        matches!(
            &entry.fact,
            Fact::ReportRequested {
                request: OutboundAction::WorkStarted(started),
                ..
            } if started.begun.omitted.len() == 1
        )
    });
    assert_eq!(announcements.count(), 1);
}
