//! `journeyman setup kubernetes` with an overlay and with values for Helm.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use crate::{
    setup::{OF_GITHUB, build_setup_environment},
    stage::Stage,
};

/// Texts of all files below a folder, with their paths.
fn read_files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(read_files(&path))
        } else {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()))
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_kubernetes_writes_complete_overlay() {
    let stage = Stage::start("").await;
    let environment = build_setup_environment(&stage, &[]);
    let own = "[planner]\nslots = 3\n[jira.dc]\nbase_url = \"https://jira.corp.example\"\ndeployment = \
               \"data-center\"\nreader = { api_token = \"reader-of-dc\" }\nwriter = { api_token = \"writer-of-dc\" }\n\
               [ingest.webhook_secrets.jira]\ndc = [\"signature-of-dc\"]\n";
    fs::write(stage.path().join("journeyman.toml"), own).unwrap();
    let target = [
        "--namespace",
        "jm",
        "--registry",
        "registry.acme.example",
        "--tag",
        "1.2",
    ];
    let overlay = ["setup", "kubernetes", "--overlay", "my-cluster"];
    let here = ["setup", "kubernetes", "--overlay", "."];
    let ran = stage.run(&here, &environment).await;
    assert!(
        ran.code == Some(1) && ran.err.contains("journeyman.toml is there already"),
        "{ran:?}"
    );
    assert_eq!(
        fs::read_to_string(stage.path().join("journeyman.toml")).unwrap(),
        own
    );
    assert!(!stage.path().join("secrets.yaml").exists());
    let command = [&overlay[..], &target].concat();
    let ran = stage.run(&command, &environment).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for line in [
        "overlay  my-cluster: kubectl apply -k my-cluster",
        "jira     dc at https://jira.corp.example",
        "rules    1 repository",
        "left     planner.slots: add those that the cluster needs to its settings",
    ] {
        assert!(ran.out.lines().any(|found| found == line), "{line}: {}", ran.out);
    }
    let folder = stage.path().join("my-cluster");
    let secrets = [
        testkit::jira::READER_API_TOKEN,
        testkit::jira::WRITER_API_TOKEN,
        testkit::model::MODEL_API_KEY,
        "reader-of-dc",
        "writer-of-dc",
        "signature-of-dc",
    ];
    for (path, text) in read_files(&folder) {
        let is_private = path.ends_with("/secrets.yaml");
        for secret in secrets {
            assert_eq!(text.contains(secret), is_private, "{path}");
        }
        // The base below k8s/ keeps its placeholders, which the overlay replaces.
        let is_of_base = path.contains("/k8s/");
        assert!(is_of_base || !text.contains("replace with"), "{path}: {text}");
    }
    let mode = fs::metadata(folder.join("secrets.yaml"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let settings = fs::read_to_string(folder.join("journeyman.toml")).unwrap();
    for part in [
        format!("app_id = {}\n", testkit::github::READER_APP_ID),
        format!("base_url = \"{}\"\n", stage.jira.url()),
        "name = \"scripted-model\"\n".to_owned(),
        "jira_trigger_group = \"journeyman-users\"\n".to_owned(),
        "[jira.dc]\nbase_url = \"https://jira.corp.example\"\n".to_owned(),
    ] {
        assert!(settings.contains(&part), "{part}: {settings}");
    }
    let kustomization = fs::read_to_string(folder.join("kustomization.yaml")).unwrap();
    assert!(
        kustomization.contains("/run/secrets/journeyman/jira.dc.writer-api-token"),
        "{kustomization}"
    );
    let again = stage.run(&command, &environment).await;
    assert!(
        again.code == Some(1) && again.err.contains("my-cluster/secrets.yaml is there already"),
        "{again:?}"
    );

    let values = [
        "setup",
        "--data",
        "second",
        "kubernetes",
        "--values",
        "values.yaml",
    ];
    let command = [&values[..], &target].concat();
    let ran = stage.run(&command, &environment).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let next =
        "values   values.yaml: helm install journeyman charts/journeyman --namespace jm --values values.yaml";
    assert!(ran.out.lines().any(|found| found == next), "{}", ran.out);
    assert!(stage.path().join("journeyman-secrets.yaml").exists());
    let text = fs::read_to_string(stage.path().join("values.yaml")).unwrap();
    assert!(
        text.contains("  registry: \"registry.acme.example\"\n  tag: \"1.2\"\n")
            && text.contains("\n  \"shop.yaml\": |2\n"),
        "{text}"
    );
    for secret in secrets {
        assert!(!text.contains(secret), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_setup_makes_no_deployment() {
    let stage = Stage::start("").await;
    let command = ["setup", "kubernetes", "--overlay", "my-cluster"];
    for (forgotten, remedy) in [
        (&OF_GITHUB[..], "run `journeyman setup github` first"),
        (&["MODEL__NAME"][..], "run `journeyman setup model` first"),
        (
            &["INGEST__JIRA_TRIGGER_GROUP"][..],
            "run `journeyman setup jira --requesters GROUP` first",
        ),
    ] {
        let environment = build_setup_environment(&stage, forgotten);
        let ran = stage.run(&command, &environment).await;
        assert!(
            ran.code == Some(1) && ran.err.contains(remedy),
            "{remedy}: {ran:?}"
        );
        assert!(!stage.path().join("my-cluster").exists());
        assert!(!stage.path().join(".journeyman/secrets").exists());
    }
}
