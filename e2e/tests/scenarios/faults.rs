//! A small schedule of faults, played to its end: nothing is lost or doubled.

use std::{process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::lock_machine;

// Time limit far above the duration, for loaded machines. The program also limits itself.
const PATIENCE: Duration = Duration::from_secs(600);
/// Time in which it ends the processes that it started.
const END: Duration = Duration::from_secs(20);

fn start_faults(arguments: &[&str]) -> Child {
    Command::new(e2e::find_binary("scenarios").unwrap())
        .arg("faults")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Returns the output and the success. After the time limit the program gets SIGTERM, so that it ends its
/// processes.
async fn await_faults_end(child: Child) -> (String, bool) {
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let mut output = Box::pin(child.wait_with_output());
    let output = match tokio::time::timeout(PATIENCE, &mut output).await {
        Ok(output) => output,
        Err(_) => {
            let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
            tokio::time::timeout(END, output).await.expect("it does not end")
        }
    };
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.success())
}

#[tokio::test]
async fn twenty_tickets_finish_under_faults() {
    let _machine = lock_machine().await;
    let (text, is_good) = await_faults_end(start_faults(&["--tickets", "20", "--seed", "7"])).await;
    assert!(is_good, "{text}");
    for line in ["tickets 20 done 20 ", "strikes 9: ", "losses 0", "duplicates 0"] {
        assert!(text.lines().any(|said| said.starts_with(line)), "{line}: {text}");
    }
}

#[tokio::test]
async fn plan_prints_repeatable_schedule() {
    let plan = ["--plan", "--seed", "7", "--tickets", "20"];
    let (first, is_good) = await_faults_end(start_faults(&plan)).await;
    assert!(is_good && first.contains("kill planner"), "{first}");
    assert_eq!(await_faults_end(start_faults(&plan)).await.0, first);
}
