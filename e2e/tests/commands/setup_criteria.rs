//! `journeyman setup jira` at a site with a field for acceptance criteria.

use std::fs;

use crate::{setup::build_setup_environment, stage::Stage, terminal::at_terminal_with};

const COMMAND: [&str; 2] = ["setup", "jira"];
const FIELD: &str = "Story acceptance criteria";

/// Starts the stand-ins at a site with these custom fields.
async fn start_stage(fields: &[&str]) -> Stage {
    let stage = Stage::start("").await;
    let key = stage.file_ticket();
    for field in fields {
        stage
            .jira
            .write_field(&key, field, "Empty carts cost 0", "Rita")
            .unwrap();
    }
    stage
}

fn read_rules(stage: &Stage) -> String {
    fs::read_to_string(stage.path().join("configs/shop.yaml")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_criteria_field_is_in_rules() {
    let stage = start_stage(&["Story Points", FIELD]).await;
    let environment = build_setup_environment(&stage, &[]);
    let before = read_rules(&stage);
    let question = "Read acceptance criteria from the field Story acceptance criteria?";
    let refused = at_terminal_with(&COMMAND, &[(question, "n")], &environment, stage.path()).await;
    assert_eq!(refused.code, Some(0), "{refused:?}");
    let alone = stage.run(&COMMAND, &environment).await;
    assert_eq!(alone.code, Some(0), "{alone:?}");
    for part in [
        "criteria \"Story acceptance criteria\" may have acceptance criteria",
        "name the field in the rules: jira.criteria_field",
    ] {
        assert!(alone.out.contains(part), "{part}: {}", alone.out);
    }
    assert_eq!(read_rules(&stage), before);

    let accepted = at_terminal_with(&COMMAND, &[(question, "y")], &environment, stage.path()).await;
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    assert!(
        accepted
            .out
            .contains("criteria Story acceptance criteria is named in "),
        "{}",
        accepted.out
    );
    let after = read_rules(&stage);
    assert_eq!(
        after,
        before.replace(
            "{project_key",
            &format!("{{criteria_field: \"{FIELD}\", project_key")
        )
    );
    let again = stage.run(&COMMAND, &environment).await;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(!again.out.contains("acceptance criteria"), "{}", again.out);
    assert_eq!(read_rules(&stage), after);
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_criteria_fields_is_chosen() {
    let stage = start_stage(&[FIELD, "Acceptance criteria (QA)"]).await;
    let environment = build_setup_environment(&stage, &[]);
    let question = "Field with acceptance criteria, name or number";
    let steps = [
        (question, "3\r"),
        ("is not one of these fields", ""),
        (question, "2\r"),
    ];
    let ran = at_terminal_with(&COMMAND, &steps, &environment, stage.path()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rules = read_rules(&stage);
    assert!(
        rules.contains("criteria_field: \"Acceptance criteria (QA)\""),
        "{rules}"
    );
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn usual_criteria_field_needs_no_rule() {
    let stage = start_stage(&[FIELD, "Acceptance Criteria"]).await;
    let before = read_rules(&stage);
    let ran = stage.run(&COMMAND, &build_setup_environment(&stage, &[])).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.out
            .contains("criteria Acceptance Criteria is read with every ticket"),
        "{}",
        ran.out
    );
    assert_eq!(read_rules(&stage), before);
    stage.assert_kept_protocols();
}
