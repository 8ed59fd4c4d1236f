//! Tests of the rate limits of Jira and GitHub, which replicas share.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use domain::{
    OutboundOutcome, OutboundReceipt, TicketKey,
    limits::{LimitClass, LimitGate, LimitObservation, LimitedRequest},
};
use github::GatePolicy;
use lease::SharedLimits;
use testkit::{
    FakeGitHub, FakeJira, GitHubOptions, JiraOptions, RedisServer, ServiceFault, github as hub, jira as site,
};

use crate::{
    build_work_started,
    rig::{Rig, RigOptions},
};

const JIRA: LimitedRequest<'static> = LimitedRequest {
    account: "jira:writer:default",
    resource: "rest",
    pace: None,
};

/// Builds the view of the limits of one replica.
async fn open_replica_limits(redis: &RedisServer) -> SharedLimits {
    let limits = SharedLimits::open(&lease::Settings {
        url: redis.url(),
        ..lease::Settings::default()
    })
    .unwrap();
    limits.ping().await.unwrap();
    limits
}

#[tokio::test(flavor = "multi_thread")]
async fn secondary_limit_of_github_stops_all_writers() {
    let redis = RedisServer::start().await.unwrap();
    let forge = FakeGitHub::start(GitHubOptions::default()).await.unwrap();
    forge.create_repository("acme/shop", &[("a.txt", "a\n")]).unwrap();
    forge.commit("acme/shop", "x", "x", &[("b.txt", "b\n")]).unwrap();
    let number = forge
        .open_pull_request_as("acme/shop", "ann", "x", "Totals", "")
        .unwrap();
    let settings = github::Settings {
        api_url: forge.api_url(),
        git_url: forge.git_url(),
        app_id: Some(hub::WRITER_APP_ID),
        private_key: Some(hub::APP_PRIVATE_KEY.into()),
        ..github::Settings::default()
    };
    let writer = async || {
        let gated = GatePolicy::by(Arc::new(open_replica_limits(&redis).await));
        github::GitHubWriter::with_instances(Some(&settings), &BTreeMap::new(), Some(&gated)).unwrap()
    };
    let (first, second) = (writer().await, writer().await);
    let shop = "acme/shop".parse().unwrap();
    second.comments().comment(&shop, number, "before").await.unwrap();
    forge.fail_next(ServiceFault::new("/comments", 1, 403).on("POST").retry_after(60));
    let refused = first
        .comments()
        .comment(&shop, number, "refused")
        .await
        .unwrap_err();
    assert!(matches!(refused, github::Error::RateLimited { .. }), "{refused}");
    let sent = forge.requests().len();
    let held_back = second
        .comments()
        .comment(&shop, number, "held back")
        .await
        .unwrap_err();
    assert!(
        matches!(held_back, github::Error::HeldBack { retry_after } if retry_after.as_secs() > 30),
        "{held_back}"
    );
    assert!(second.issues().is_issue_open(&shop, number).await.is_err());
    assert_eq!(forge.requests().len(), sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_jira_account_stops_all_replicas() {
    let redis = RedisServer::start().await.unwrap();
    let jira = FakeJira::start(JiraOptions::default()).await.unwrap();
    let key = TicketKey::jira(&jira.create_issue("ENG", "Totals", "", "Bug", &[])).unwrap();
    let settings = jira::Settings {
        base_url: jira.url(),
        email: site::WRITER_EMAIL.to_owned(),
        api_token: site::WRITER_API_TOKEN.into(),
        ..jira::Settings::default()
    };
    let writer = async || {
        let gate: Arc<dyn LimitGate> = Arc::new(open_replica_limits(&redis).await);
        jira::JiraWriter::with_instances(Some(&settings), &BTreeMap::new(), Some(&gate)).unwrap()
    };
    let (first, second) = (writer().await, writer().await);
    jira.fail_next(ServiceFault::new("/comment", 1, 429).on("POST").retry_after(60));
    assert!(first.comment(&key, "refused", "").await.is_err());
    let sent = jira.requests().len();
    let held_back = second.comment(&key, "held back", "").await.unwrap_err();
    assert!(matches!(held_back, jira::Error::HeldBack { .. }), "{held_back}");
    assert_eq!(jira.requests().len(), sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn reporter_waits_out_shared_jira_limit() {
    let redis = RedisServer::start().await.unwrap();
    let other = open_replica_limits(&redis).await;
    let mut rig = Rig::start_with(RigOptions {
        redis: Some(redis.url()),
        ..RigOptions::default()
    })
    .await;
    let wait = Duration::from_secs(3);
    let observation = LimitObservation {
        quota: None,
        refused: Some((LimitClass::Primary, wait)),
    };
    other.observe(JIRA, observation).await;
    let report = rig.report(2, build_work_started());
    rig.queue.reports().append(&report).await.unwrap();
    let mut looks = 0;
    loop {
        let sent = rig.jira.requests().len();
        if other.admit(JIRA).await.is_ok() {
            break;
        }
        assert_eq!(sent, 0, "{:?}", rig.jira.requests());
        looks += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(looks > 0);
    assert_eq!(
        rig.settled(&report).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    assert_eq!(rig.jira.comments("ENG-1").len(), 1);
    rig.stop().await;
}
