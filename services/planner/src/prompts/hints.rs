//! Wording of hints for the model between its calls.

use domain::{ModelHint, RepetitionKind, RunLimits, TurnRepetition};

/// Renders a hint for the model.
pub(super) fn render_hint(hint: &ModelHint) -> String {
    match hint {
        ModelHint::Repeating(repetition) => render_repetition(repetition),
        ModelHint::Budget { used, turns, left } => render_budget(*used, *turns, left),
    }
}

fn render_budget(used: u8, turns: u32, left: &RunLimits) -> String {
    let mut parts = vec![format!("{turns} turns")];
    parts.extend(left.cost_usd.map(|cost| cost.to_string()));
    parts.extend(left.tokens.map(|tokens| format!("{tokens} tokens")));
    parts.extend(left.minutes.map(|minutes| format!("{minutes} minutes")));
    let advice = match used {
        ..80 => "",
        80..95 => {
            " Stop exploring: finish the change, prove it with the repository's checks, and call finish."
        }
        95.. => {
            " From now on only the tools that end the work are accepted: finish with what there is and say what is not done, ask, \
             or give up."
        }
    };
    format!(
        "{used} % of what this work may take is used. Left: {}.{advice}",
        parts.join(", ")
    )
}

fn render_repetition(repetition: &TurnRepetition) -> String {
    let TurnRepetition { kind, turns, tools } = repetition;
    let tools = tools.join(", ");
    let what = match kind {
        RepetitionKind::Same => format!(
            "The last {turns} turns made the same calls ({tools}) and got the same results, and no file changed in between."
        ),
        RepetitionKind::Alternating => format!(
            "The last {turns} turns went back and forth: the same calls ({tools}) with the same results, and the files are what \
             they were before."
        ),
        RepetitionKind::Malformed => {
            format!("In the last {turns} turns no tool could take the calls ({tools}).")
        }
        RepetitionKind::Truncated => {
            format!("The last {turns} replies reached the token limit and called no tool.")
        }
        RepetitionKind::Summaries => {
            format!("The last {turns} turns filled the conversation again, and no file changed in them.")
        }
    };
    format!(
        "{what} Repeating them brings nothing new, and the work is ended if it goes on. Use what the results say, and do \
         something else: another file, another command, another approach; or end the work."
    )
}
