//! Tests of the ledger's stored formats: rows of earlier releases stay readable. Lines are added and never changed.

use domain::{StoredRecord, record_format};
use serde_json::Value;

use crate::{
    board::StatusBoard,
    ledger::EffectRecord,
    receipt::{EffectReceipt, EffectReceipts, WrittenComment},
};

const ROWS: [&str; 28] = [
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":null}"#,
    r#"{"version":1,"intent_at":null,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"pushed":"0123456789abcdef0123456789abcdef01234567","pull_request":{"repository":"acme/shop","number":7,"url":"https://github.example/acme/shop/pull/7","branch":"feat/ENG-12-cart"}}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":2,"receipt":{"comment":"10001"}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"shown":{"head":"0123456789abcdef0123456789abcdef01234567","diff":{"sha256":"00","size_bytes":9},"files":1,"excerpt":"+1","hidden_lines":0,"hidden_files":[]}}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"changed":{"files":[{"path":"a.rs","patch":"+1"},{"path":"b.png"}],"total":3}}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"check_run":77}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"linked":"ENG-5","left":[{"wish":{"type":{"name":"Bug"}},"why":"suggested"},{"wish":{"priority":{"name":"High"}},"why":{"refused":{"detail":"no"}}},{"wish":{"project":{"owner":"acme","number":3}},"why":"no_token"},{"wish":{"field":{"name":"Size","value":"S"}},"why":"no_field"},{"wish":{"field":{"name":"Size","value":"S"}},"why":"no_value"},{"wish":{"link":{"to":"ENG-5"}},"why":{"no_link_type":{"name":"Clones"}}},{"wish":{"type":{"name":"Bug"}},"why":{"has":{"current":"Task"}}}]}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"pushed":"0123456789abcdef0123456789abcdef01234567"}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"threads":[[0,"DC_kwDO1"]]}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"begun":"implement"}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"pull_request":{"repository":"acme/shop","number":7,"url":"https://github.example/acme/shop/pull/7","branch":"feat/ENG-12-cart"}}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"moved":{"to":"In Review"}}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"moved":{"unavailable":{"wanted":"Done","status":"Open","reachable":["To Do"]}}}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"moved":{"refused":{"wanted":"Done","detail":"no","asks_for":["Points"]}}}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"awaited":".github/workflows/ci.yml"}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"issues":[{"id":41,"number":8,"url":"https://github.example/acme/shop/issues/8","title":"Count"}]}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"rerun":"started"}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"rerun":"before"}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"rerun":{"refused":{"detail":"no"}}}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"unlinked":"no"}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"linked":"ENG-5"}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"left":[{"wish":{"type":{"name":"Bug"}},"why":"suggested"}]}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"pushed_diff":{"sha256":"00","size_bytes":9}}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"pushed":"0123456789abcdef0123456789abcdef01234567","pushed_diff":{"sha256":"00","size_bytes":9}}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"patterns":[{"subject":"commit_message","operator":"regex","pattern":"^ENG-"},{"subject":"branch_name","operator":"starts_with","pattern":"tmp/","negate":true}]}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"approvals":{"required":2,"given":1,"by_owners":true,"requested":["rita"]}}}"#,
    r#"{"version":1,"intent_at":1000,"fence":{"epoch":1,"sequence":5,"delivered":2},"attempts":1,"receipt":{"not_possible":{"cause":"locked","detail":"Unable to create comment because issue is locked."}}}"#,
];
const BOARDS: [&str; 5] = [
    r#"{"version":1,"fence":{"epoch":1,"sequence":5,"delivered":2},"entries":[{"report":"jira:ENG-12@57:9","at":1000,"run":"jira:ENG-12@57","text":"Journeyman started."}],"started_at":1000,"unmoved":null,"is_shown":true,"watched":[{"marker":"m","due":9000}]}"#,
    r#"{"version":1,"fence":{"epoch":1,"sequence":5,"delivered":2},"entries":[{"report":"jira:ENG-12@57:9","at":1000,"run":"jira:ENG-12@57","text":"Journeyman started."}],"started_at":1000,"unmoved":null,"is_shown":true,"watched":[{"marker":"m","due":9000}]}"#,
    r#"{"version":1,"fence":{"epoch":1,"sequence":5,"delivered":2},"entries":[],"started_at":1000,"unmoved":null,"lasting":{"done":"d","changed":"c"},"is_shown":true,"watched":[]}"#,
    r#"{"version":1,"fence":{"epoch":1,"sequence":5,"delivered":2},"entries":[{"report":"jira:ENG-12@57:9","at":1000,"run":"jira:ENG-12@57","text":"It failed.","mark":"failed"}],"started_at":1000,"unmoved":null,"standing":{"at":1000,"job":"implement","phase":"work","cost":0.42},"rounds":{"rows":[{"run":"jira:ENG-12@57","job":"implement","commit":"0123456789abcdef0123456789abcdef01234567","checked":"passed","failures":1,"cost":0.42,"noted":9}],"dropped":0,"branch":"feat/ENG-12-cart","number":7,"failed":["model_failed",1000],"check_run":["0123456789abcdef0123456789abcdef01234567",77]},"is_shown":true,"watched":[]}"#,
    r#"{"version":1,"fence":{"epoch":1,"sequence":5,"delivered":2},"entries":[],"started_at":1000,"unmoved":null,"is_shown":true,"watched":[{"marker":"m","on":{"repository":"acme/shop","number":7},"due":9000},{"marker":"n","on":{"repository":"acme/shop","number":7},"refused":{"cause":"locked","detail":"Unable to create comment because issue is locked."},"due":9000}]}"#,
];

fn assert_round_trip<T: StoredRecord>(lines: &[&str]) {
    for line in lines {
        let record: T = record_format::decode_stored_record(line.as_bytes())
            .unwrap_or_else(|error| panic!("{error}: {line}"));
        let written = record_format::encode_stored_record(&record).unwrap();
        assert_eq!(*line, String::from_utf8(written).unwrap());
    }
}

#[test]
fn ledger_rows_round_trip_unchanged() {
    assert_round_trip::<EffectRecord>(&ROWS);
    assert_round_trip::<StatusBoard>(&BOARDS);
}

fn decode_receipt(receipt: &str) -> Result<Option<EffectReceipts>, record_format::RecordError> {
    let row = ROWS[1].replace("{}", receipt);
    let record: Result<EffectRecord, _> = record_format::decode_stored_record(row.as_bytes());
    record.map(|record| record.receipt)
}

#[test]
fn every_receipt_has_golden_row() {
    let rows = ROWS.map(|row| serde_json::from_str::<Value>(row).unwrap());
    for name in EffectReceipt::NAMES {
        let mut receipts = rows.iter().filter_map(|row| row["receipt"].as_object());
        assert!(
            receipts.any(|receipt| receipt.len() == 1 && receipt.contains_key(*name)),
            "{name}"
        );
    }
}

#[test]
fn receipt_of_newer_release_is_ignored() {
    let comment = WrittenComment("10001".to_owned());
    let newer = r#"{"later":{"a":[1]},"comment":"10001"}"#;
    assert_eq!(decode_receipt(newer), Ok(Some(comment.into())));
    assert_eq!(
        decode_receipt(r#"{"later":1}"#),
        Ok(Some(EffectReceipts::default()))
    );
}

#[test]
fn broken_receipt_makes_row_unreadable() {
    for broken in [r#"{"comment":7}"#, r#"{"pushed":"HEAD"}"#, "[]", "7"] {
        let read = decode_receipt(broken);
        assert!(
            matches!(read, Err(record_format::RecordError::Broken(_))),
            "{broken}: {read:?}"
        );
    }
}
