//! Tools of the model at a real executor.

use domain::{CallId, Fact, StopReason, ToolStatus};
use serde_json::json;
use testkit::{ScriptStep, fixture};

use crate::{complete_ticket, only_pull_request, start_default_world};

#[tokio::test(flavor = "multi_thread")]
async fn reads_of_one_reply_keep_journal_order() {
    let world = start_default_world().await;
    let mut script = fixture::build_shop_script();
    script[1] = ScriptStep::call("read_file", json!({"path": "README.md"}))
        .and_call("list_directory", json!({"path": "shop"}))
        .and_call("read_file", json!({"path": "missing.py"}))
        .and_call("read_file", json!({"path": "shop/cart.py"}))
        .expecting("FAILED");
    world.model.set_script("", script);
    let key = world.ask().unwrap();
    let run = world.run(&key, 0).await.unwrap();
    let (journal, reason) = world.finished(&run).await.unwrap();
    assert_eq!(reason, StopReason::Completed);

    let (mut open, mut ran): (Option<CallId>, Vec<(String, ToolStatus)>) = (None, Vec::new());
    for entry in &journal {
        if let Fact::ToolRequested { id, call, .. } = &entry.fact {
            assert_eq!(open, None, "one call is open at a time");
            open = Some(id.clone());
            ran.push((call.name.clone(), ToolStatus::Interrupted));
        }
        if let Fact::ToolFinished { id, result } = &entry.fact {
            assert_eq!(open.take().as_ref(), Some(id));
            ran.last_mut().unwrap().1 = result.status;
        }
    }
    let at = ran.iter().position(|(name, _)| name == "list_directory").unwrap();
    let wanted = [
        ("read_file", ToolStatus::Ok),
        ("list_directory", ToolStatus::Ok),
        ("read_file", ToolStatus::Error),
        ("read_file", ToolStatus::Ok),
    ];
    let wanted = wanted.map(|(name, status)| (name.to_owned(), status));
    assert_eq!(ran[at - 1..at + 3], wanted);
    only_pull_request(&world);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn file_keeps_its_encoding_through_edits() {
    let world = start_default_world().await;
    let mut script = vec![
        ScriptStep::call(
            "run_command",
            json!({"command": r"printf '# Caf\351\nprice = 5\n' > price.txt"}),
        )
        .expecting("ignores the quantity"),
        ScriptStep::call("read_file", json!({"path": "price.txt"})),
        ScriptStep::call(
            "write_file",
            json!({"path": "price.txt", "content": "# Caf\u{e9}\nprice = 7\n"}),
        )
        .expecting("windows-1252, detected"),
        ScriptStep::call(
            "edit_file",
            json!({"path": "price.txt", "old_string": "price = 5", "new_string": "price = 7"}),
        )
        .expecting("would change its encoding"),
        ScriptStep::call(
            "run_command",
            json!({"command": "od -An -c price.txt; rm price.txt"}),
        )
        .expecting("Edited price.txt"),
    ];
    let mut work = fixture::build_shop_script();
    // The octal form of the byte that Latin-1 has for the letter.
    work[0].expect = Some("351".to_owned());
    script.append(&mut work);
    world.model.set_script("", script);
    complete_ticket(&world).await;
    only_pull_request(&world);
    world.stop().await.unwrap();
}
