//! Wording of problems with a review that the model submits.

use crate::run::ArgumentProblem;

/// Renders a problem with a comment of a review.
pub(super) fn render_review_problem(wrong: &ArgumentProblem) -> String {
    match wrong {
        ArgumentProblem::NotAdded(path, line) => format!(
            "{path}:{line} is no line that the pull request adds, or none that is new since your last review of it. Comment on \
             such lines only, those that begin with + in the diff; say the rest in the summary, or leave it out"
        ),
        ArgumentProblem::Range => {
            "start_line must be above line, at most 20 lines in all; leave it out for a comment on one line".to_owned()
        }
        ArgumentProblem::Suggestion => {
            "suggestion must be the code that replaces exactly the commented lines, at most 2000 characters and without code \
             fences; leave it out when these lines alone cannot say it"
                .to_owned()
        }
        ArgumentProblem::Verdicts(missing) => append_points(
            "`criteria` needs one entry with a verdict for each of these points of the ticket:",
            missing,
        ),
        _ => "Each objection needs the path of a file of the diff, a trigger (the input or situation that shows it) and a reason, \
              of 5 to 1000 characters each. Leave out what is about other files."
            .to_owned(),
    }
}

/// Renders a text with the points of a ticket below it.
pub(super) fn append_points(words: &str, points: &[String]) -> String {
    let points: Vec<String> = points.iter().map(|point| format!("\n- {point}")).collect();
    format!("{words}\n{}", points.concat())
}
