//! What the model is told beside the results of its calls.

use domain::{Hint, Repetition, RepetitionKind};

/// A hint in words.
pub(super) fn hint(hint: &Hint) -> String {
    match hint {
        Hint::Repeating(repetition) => repeating(repetition),
    }
}

fn repeating(repetition: &Repetition) -> String {
    let Repetition { kind, turns, tools } = repetition;
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
    };
    format!(
        "{what} Repeating them brings nothing new, and the work is ended if it goes on. Use what the results say, and do \
         something else: another file, another command, another approach; or end the work."
    )
}
