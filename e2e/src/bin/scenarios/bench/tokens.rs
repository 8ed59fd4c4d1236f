//! Token cost of a long conversation, and the savings of caching and clearing.

use domain::{Fact, JournalEntry, TokenUsage};
use e2e::{Options, TestWorld};
use serde_json::json;
use testkit::{ScriptStep, fixture};

use crate::bench::{
    measure::print_figure,
    tickets::create_scripted_ticket,
    waiting::{no_change, wait_for_end},
};

const TURNS: usize = 50;
// 8 kB in every turn add up to about 130,000 tokens in 50 turns.
const READ: &str = "head -c 8000 notes.txt";
/// Context size from which the planner clears old tool results.
const ROOM: u64 = 40_000;
/// Anthropic's prices of cache reads and cache writes relative to uncached input tokens.
const READ_PRICE: f64 = 0.1;
const WRITE_PRICE: f64 = 1.25;

/// Prints the tokens of a run of 50 turns that each read a file, with a large and with a small context.
pub(crate) async fn measure_tokens() -> anyhow::Result<()> {
    let whole = sum_token_usage(&play_token_run(1_000_000).await?);
    let short = sum_token_usage(&play_token_run(ROOM).await?);
    let input = whole.input_tokens as f64;
    print_figure("floor_tokens_50_turns_input", input / 1000.0, "thousand");
    print_figure(
        "tokens_50_turns_cached",
        compute_percent(whole.cache_read_tokens as f64, input),
        "percent",
    );
    print_figure(
        "tokens_50_turns_saved_by_caching",
        compute_percent(input - compute_token_price(&whole), input),
        "percent",
    );
    print_figure(
        "tokens_50_turns_input_cleared",
        short.input_tokens as f64 / 1000.0,
        "thousand",
    );
    print_figure(
        "tokens_50_turns_saved_by_both",
        compute_percent(input - compute_token_price(&short), input),
        "percent",
    );
    Ok(())
}

/// Returns the price in uncached input tokens.
fn compute_token_price(usage: &TokenUsage) -> f64 {
    let (read, written) = (usage.cache_read_tokens, usage.cache_write_tokens);
    let plain = usage.input_tokens.saturating_sub(read + written);
    plain as f64 + read as f64 * READ_PRICE + written as f64 * WRITE_PRICE
}

fn compute_percent(part: f64, of: f64) -> f64 {
    100.0 * part / of.max(1.0)
}

async fn play_token_run(room: u64) -> anyhow::Result<Vec<JournalEntry>> {
    let options = Options {
        settings: vec![("PLANNER__CONTEXT_TOKENS", room.to_string())],
        ..Options::default()
    };
    let world = Box::pin(TestWorld::start(options)).await?;
    let key = create_scripted_ticket(&world, "tokens", |_| build_token_script());
    world.ask_for_work(&key)?;
    let journal = wait_for_end(&world, &key, no_change).await?;
    world.stop().await?;
    Ok(journal)
}

fn build_token_script() -> Vec<ScriptStep> {
    let write = "seq -w 1 2000 > notes.txt";
    let mut steps = vec![ScriptStep::call("run_command", json!({"command": write}))];
    let read = |number| ScriptStep::call("run_command", json!({"command": format!("{READ} # {number}")}));
    steps.extend((2..TURNS - 1).map(read));
    // The run ends without a change, so the file must be gone.
    let undo = json!({"command": "rm notes.txt"});
    steps.push(ScriptStep::call("run_command", undo));
    steps.push(fixture::nothing_to_do());
    steps
}

/// Sums the tokens of the work. Intake and review are separate facts and do not count.
fn sum_token_usage(journal: &[JournalEntry]) -> TokenUsage {
    let mut sum = TokenUsage::default();
    for entry in journal {
        if let Fact::ModelReplied { reply, .. } = &entry.fact {
            let usage = &reply.usage;
            sum.input_tokens += usage.input_tokens;
            sum.output_tokens += usage.output_tokens;
            sum.cache_read_tokens += usage.cache_read_tokens;
            sum.cache_write_tokens += usage.cache_write_tokens;
        }
    }
    sum
}
