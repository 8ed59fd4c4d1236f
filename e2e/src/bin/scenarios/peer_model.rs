//! Model for other agents: the bench's ticket of 50 turns as calls of a shell, in the dialect of `OpenAI`.
//!
//! `scripts/peers/` measures other agents with it, so that they meet the same stand-in as Journeyman. It prints
//! its address as one line of JSON and serves until standard input ends.

use std::process::ExitCode;

use anyhow::ensure;
use clap::Args;
use serde_json::json;
use testkit::{ScriptStep, ScriptedModel, model::MODEL_API_KEY};
use tokio::io::{AsyncReadExt as _, stdin};

use crate::{bench::COMMAND, output::print_line};

/// Turns of a ticket, as in the bench.
const TURNS: usize = 50;

/// Serves the bench's ticket as a scripted model until standard input ends.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Name of the other agent's shell tool; its argument is `command`
    #[arg(long, default_value = "bash")]
    tool: String,
    /// Command by which the other agent ends a ticket
    #[arg(long)]
    end: String,
}

/// Plays the scenario.
pub(crate) async fn run_scenario(Arguments { tool, end }: Arguments) -> anyhow::Result<ExitCode> {
    let model = ScriptedModel::start(build_script(&tool, &end)).await?;
    model.set_recording(false);
    let address = json!({"url": format!("{}/v1", model.url()), "key": MODEL_API_KEY, "turns": TURNS});
    print_line(&address.to_string());
    stdin().read_to_end(&mut Vec::new()).await?;
    let violations = model.violations();
    ensure!(violations.is_empty(), "broken protocol: {violations:#?}");
    model.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// Builds the commands of the bench's ticket: reads, the edit, the commit with its push, and the end.
fn build_script(tool: &str, end: &str) -> Vec<ScriptStep> {
    let last = [
        "sed -i 's/line.price for line/line.price * line.quantity for line/' shop/cart.py".to_owned(),
        "git add --all && git commit --quiet --message 'Count every piece' && git push --quiet origin HEAD"
            .to_owned(),
        end.to_owned(),
    ];
    let reads = (0..TURNS - last.len()).map(|number| format!("{COMMAND} # {number}"));
    reads
        .chain(last)
        .map(|command| ScriptStep::call(tool, json!({ "command": command })))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_has_turns_of_bench_and_ends() {
        let script = build_script("bash", "echo END");
        assert_eq!(script.len(), TURNS);
        let last = script.last().unwrap();
        assert_eq!(last.calls, [("bash".to_owned(), json!({"command": "echo END"}))]);
    }
}
