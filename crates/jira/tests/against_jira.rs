//! Reader and writer against a strict stand-in over real HTTP.

use std::{collections::BTreeMap, time::Duration};

use domain::{TicketKey, Timestamp};
use jira::{
    CommentAudience, Error, JiraDialect, JiraReader, JiraWriter, Settings, StatusCategory, TextField, hook,
};
use serde_json::{Map, Value, json};
use testkit::{FakeJira, JiraKind, JiraOptions, JiraTransition, ServiceFault, jira as stand_in, poll_until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

struct Site {
    jira: FakeJira,
    reader: JiraReader,
    writer: JiraWriter,
    kind: JiraKind,
}

fn build_settings(url: &str, email: &str, token: &str) -> Settings {
    Settings {
        base_url: url.to_owned(),
        email: email.to_owned(),
        api_token: token.into(),
        ..Settings::default()
    }
}

/// Settings of an account for this kind of Jira.
fn build_account_settings(kind: JiraKind, url: &str, email: &str, token: &str) -> Settings {
    match kind {
        JiraKind::Cloud => build_settings(url, email, token),
        JiraKind::DataCenter(_) => Settings {
            deployment: JiraDialect::DataCenter,
            ..build_settings(url, "", token)
        },
    }
}

async fn start_site() -> Site {
    site_with(JiraOptions::default()).await
}

async fn data_center() -> Site {
    site_with(JiraOptions {
        kind: JiraKind::DataCenter(10),
        ..JiraOptions::default()
    })
    .await
}

/// One site of each kind.
async fn start_sites() -> [Site; 2] {
    [start_site().await, data_center().await]
}

async fn site_with(options: JiraOptions) -> Site {
    let kind = options.kind;
    let jira = FakeJira::start(options).await.unwrap();
    let account = |email, token| build_account_settings(kind, &jira.url(), email, token);
    let reader = account(stand_in::READER_EMAIL, stand_in::READER_API_TOKEN);
    let writer = account(stand_in::WRITER_EMAIL, stand_in::WRITER_API_TOKEN);
    Site {
        reader: JiraReader::new(&reader).unwrap(),
        writer: JiraWriter::new(&writer).unwrap(),
        kind,
        jira,
    }
}

fn parse_ticket(text: &str) -> TicketKey {
    TicketKey::jira(text).unwrap()
}

impl Site {
    fn ticket(&self) -> TicketKey {
        parse_ticket(
            &self
                .jira
                .create_issue("ENG", "Login fails", "First.\n\nSecond.", "Bug", &["backend"]),
        )
    }
}

#[tokio::test]
async fn an_issue_is_read_whole() {
    for site in start_sites().await {
        let ticket = site.ticket();
        let moved = site
            .jira
            .move_issue(&ticket.short(), "Ready for Agent", "Mia")
            .unwrap();
        site.jira
            .comment_as(&ticket.short(), "Mia", "Please hurry")
            .unwrap();

        let issue = site.reader.issue(&ticket).await.unwrap();

        assert_eq!(
            (issue.summary.as_str(), issue.kind.as_str()),
            ("Login fails", "Bug")
        );
        assert_eq!(issue.description_markdown, "First.\n\nSecond.");
        assert_eq!(issue.labels, ["backend"]);
        assert_eq!(
            (issue.status.name.as_str(), issue.status.category),
            ("Ready for Agent", StatusCategory::ToDo)
        );
        assert_eq!(issue.status_changes.last().unwrap().id.0, moved);
        assert!(issue.status_changed_at.is_some() && issue.updated.is_some());
        assert_eq!(
            issue.url,
            format!("{}/browse/{}", site.jira.url(), ticket.short())
        );
        assert_eq!(
            (issue.comments[0].author.as_str(), issue.comments[0].text.as_str()),
            ("Mia", "Please hurry")
        );
        assert!(!issue.comments[0].by_us);
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn issue_keeps_latest_two_hundred_comments() {
    for site in start_sites().await {
        let ticket = site.ticket();
        for index in 0..205 {
            site.jira
                .comment_as(&ticket.short(), "Mia", &format!("comment {index}"))
                .unwrap();
        }
        let issue = site.reader.issue(&ticket).await.unwrap();
        assert_eq!(issue.comments.len(), 200);
        assert_eq!(issue.comments[0].text, "comment 5");
        assert_eq!(site.writer.list_comments(&ticket).await.unwrap().len(), 205);
    }
}

#[tokio::test]
async fn the_last_move_into_a_status_counts() {
    for site in start_sites().await {
        let ticket = site.ticket();
        let mut last = String::new();
        for status in ["Ready for Agent", "In Progress", "Ready for Agent", "Done"] {
            let id = site.jira.move_issue(&ticket.short(), status, "Mia").unwrap();
            if status == "Ready for Agent" {
                last = id;
            }
        }
        let found = site
            .reader
            .last_transition_to(&ticket, "Ready for Agent")
            .await
            .unwrap();
        assert_eq!(found.unwrap().id.0, last);
        assert_eq!(
            site.reader
                .last_transition_to(&ticket, "In Review")
                .await
                .unwrap(),
            None
        );
    }
}

#[tokio::test]
async fn issue_list_filters_by_status() {
    for site in start_sites().await {
        let [old, over, new] = [site.ticket(), site.ticket(), site.ticket()];
        site.jira.move_issue(&over.short(), "Done", "Mia").unwrap();
        site.jira.move_issue(&old.short(), "In Progress", "Mia").unwrap();
        let listed = async |status| -> Vec<(TicketKey, String)> {
            let listed = site.reader.list("ENG", status).await.unwrap();
            listed
                .into_iter()
                .map(|issue| (issue.key, issue.status))
                .collect()
        };
        let line = |ticket: &TicketKey, status: &str| (ticket.clone(), status.to_owned());
        let mut unfinished = listed(None).await;
        unfinished.sort();
        assert_eq!(unfinished, [line(&old, "In Progress"), line(&new, "To Do")]);
        assert_eq!(listed(Some("Done")).await, [line(&over, "Done")]);
        let wrong = site.reader.list("ENG", Some("Dnoe")).await;
        assert!(matches!(wrong, Err(Error::Rejected { .. })), "{wrong:?}");
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn changed_issues_are_listed_in_any_status() {
    for site in start_sites().await {
        let [open, over] = [site.ticket(), site.ticket()];
        site.jira.move_issue(&over.short(), "Done", "Mia").unwrap();
        let mut listed = site.reader.list_changed("ENG", 7).await.unwrap();
        listed.sort_by_key(|issue| issue.key.clone());
        let listed: Vec<_> = listed
            .into_iter()
            .map(|issue| (issue.key, issue.status))
            .collect();
        assert_eq!(listed, [(open, "To Do".to_owned()), (over, "Done".to_owned())]);
        assert!(site.reader.list_changed("OPS", 7).await.unwrap().is_empty());
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn id_leads_to_present_key() {
    for site in start_sites().await {
        let ticket = site.ticket();
        let found = site.reader.search_ready("ENG", "To Do").await.unwrap();
        let id = found.iter().find(|hit| hit.key == ticket).unwrap().id.unwrap();
        assert_eq!(site.reader.key_of(id).await.unwrap(), ticket);
        let moved = site.jira.move_to_project(&ticket.short(), "OPS", "Mia").unwrap();
        assert_eq!(
            site.reader.key_of(id).await.unwrap(),
            TicketKey::jira(&moved).unwrap()
        );
        let missing = site.reader.key_of(999_999).await;
        assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
    }
}

#[tokio::test]
async fn ready_search_reads_every_page() {
    for site in start_sites().await {
        for _ in 0..103 {
            let ticket = site.ticket();
            site.jira
                .move_issue(&ticket.short(), "Ready for Agent", "Mia")
                .unwrap();
        }
        site.ticket();
        let all = site.reader.search_ready("ENG", "Ready for Agent").await.unwrap();
        assert_eq!(all.len(), 103);
        assert!(all.iter().all(|stub| stub.status == "Ready for Agent"));
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn recent_changes_are_found_across_pages() {
    for site in start_sites().await {
        let ticket = site.ticket();
        for _ in 0..104 {
            site.ticket();
        }
        let changed = site.reader.changed_within("ENG", 2).await.unwrap();
        assert_eq!((changed.issues.len(), changed.is_complete), (105, true));
        assert_eq!(changed.issues[0].key, ticket);
        assert!(changed.issues[0].creator.is_some());
        assert!(
            site.reader
                .changed_within("OPS", 2)
                .await
                .unwrap()
                .issues
                .is_empty()
        );

        let key = ticket.short();
        for number in 0..130 {
            site.jira
                .comment_as(&key, "Mia", &format!("comment {number}"))
                .unwrap();
        }
        let all = site
            .reader
            .comments_since(&ticket, Timestamp::from_unix_ms(0))
            .await
            .unwrap();
        let texts: Vec<&str> = all.iter().map(|comment| comment.text.as_str()).collect();
        let expected: Vec<String> = (0..130).map(|number| format!("comment {number}")).collect();
        assert_eq!(texts, expected);
        let latest = all[129].created;
        let since = site.reader.comments_since(&ticket, latest).await.unwrap();
        assert!(!since.is_empty() && since.iter().all(|comment| comment.created >= latest));
        assert!(
            site.reader
                .comments_since(&ticket, latest.plus_ms(60_000))
                .await
                .unwrap()
                .is_empty()
        );

        let id = site.jira.edit_summary(&key, "Other words", "Mia").unwrap();
        site.jira.move_issue(&key, "Ready for Agent", "Mia").unwrap();
        let edits = site
            .reader
            .text_edits_since(&ticket, Timestamp::from_unix_ms(0))
            .await
            .unwrap();
        let edits: Vec<_> = edits.iter().map(|edit| edit.id.0.clone()).collect();
        assert_eq!(edits, [id]);
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn text_edit_includes_previous_text() {
    for site in start_sites().await {
        let ticket = site.ticket();
        let key = ticket.short();
        site.jira.edit_description(&key, "Other words", "Mia").unwrap();
        site.jira.edit_summary(&key, "Other title", "Mia").unwrap();
        let start = Timestamp::from_unix_ms(0);
        let edits = site.reader.text_edits_since(&ticket, start).await.unwrap();
        let before: Vec<_> = edits.into_iter().flat_map(|edit| edit.before).collect();
        assert_eq!(
            before,
            [
                (TextField::Description, "First.\n\nSecond.".to_owned()),
                (TextField::Summary, "Login fails".to_owned()),
            ]
        );

        let id = site.jira.comment_as(&key, "Mia", "harmless").unwrap();
        let read = async || {
            site.reader
                .comments_since(&ticket, start)
                .await
                .unwrap()
                .remove(0)
        };
        let first = read().await;
        assert_eq!(first.updated, first.created);
        let changed = poll_until("a later millisecond", Duration::from_secs(5), async || {
            site.jira.edit_comment_as(&key, &id, "Mia", "hostile").unwrap();
            let now = read().await;
            (now.updated > now.created).then_some(now)
        })
        .await
        .unwrap();
        assert_eq!(
            (changed.text.as_str(), changed.created),
            ("hostile", first.created)
        );
    }
}

#[tokio::test]
async fn projects_of_site_are_listed() {
    for site in start_sites().await {
        site.jira.create_project("ENG");
        site.jira.create_project("OPS");
        let listed = site.reader.projects().await.unwrap();
        assert_eq!(listed.keys, ["ENG", "OPS"]);
        assert!(!listed.has_more);
        assert_eq!(site.writer.projects().await.unwrap(), listed);
        for number in 0..60 {
            site.jira.create_project(&format!("P{number}"));
        }
        let listed = site.reader.projects().await.unwrap();
        assert!(listed.keys.len() == 50 && listed.has_more, "{listed:?}");
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn project_statuses_are_listed() {
    for site in start_sites().await {
        site.jira.create_project("ENG");
        let statuses = site.reader.project_statuses("ENG").await.unwrap();
        assert!(statuses.contains("Ready for Agent") && !statuses.contains("Ready for Nobody"));
        let missing = site.reader.project_statuses("NOPE").await.unwrap_err();
        assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
    }
}

#[tokio::test]
async fn quoted_status_cannot_inject_jql() {
    for site in start_sites().await {
        let found = site.reader.search_ready("ENG", "x\" OR project = \"OPS").await;
        let refused = found.unwrap_err();
        assert!(
            matches!(&refused, Error::Rejected { .. }) && refused.to_string().contains("does not exist"),
            "{refused}"
        );
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn comment_is_found_by_marker_and_updated() {
    for site in start_sites().await {
        let ticket = site.ticket();
        site.jira.comment_as(&ticket.short(), "Mia", "hello").unwrap();
        let markdown = "**Started** on `main`, see [the run](https://a.example/run).\n\n- one\n- two";
        let id = site
            .writer
            .comment(&ticket, markdown, "status:ENG-1")
            .await
            .unwrap();
        site.writer.update_comment(&ticket, &id, "Done.").await.unwrap();

        let comments = site.writer.list_comments(&ticket).await.unwrap();
        let ours: Vec<_> = comments.iter().filter(|comment| comment.by_us).collect();
        assert_eq!((ours.len(), comments.len()), (1, 2));
        assert_eq!(
            (&ours[0].id, ours[0].text.as_str(), ours[0].marker.as_str()),
            (&id, "Done.", "status:ENG-1")
        );
        site.writer.delete_comment(&ticket, &id).await.unwrap();
        let again = site.writer.delete_comment(&ticket, &id).await.unwrap_err();
        assert!(matches!(again, jira::Error::NotFound { .. }), "{again:?}");
        assert_eq!(site.jira.comments(&ticket.short()).len(), 1);
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn the_issue_moves_through_its_workflow() {
    for site in start_sites().await {
        let ticket = site.ticket();
        let transitions = site.writer.transitions(&ticket).await.unwrap();
        let done = transitions
            .iter()
            .find(|transition| transition.to.category == StatusCategory::Done)
            .unwrap();
        site.writer
            .transition(&ticket, &done.id, &Map::new())
            .await
            .unwrap();
        assert_eq!(site.writer.status(&ticket).await.unwrap().name, "Done");
        let refused = site
            .writer
            .transition(&ticket, "no-such", &Map::new())
            .await
            .unwrap_err();
        assert!(
            matches!(&refused, Error::Rejected { detail } if detail.contains("not valid")),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn transition_names_required_fields() {
    let named = |name: &str, to: &str, asks_for: &[&str]| JiraTransition {
        name: name.to_owned(),
        to: to.to_owned(),
        asks_for: asks_for.iter().map(|field| (*field).to_owned()).collect(),
    };
    for kind in [JiraKind::Cloud, JiraKind::DataCenter(10)] {
        let site = site_with(JiraOptions {
            kind,
            named: vec![
                named("Resolve", "Done", &["Resolution"]),
                named("Finish", "Done", &[]),
            ],
            ..JiraOptions::default()
        })
        .await;
        let ticket = site.ticket();
        let offered = site.writer.transitions(&ticket).await.unwrap();
        let seen: Vec<_> = offered
            .iter()
            .map(|transition| (transition.name.as_str(), transition.asks_for.as_slice()))
            .collect();
        assert_eq!(
            seen,
            [
                ("Resolve", ["Resolution".to_owned()].as_slice()),
                ("Finish", [].as_slice())
            ]
        );
        let refused = site
            .writer
            .transition(&ticket, &offered[0].id, &Map::new())
            .await
            .unwrap_err();
        assert!(
            matches!(&refused, Error::Rejected { detail } if detail.contains("Resolution is required")),
            "{refused}"
        );
        let filled = offered[0].fill(&BTreeMap::from([(
            "Resolution".to_owned(),
            "Won't Do".to_owned(),
        )]));
        site.writer
            .transition(&ticket, &offered[0].id, &filled.fields)
            .await
            .unwrap();
        assert_eq!(site.jira.status(&ticket.short()).as_deref(), Some("Done"));
        assert_eq!(site.jira.resolution(&ticket.short()).as_deref(), Some("Won't Do"));
    }
}

/// Builds nested lists of this depth.
fn nest_lists(levels: usize) -> serde_json::Value {
    let text = |words: &str| json!({"type": "paragraph", "content": [{"type": "text", "text": words}]});
    let lists = (0..levels).fold(text("innermost"), |inner, _| {
        json!({"type": "bulletList", "content": [{"type": "listItem", "content": [text("outer"), inner]}]})
    });
    json!({"version": 1, "type": "doc", "content": [lists]})
}

#[tokio::test]
async fn forty_levels_of_lists_are_readable() {
    let site = start_site().await;
    let ticket = site.ticket();
    let key = ticket.short();
    site.jira.set_description_document(&key, nest_lists(40)).unwrap();
    site.jira
        .comment_document_as(&key, "Mia", nest_lists(40))
        .unwrap();
    let issue = site.reader.issue(&ticket).await.unwrap();
    assert!(issue.description_markdown.contains("innermost"));
    assert!(issue.comments[0].text.contains("innermost"));
}

#[tokio::test]
async fn too_deep_text_hides_no_other_comment() {
    let site = start_site().await;
    let ticket = site.ticket();
    let key = ticket.short();
    site.jira.comment_as(&key, "Mia", "before").unwrap();
    site.jira
        .comment_document_as(&key, "Mia", nest_lists(100))
        .unwrap();
    site.jira.comment_as(&key, "Mia", "after").unwrap();
    let issue = site.reader.issue(&ticket).await.unwrap();
    let texts: Vec<_> = issue
        .comments
        .iter()
        .map(|comment| comment.text.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "before",
            "[This comment is nested too deeply to be read.]",
            "after"
        ]
    );
    site.jira.set_description_document(&key, nest_lists(100)).unwrap();
    let refused = site.reader.issue(&ticket).await.unwrap_err();
    assert!(matches!(refused, Error::TooDeep { .. }), "{refused}");
    assert!(!refused.is_retryable());
}

#[tokio::test]
async fn service_desk_comments_are_internal() {
    for kind in [JiraKind::Cloud, JiraKind::DataCenter(10)] {
        let site = site_with(JiraOptions {
            kind,
            service_projects: vec!["OPS".to_owned()],
            ..JiraOptions::default()
        })
        .await;
        let request = parse_ticket(
            &site
                .jira
                .create_issue("OPS", "It fails", "", "Service Request", &[]),
        );
        site.writer.comment(&request, "A note", "m1").await.unwrap();
        site.writer.comment(&request, "Another", "").await.unwrap();
        let shown = site
            .writer
            .comment_for(&request, "Hello", "m2", CommentAudience::Customers);
        shown.await.unwrap();
        let ordinary = site.ticket();
        site.writer.comment(&ordinary, "Status", "m3").await.unwrap();
        let sent = |path: &str| -> Vec<Value> {
            let posted = site
                .jira
                .requests()
                .into_iter()
                .filter(|request| request.method == "POST");
            let posted = posted.filter(|request| request.path.contains(path));
            posted
                .map(|request| request.body.unwrap()["properties"].clone())
                .collect()
        };
        let internal = || json!({"key": "sd.public.comment", "value": {"internal": true}});
        let marker = |id: &str| json!({"key": "journeyman", "value": {"id": id}});
        let path = format!("/issue/{}/comment", request.short());
        assert_eq!(
            sent(&path),
            [
                json!([marker("m1"), internal()]),
                json!([internal()]),
                json!([marker("m2")])
            ]
        );
        assert_eq!(
            sent(&format!("/issue/{}/comment", ordinary.short())),
            [json!([marker("m3")])]
        );
        let asked = site
            .jira
            .requests()
            .into_iter()
            .filter(|request| request.path.contains("fields=project"));
        assert_eq!(asked.count(), 2, "once for each project");
        let comments = site.writer.list_comments(&request).await.unwrap();
        let markers: Vec<&str> = comments.iter().map(|comment| comment.marker.as_str()).collect();
        assert_eq!(markers, ["m1", "", "m2"]);
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let site = start_site().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let target = format!("{}/rest/api/3/issue/ENG-1/comment", site.jira.url());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let answer = format!(
                "HTTP/1.1 307 Temporary Redirect\r\nlocation: {target}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let writer = JiraWriter::new(&build_settings(&url, "", "token")).unwrap();
    let refused = writer.comment(&parse_ticket("ENG-1"), "x", "").await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
    assert!(site.jira.requests().is_empty());
}

#[tokio::test]
async fn issue_is_assigned_and_unassigned() {
    for site in start_sites().await {
        let ticket = site.ticket();
        assert_eq!(site.writer.assignee(&ticket).await.unwrap(), None);
        let us = site.writer.account_at(&ticket).await.unwrap();
        site.writer.assign(&ticket, &us.id).await.unwrap();
        assert_eq!(site.writer.assignee(&ticket).await.unwrap(), Some(us));
        let unknown = site.writer.assign(&ticket, "557058:nobody").await;
        assert!(matches!(unknown, Err(Error::Rejected { .. })), "{unknown:?}");
        site.writer.unassign(&ticket).await.unwrap();
        assert_eq!(site.writer.assignee(&ticket).await.unwrap(), None);
    }
}

#[tokio::test]
async fn the_same_global_id_replaces_the_link() {
    for site in start_sites().await {
        let ticket = site.ticket();
        for title in ["Draft", "Ready"] {
            site.writer
                .remote_link(&ticket, "pr:acme/shop#7", "https://a.example/7", title)
                .await
                .unwrap();
        }
        let links = site.jira.remote_links(&ticket.short());
        assert_eq!(links.len(), 1);
        assert_eq!(links[0].title, "Ready");
    }
}

#[tokio::test]
async fn only_reads_are_retried() {
    for site in start_sites().await {
        let ticket = site.ticket();
        site.jira.fail_next(ServiceFault::new("/myself", 2, 502));
        site.writer.myself().await.unwrap();

        site.jira
            .fail_next(ServiceFault::new("/comment", 1, 502).on("POST").after_effect());
        let lost = site.writer.comment(&ticket, "once", "m").await.unwrap_err();
        assert!(matches!(lost, Error::Unknown { .. }), "{lost}");
        assert!(lost.is_retryable());
        assert_eq!(site.jira.comments(&ticket.short()).len(), 1);
    }
}

#[tokio::test]
async fn refusals_are_distinguished() {
    for site in start_sites().await {
        let ticket = site.ticket();
        site.jira.fail_next(ServiceFault::new("/remotelink", 1, 429));
        let limited = site
            .writer
            .remote_link(&ticket, "g", "https://a.example", "t")
            .await
            .unwrap_err();
        assert!(
            matches!(limited, Error::RateLimited { retry_after } if retry_after.as_secs() == 1),
            "{limited}"
        );

        let missing = site.reader.issue(&parse_ticket("ENG-999")).await.unwrap_err();
        assert!(matches!(missing, Error::NotFound { .. }), "{missing}");

        let account =
            |token| build_account_settings(site.kind, &site.jira.url(), stand_in::READER_EMAIL, token);
        let stranger = account("wrong-token-value");
        let refused = JiraReader::new(&stranger).unwrap().myself().await.unwrap_err();
        assert!(matches!(refused, Error::Unauthorized { .. }), "{refused}");
        assert!(!refused.is_retryable() && !format!("{refused:?}").contains("wrong-token-value"));

        let reader = account(stand_in::READER_API_TOKEN);
        let forbidden = JiraWriter::new(&reader)
            .unwrap()
            .comment(&ticket, "x", "")
            .await
            .unwrap_err();
        assert!(matches!(forbidden, Error::Forbidden { .. }), "{forbidden}");
    }
}

#[tokio::test]
async fn unconnected_jira_write_is_unavailable() {
    // No program listens on port 1.
    let writer = JiraWriter::new(&build_settings("http://127.0.0.1:1", "", "token")).unwrap();
    let failed = writer.comment(&parse_ticket("ENG-1"), "x", "").await.unwrap_err();
    assert!(matches!(failed, Error::Unavailable { .. }), "{failed}");
}

#[tokio::test]
async fn github_ticket_is_refused_before_sending() {
    for site in start_sites().await {
        let ticket: TicketKey = "github:acme/shop#7".parse().unwrap();
        assert!(matches!(
            site.reader.issue(&ticket).await,
            Err(Error::Rejected { .. })
        ));
        assert!(site.jira.requests().is_empty());
    }
}

#[tokio::test]
async fn jql_condition_matches_within_project() {
    for site in start_sites().await {
        let (one, other) = (site.ticket(), site.ticket());
        site.jira.set_labels(&one.short(), &["agent"]).unwrap();
        let condition = "labels = agent";
        let found = site.reader.matching("ENG", condition).await.unwrap();
        let keys: Vec<_> = found.into_iter().map(|stub| stub.key).collect();
        assert_eq!(keys, std::slice::from_ref(&one));
        assert!(site.reader.matches(&one, condition).await.unwrap());
        assert!(!site.reader.matches(&other, condition).await.unwrap());
        assert_eq!(site.jira.violations(), Vec::<String>::new());
        let wrong = site.reader.matches(&one, "labels ??").await.unwrap_err();
        assert!(matches!(wrong, Error::Rejected { .. }), "{wrong}");
    }
}

#[tokio::test]
async fn similar_issues_are_found_by_words() {
    for site in start_sites().await {
        let (one, over) = (site.ticket(), site.ticket());
        site.jira.move_issue(&over.short(), "Done", "Mia").unwrap();
        site.jira.create_issue("ENG", "Something else", "", "Bug", &[]);
        let words = ["login".to_owned(), "password".to_owned()];
        let similar = site.reader.similar("ENG", &words).await.unwrap();
        let keys: Vec<_> = similar.iter().map(|issue| issue.key.clone()).collect();
        assert_eq!(keys, std::slice::from_ref(&one));
        assert_eq!(similar[0].description_markdown, "", "it was not asked for");
        assert!(site.reader.similar("ENG", &[]).await.unwrap().is_empty());

        let mut outlines = site.reader.outlines(&[&over, &one]).await.unwrap();
        outlines.sort_by(|left, right| left.key.cmp(&right.key));
        let read: Vec<_> = outlines
            .iter()
            .map(|issue| (&issue.key, issue.description_markdown.as_str()))
            .collect();
        assert_eq!(read, [(&one, "First.\n\nSecond."), (&over, "First.\n\nSecond.")]);
        assert!(site.reader.outlines(&[]).await.unwrap().is_empty());
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn adding_labels_and_unassigning_is_idempotent() {
    for site in start_sites().await {
        let ticket = site.ticket();
        let key = ticket.short();
        site.jira.assign(&key, "agent").unwrap();
        assert!(site.jira.assignee(&key).is_some());
        for _ in 0..2 {
            let labels = ["bug".to_owned()];
            site.writer.add_labels(&ticket, &labels).await.unwrap();
            site.writer.unassign(&ticket).await.unwrap();
        }
        assert_eq!(site.jira.labels(&key), ["backend", "bug"]);
        assert_eq!(site.jira.assignee(&key), None);
        let spaced = site.writer.add_labels(&ticket, &["two words".to_owned()]).await;
        assert!(matches!(spaced, Err(Error::Rejected { .. })), "{spaced:?}");
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn groups_and_missing_permissions_are_read() {
    for site in start_sites().await {
        site.jira.create_project("ENG");
        site.jira.set_groups("Mia", &["developers"]);
        let ticket = site.ticket();
        site.jira
            .move_issue(&ticket.short(), "Ready for Agent", "Mia")
            .unwrap();
        let issue = site.reader.issue(&ticket).await.unwrap();
        let mia = issue.status_changes.last().unwrap().by.clone().unwrap();
        assert_eq!(site.reader.groups(&mia.id).await.unwrap(), ["developers"]);

        assert!(site.reader.permissions("ENG").await.unwrap().lacking.is_empty());
        assert!(site.writer.permissions("ENG").await.unwrap().lacking.is_empty());
        site.jira
            .withhold_permission(stand_in::READER_EMAIL, "USER_PICKER");
        site.jira
            .withhold_permission(stand_in::WRITER_EMAIL, "ASSIGN_ISSUES");
        let lacking = site.reader.permissions("ENG").await.unwrap().lacking;
        assert_eq!(
            lacking.iter().map(|one| one.key).collect::<Vec<_>>(),
            ["USER_PICKER"]
        );
        let lacking = site.writer.permissions("ENG").await.unwrap().lacking;
        assert_eq!(
            lacking.iter().map(|one| one.key).collect::<Vec<_>>(),
            ["ASSIGN_ISSUES"]
        );
        let email = site.reader.myself().await.unwrap();
        assert_ne!(email, site.writer.myself().await.unwrap());
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[test]
fn settings_name_the_key_that_is_wrong() {
    let check = |url: &str, token: &str| {
        build_settings(url, "", token)
            .check("jira_reader")
            .map_err(|(key, _)| key)
    };
    assert_eq!(check("jira.example", "t"), Err("jira_reader.base_url".to_owned()));
    assert_eq!(
        check("https://jira.example", " "),
        Err("jira_reader.api_token".to_owned())
    );
    assert_eq!(check("https://jira.example", "t"), Ok(()));
    assert_eq!(
        check("http://jira.example", "t"),
        Err("jira_reader.base_url".to_owned())
    );
    let mut insecure = build_settings("http://jira.example", "", "t");
    insecure.allow_insecure = true;
    assert_eq!(insecure.check("jira_reader"), Ok(()));
    let mut named = build_settings("https://jira.example", "ada@acme.example", "t");
    named.deployment = JiraDialect::DataCenter;
    let (key, problem) = named.check("jira_reader").unwrap_err();
    assert_eq!(key, "jira_reader.email");
    assert!(problem.contains("personal access token"), "{problem}");
}

#[tokio::test]
async fn unknown_priority_or_type_is_refused() {
    for site in start_sites().await {
        let ticket = site.ticket();
        let before = site.writer.sorted(&ticket).await.unwrap();
        assert_eq!(
            (before.priority.as_str(), before.issue_type.as_str()),
            ("Medium", "Bug")
        );
        site.writer.set_priority(&ticket, "High").await.unwrap();
        site.writer.set_issue_type(&ticket, "Story").await.unwrap();
        let after = site.writer.sorted(&ticket).await.unwrap();
        assert_eq!(
            (after.priority.as_str(), after.issue_type.as_str()),
            ("High", "Story")
        );
        let unknown = site.writer.set_priority(&ticket, "Sometime").await;
        assert!(
            matches!(&unknown, Err(Error::Rejected { detail }) if detail.contains("priority")),
            "{unknown:?}"
        );
        let nowhere = site.writer.set_issue_type(&parse_ticket("ENG-99"), "Story").await;
        assert!(matches!(nowhere, Err(Error::NotFound { .. })), "{nowhere:?}");
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn duplicate_link_is_idempotent_and_directed() {
    for site in start_sites().await {
        let (old, new) = (site.ticket(), site.ticket());
        let name = site.writer.link_type(&new, "duplicate").await.unwrap();
        assert_eq!(name.as_deref(), Some("Duplicate"), "as the site writes it");
        assert_eq!(site.writer.link_type(&new, "Clones").await.unwrap(), None);
        for _ in 0..2 {
            site.writer.link(&new, "Duplicate", &old.short()).await.unwrap();
        }
        let links = site.writer.sorted(&new).await.unwrap().links;
        assert_eq!(links, [(old.short(), "Duplicate".to_owned())]);
        let seen = site.reader.issue(&new).await.unwrap().related;
        assert_eq!(
            (seen[0].relation.as_str(), seen[0].key.clone()),
            ("duplicates", old.clone())
        );
        let nowhere = site.writer.link(&new, "Duplicate", "ENG-99").await;
        assert!(matches!(nowhere, Err(Error::NotFound { .. })), "{nowhere:?}");
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn field_values_are_read_by_display_name() {
    for site in start_sites().await {
        let ticket = site.ticket();
        site.jira.set_field(&ticket.short(), "Service", "Tax").unwrap();
        let wanted = ["service".to_owned(), "No such field".to_owned()];
        let found = site.reader.field_values(&ticket, &wanted).await.unwrap();
        assert_eq!(found, [("Service".to_owned(), "Tax".to_owned())]);
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn epic_of_a_field_is_read_once() {
    for site in start_sites().await {
        let (ticket, epic) = (site.ticket(), site.ticket());
        assert_eq!(site.reader.issue(&ticket).await.unwrap().epic, None);
        site.jira.set_epic(&ticket.short(), &epic.short()).unwrap();
        let issue = site.reader.issue(&ticket).await.unwrap();
        assert_eq!((issue.epic.as_ref(), issue.related.len()), (Some(&epic), 0));
        let requests = site.jira.requests();
        let listed = requests.iter().filter(|request| request.path.ends_with("/field"));
        assert_eq!(listed.count(), 1, "the fields of a site are cached");
        // The Cloud has the epic as the parent at the same time.
        site.jira
            .relate(&epic.short(), "Parent", &ticket.short())
            .unwrap();
        let issue = site.reader.issue(&ticket).await.unwrap();
        assert_eq!((issue.epic, issue.related.len()), (None, 1));
        assert_eq!(issue.related[0].relation, "parent");
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn invalid_epic_leaves_issue_readable() {
    for site in start_sites().await {
        let ticket = site.ticket();
        for epic in ["", "none", "ENG-1/../../x", "eng 1"] {
            site.jira.set_epic(&ticket.short(), epic).unwrap();
            let issue = site.reader.issue(&ticket).await.unwrap();
            assert_eq!(
                (issue.epic, issue.summary.as_str()),
                (None, "Login fails"),
                "{epic:?}"
            );
        }
    }
}

#[tokio::test]
async fn criteria_of_a_field_follow_the_description() {
    for site in start_sites().await {
        let ticket = site.ticket();
        let before = site.reader.issue(&ticket).await.unwrap();
        let criteria = "Empty carts cost 0\n\nDiscounts work";
        site.jira
            .write_field(&ticket.short(), "Acceptance Criteria", criteria, "Eve")
            .unwrap();
        // A new reader, because a reader caches the site's fields for an hour.
        let (email, token) = (stand_in::READER_EMAIL, stand_in::READER_API_TOKEN);
        let reader =
            JiraReader::new(&build_account_settings(site.kind, &site.jira.url(), email, token)).unwrap();
        let issue = reader.issue(&ticket).await.unwrap();
        let text = &issue.description_markdown;
        assert!(text.starts_with(before.description_markdown.trim_end()), "{text}");
        assert_eq!(
            domain::acceptance_criteria(text),
            ["Empty carts cost 0", "Discounts work"]
        );
        let edit = issue.text_edits.last().unwrap();
        assert_eq!(edit.by.as_ref().unwrap().display_name, "Eve");
        assert_eq!(edit.before, [(TextField::Criteria, String::new())]);
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn site_fields_for_criteria_are_found_by_name() {
    for site in start_sites().await {
        let ticket = site.ticket();
        for name in ["Acceptance Criteria", "Story acceptance criteria", "Team"] {
            site.jira.set_field(&ticket.short(), name, "x").unwrap();
        }
        let found = site.reader.criteria_fields().await.unwrap();
        assert_eq!(found.usual, ["Acceptance Criteria"]);
        assert_eq!(found.similar, ["Story acceptance criteria"]);
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn named_criteria_field_counts_like_usual_one() {
    for site in start_sites().await {
        let ticket = site.ticket();
        site.jira
            .write_field(
                &ticket.short(),
                "Proof of work",
                "Empty carts cost 0\n\nDiscounts work",
                "Eve",
            )
            .unwrap();
        let unnamed = site.reader.issue(&ticket).await.unwrap();
        assert!(!unnamed.description_markdown.contains("Discounts work"));
        // The names count at once, although the site's fields are cached.
        site.reader
            .name_criteria_fields(None, ["proof of work ", ""].into_iter());
        let issue = site.reader.issue(&ticket).await.unwrap();
        assert_eq!(
            domain::acceptance_criteria(&issue.description_markdown),
            ["Empty carts cost 0", "Discounts work"]
        );
        // An edit of the field is an edit of the ticket's text.
        assert_eq!(
            issue.text_edits.last().unwrap().before,
            [(TextField::Criteria, String::new())]
        );
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn groups_are_found_by_part_of_name() {
    for site in start_sites().await {
        site.jira.set_groups("mia", &["developers"]);
        let all = site.reader.find_groups("").await.unwrap();
        assert_eq!(all.names, ["developers", "journeyman-users"]);
        assert!(!all.has_more);
        let some = site.reader.find_groups("DEVEL").await.unwrap();
        assert_eq!(some.names, ["developers"]);
        assert!(site.reader.has_members("developers").await.unwrap());
        let missing = site.reader.has_members("nobody").await;
        assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn role_lists_accounts_and_groups() {
    for site in start_sites().await {
        site.jira.set_developers(&["Mia"], &["developers"]);
        let found = site.reader.role("ENG", "developers").await.unwrap().unwrap();
        assert_eq!(found.accounts.len(), 1);
        assert_eq!(found.groups, ["developers"]);
        assert_eq!(site.reader.role("ENG", "Nobody").await.unwrap(), None);
        assert_eq!(site.reader.role_names("ENG").await.unwrap(), ["Developers"]);
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn data_center_exchanges_wiki_markup() {
    let site = data_center().await;
    let ticket = site.ticket();
    let key = ticket.short();
    let markdown = "**Started** on `main`, see [the run](https://a.example/run).\n\n- one\n- [~ada]";
    site.writer.comment(&ticket, markdown, "m").await.unwrap();
    let written = &site.jira.comments(&key)[0].text;
    let wiki = "*Started* on {{main}}, see [the run|https://a.example/run].\n\n* one\n* \\[\\~ada\\]";
    assert_eq!(written, wiki);
    site.jira
        .comment_as(&key, "Mia", "h1. Plan\n\n# *one*\n{code:python}\nx\n{code}")
        .unwrap();
    let read = site.reader.issue(&ticket).await.unwrap().comments;
    assert_eq!(read[0].text, markdown);
    assert_eq!(read[1].text, "# Plan\n\n1. **one**\n\n```python\nx\n```");
    assert_eq!(
        (read[1].author_account_id.as_str(), read[1].by_bot),
        ("mia", false)
    );
    let requests = site.jira.requests();
    let of_the_interface = requests.iter().all(|request| {
        request.path.starts_with("/rest/api/2/") && request.authorization.starts_with("Bearer ")
    });
    assert!(of_the_interface, "{requests:#?}");
    assert_eq!(site.jira.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn data_center_update_keeps_comment_visibility() {
    let site = data_center().await;
    let ticket = site.ticket();
    let key = ticket.short();
    let id = site.writer.comment(&ticket, "first", "m").await.unwrap();
    site.writer.update_comment(&ticket, &id, "second").await.unwrap();
    assert!(site.jira.is_public(&key, &id.0));
    site.jira.restrict_comment(&key, &id.0, "Developers");
    site.writer.update_comment(&ticket, &id, "third").await.unwrap();
    assert_eq!(site.jira.comments(&key)[0].text, "third");
    assert!(!site.jira.is_public(&key, &id.0));
}

#[tokio::test]
async fn data_center_assignee_has_user_name() {
    let site = data_center().await;
    let ticket = site.ticket();
    let key = ticket.short();
    for to in ["Mia", "Agent Smith"] {
        site.jira.assign(&key, to).unwrap();
    }
    for _ in 0..2 {
        let issue = site.reader.issue(&ticket).await.unwrap();
        let given = issue.assignments.into_iter().filter_map(|one| Some(one.to?.id));
        assert_eq!(given.collect::<Vec<_>>(), ["mia", "agent-smith"]);
        assert_eq!(issue.assignee.unwrap().id, "agent-smith");
    }
    let requests = site.jira.requests();
    let asked = requests
        .iter()
        .filter(|request| request.path.contains("/user?key=JIRAUSER"));
    assert_eq!(asked.count(), 2, "each name is asked for once");
    assert_eq!(site.jira.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn each_jira_refuses_the_other_dialect() {
    let (cloud, there) = (start_site().await, data_center().await);
    let token = stand_in::READER_API_TOKEN;
    let wrong = [
        build_settings(&there.jira.url(), stand_in::READER_EMAIL, token),
        build_settings(&there.jira.url(), "", token),
        build_account_settings(JiraKind::DataCenter(10), &cloud.jira.url(), "", token),
    ];
    for settings in wrong {
        let refused = JiraReader::new(&settings).unwrap().myself().await.unwrap_err();
        let is_refused = matches!(refused, Error::Unauthorized { .. } | Error::NotFound { .. });
        assert!(is_refused, "{settings:?}: {refused}");
    }
}

#[tokio::test]
async fn anonymous_request_reads_kind_of_site() {
    for (kind, dialect, signs, shown) in [
        (JiraKind::Cloud, JiraDialect::Cloud, true, "Jira Cloud"),
        (
            JiraKind::DataCenter(10),
            JiraDialect::DataCenter,
            true,
            "Jira Data Center 10.3.0",
        ),
        (
            JiraKind::DataCenter(9),
            JiraDialect::DataCenter,
            false,
            "Jira Data Center 9.3.0",
        ),
    ] {
        let site = site_with(JiraOptions {
            kind,
            ..JiraOptions::default()
        })
        .await;
        let asked = build_settings(&site.jira.url(), "ada@acme.example", "secret");
        let found = hook::fetch_site(&asked).await.unwrap();
        assert_eq!((found.dialect, found.signs_webhooks()), (dialect, signs));
        assert_eq!(found.to_string(), shown);
        assert_eq!(site.jira.requests()[0].authorization, "");
    }
}

#[tokio::test]
async fn repeated_registration_updates_same_webhook() {
    for site in start_sites().await {
        let admin = build_account_settings(
            site.kind,
            &site.jira.url(),
            stand_in::ADMIN_EMAIL,
            stand_in::ADMIN_API_TOKEN,
        );
        let webhook = hook::WebhookRegistration {
            url: "https://jm.example/webhooks/jira",
            secret: "s",
            projects: &["ENG".to_owned()],
        };
        assert!(hook::register_webhook(&admin, &webhook).await.unwrap());
        assert!(!hook::register_webhook(&admin, &webhook).await.unwrap());
        let filter = match site.kind {
            JiraKind::Cloud => "project in (\"ENG\")",
            JiraKind::DataCenter(_) => "",
        };
        let registered = (webhook.url.to_owned(), filter.to_owned());
        assert_eq!(site.jira.registered_webhooks(), [registered]);
        let writer = build_account_settings(
            site.kind,
            &site.jira.url(),
            stand_in::WRITER_EMAIL,
            stand_in::WRITER_API_TOKEN,
        );
        let (call, refused) = hook::register_webhook(&writer, &webhook).await.unwrap_err();
        assert!(matches!(refused, Error::Forbidden { .. }), "{call}: {refused}");
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn attachment_is_read_with_all_bytes_within_limit() {
    for site in start_sites().await {
        let key = site
            .jira
            .create_issue("ENG", "Crash", "See the file.", "Bug", &[]);
        // Bytes that are no text must arrive unchanged.
        let bytes = [&b"\x89PNG\r\n\xff\xfe\x00\xed\xa0\x80"[..], &[7; 100]].concat();
        site.jira.attach(&key, "my shot.png", &bytes, "Ada").unwrap();
        let ticket = parse_ticket(&key);
        let listed = site.reader.issue(&ticket).await.unwrap().attachments;
        assert_eq!(site.reader.attachments(&ticket).await.unwrap(), listed);
        let [file] = listed.as_slice() else {
            panic!("{listed:?}")
        };
        assert_eq!(
            (file.name.as_str(), file.size_bytes),
            ("my shot.png", bytes.len() as u64)
        );
        let read = async |most: usize| site.reader.attachment(&ticket, file, most).await.unwrap();
        assert_eq!(
            read(bytes.len()).await.as_deref(),
            Some(bytes.as_slice()),
            "{:?}",
            site.kind
        );
        assert_eq!(read(bytes.len() - 1).await, None, "{:?}", site.kind);
        assert_eq!(site.jira.violations(), Vec::<String>::new());
    }
}
