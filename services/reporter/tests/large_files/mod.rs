//! Tests of Git LFS at the git gate.

use reporter::LfsSettings;
use serde_json::Value;
use testkit::github::LfsFault;

use crate::rig::{Rig, RigOptions};

const ATTRIBUTES: (&str, &str) = (".gitattributes", "*.psd filter=lfs -text\n");
const RULES: &str = "repository: {lfs: read}\n";

/// Commits files to main.
fn commit(rig: &Rig, files: &[(&str, &str)]) -> String {
    rig.github
        .commit("acme/shop", "main", "Add files", files)
        .unwrap()
}

async fn get(rig: &Rig, grant: &str, path: &str) -> (u16, String) {
    let url = format!("{}/lfs/{path}", rig.gate_url());
    let answer = reqwest::Client::new().get(url).bearer_auth(grant);
    let answer = answer.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// Requests the contents of a commit after a clone, as an executor does.
async fn list(rig: &Rig, commit: &str) -> Value {
    rig.clone().await;
    let (status, text) = get(rig, &rig.grant_for("acme/shop"), commit).await;
    assert_eq!(status, 200, "{text}");
    for secret in ["Authorization", "ghp_", "signature"] {
        assert!(!text.contains(secret), "{text}");
    }
    serde_json::from_str(&text).unwrap()
}

fn reasons(listing: &Value) -> Vec<String> {
    let left_out = listing["left_out"].as_array().unwrap().iter();
    let mut reasons: Vec<String> = left_out
        .map(|left| left["reason"].as_str().unwrap().to_owned())
        .collect();
    reasons.sort();
    reasons
}

#[tokio::test(flavor = "multi_thread")]
async fn verified_contents_are_served_with_grant() {
    let mut rig = Rig::start_with(RigOptions {
        agent: RULES,
        lfs: LfsSettings {
            max_file_mib: 1,
            ..LfsSettings::default()
        },
        ..RigOptions::default()
    })
    .await;
    let store = |content: &[u8], fault| rig.github.store_faulty_lfs("acme/shop", content, fault);
    let good = store(b"\0good", None);
    let missing = store(b"missing", Some(LfsFault::Missing));
    let wrong = store(b"wrong", Some(LfsFault::WrongBytes));
    let long = store(b"long", Some(LfsFault::TooLong));
    let short = store(b"short", Some(LfsFault::TooShort));
    let large = store(&vec![7; 1024 * 1024 + 1], None);
    let commit = commit(
        &rig,
        &[
            ATTRIBUTES,
            ("good.psd", &good),
            ("copy.psd", &good),
            ("missing.psd", &missing),
            ("wrong.psd", &wrong),
            ("long.psd", &long),
            ("short.psd", &short),
            ("large.psd", &large),
            // Attributes do not give it to Git LFS.
            ("note.txt", &missing),
        ],
    );
    let listing = list(&rig, &commit).await;
    let contents = listing["contents"].as_array().unwrap();
    assert_eq!(
        (contents.len(), &contents[0]["size"]),
        (1, &5.into()),
        "{listing}"
    );
    let found = reasons(&listing);
    for words in [
        "does not have it (404)",
        "more than 1 MiB",
        "SHA-256 is not",
        "ended after 2 of 5 bytes",
        "more than the 4 bytes",
    ] {
        assert!(
            found.iter().any(|reason| reason.contains(words)),
            "{words}: {found:?}"
        );
    }
    assert_eq!(found.len(), 5, "{found:?}");
    let oid = contents[0]["oid"].as_str().unwrap();
    let content = get(&rig, &rig.grant_for("acme/shop"), &format!("{commit}/{oid}")).await;
    assert_eq!(content, (200, "\0good".to_owned()));
    // A content of another commit, or of none, is not served, nor is one without the grant.
    let nothing = "0".repeat(64);
    let own = rig.grant_for("acme/shop");
    for (grant, path, expected) in [
        (own.as_str(), format!("{commit}/{nothing}"), 404),
        (own.as_str(), format!("{commit}/..%2Fgood"), 404),
        ("garbage", format!("{commit}/{oid}"), 401),
        (
            rig.grant_for("acme/other").as_str(),
            format!("{commit}/{oid}"),
            403,
        ),
    ] {
        assert_eq!(get(&rig, grant, &path).await.0, expected, "{path}");
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_content_is_not_downloaded_again() {
    let mut rig = Rig::start_with(RigOptions {
        agent: RULES,
        ..RigOptions::default()
    })
    .await;
    let pointer = rig.github.store_lfs("acme/shop", b"content");
    let first = commit(&rig, &[ATTRIBUTES, ("a.psd", &pointer)]);
    list(&rig, &first).await;
    let second = commit(&rig, &[("b.psd", &pointer)]);
    // The gate fetches the second commit with the next request for branches.
    let listing = testkit::poll_until(
        "the second commit",
        std::time::Duration::from_secs(20),
        async || {
            let grant = rig.grant_for("acme/shop");
            let header = format!("http.extraHeader=Authorization: Bearer {grant}");
            crate::run_git(&["-c", &header, "ls-remote", &rig.gate_url()]).await;
            let (status, text) = get(&rig, &grant, &second).await;
            (status == 200).then_some(text)
        },
    );
    let listing: Value = serde_json::from_str(&listing.await.unwrap()).unwrap();
    assert_eq!(listing["contents"].as_array().unwrap().len(), 1, "{listing}");
    assert_eq!(rig.github.count_lfs_downloads(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_and_addresses_can_refuse_contents() {
    let mut rig = Rig::start().await;
    let pointer = rig.github.store_lfs("acme/shop", b"content");
    let head = commit(&rig, &[ATTRIBUTES, ("a.psd", &pointer)]);
    rig.clone().await;
    let (status, text) = get(&rig, &rig.grant_for("acme/shop"), &head).await;
    assert_eq!(status, 403);
    assert!(text.contains("repository.lfs"), "{text}");
    rig.stop().await;
    let mut rig = Rig::start_with(RigOptions {
        agent: RULES,
        ..RigOptions::default()
    })
    .await;
    let pointer = rig.github.store_lfs("acme/shop", b"content");
    // Nothing listens on the discard port; a request to it would fail in another way.
    rig.github.move_lfs_store("http://127.0.0.1:9");
    let head = commit(&rig, &[ATTRIBUTES, ("a.psd", &pointer)]);
    let found = reasons(&list(&rig, &head).await);
    assert!(
        found.len() == 1 && found[0].contains("it is not public"),
        "{found:?}"
    );
    rig.stop().await;
}
