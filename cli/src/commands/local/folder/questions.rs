//! Questions of a run to the user at the terminal: numbered options and a prompt, on standard error.

use std::io::BufRead;

use domain::{ChangePlan, CommitId, DecisionVerdict, TicketQuestion};

use super::super::{print_error, print_prompt, prompt};
use crate::timeline;

/// Question of a run to its user.
#[derive(Debug)]
pub(super) enum UserQuestion {
    /// Questions of the model.
    Questions(Vec<TicketQuestion>),
    /// Approval of the change up to a head, with its difference.
    Change(CommitId, String),
    /// Approval of a plan by its id.
    Plan(CommitId, Box<ChangePlan>),
}

/// Answer of the user.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UserAnswer {
    /// Answers to the questions of the model, as one comment.
    Comment(String),
    /// Decision about the change up to a head, or about a plan by its id, with the requested changes.
    Decision(CommitId, DecisionVerdict, String),
}

impl UserQuestion {
    /// Asks the user; `None` without a terminal or at the end of the input.
    pub(super) async fn ask(&self) -> anyhow::Result<Option<UserAnswer>> {
        if !prompt::can_ask() {
            return Ok(None);
        }
        match self {
            Self::Questions(questions) => ask_questions(questions).await,
            Self::Change(head, diff) => {
                print_error(diff);
                ask_decision("change", head).await
            }
            Self::Plan(id, plan) => {
                print_error(&timeline::render_plan(plan));
                ask_decision("plan", id).await
            }
        }
    }

    /// Lines about the question for a user who cannot answer it here.
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Self::Questions(questions) => questions.iter().flat_map(render_question).collect(),
            Self::Change(..) => vec!["the change needs your approval".to_owned()],
            Self::Plan(_, plan) => vec![format!("the plan needs your approval: {}", plan.goal)],
        }
    }
}

fn render_question(question: &TicketQuestion) -> Vec<String> {
    let options = (1..).zip(&question.options);
    let options = options.map(|(number, option)| format!("  {number}. {option}"));
    [format!("question: {}", question.text)]
        .into_iter()
        .chain(options)
        .collect()
}

async fn ask_questions(questions: &[TicketQuestion]) -> anyhow::Result<Option<UserAnswer>> {
    let mut answers = Vec::new();
    for question in questions {
        print_lines(&render_question(question));
        let wanted = if question.options.is_empty() {
            "answer"
        } else {
            "answer, or the number of an option"
        };
        let Some(line) = ask_line(wanted).await? else {
            return Ok(None);
        };
        let answer = prompt::resolve_numbered_option(&line, &question.options);
        answers.push(format!("{}\n{answer}", question.text));
    }
    Ok(Some(UserAnswer::Comment(answers.join("\n\n"))))
}

async fn ask_decision(what: &str, head: &CommitId) -> anyhow::Result<Option<UserAnswer>> {
    let decide = |verdict, feedback| UserAnswer::Decision(head.clone(), verdict, feedback);
    print_error(&format!("question: do you approve this {what}?"));
    for option in ["  1. yes", "  2. no", "  3. yes, after changes"] {
        print_error(option);
    }
    loop {
        let Some(line) = ask_line("number, or what to do differently").await? else {
            return Ok(None);
        };
        match parse_decision(&line) {
            Some(DecisionVerdict::Revise) => {
                let feedback = ask_line("what to do differently").await?;
                return Ok(feedback.map(|feedback| decide(DecisionVerdict::Revise, feedback)));
            }
            Some(verdict @ (DecisionVerdict::Approve | DecisionVerdict::Reject)) => {
                return Ok(Some(decide(verdict, String::new())));
            }
            // A mistyped number is not a request for a change.
            None if line.parse::<i64>().is_ok() => print_error(&format!("there is no option {line}")),
            None => return Ok(Some(decide(DecisionVerdict::Revise, line))),
        }
    }
}

/// Verdict of a number or word; `None` for a text, which describes the changes.
fn parse_decision(line: &str) -> Option<DecisionVerdict> {
    match line.to_lowercase().as_str() {
        "1" | "yes" | "y" => Some(DecisionVerdict::Approve),
        "2" | "no" | "n" => Some(DecisionVerdict::Reject),
        "3" => Some(DecisionVerdict::Revise),
        _ => None,
    }
}

fn print_lines(lines: &[String]) {
    lines.iter().for_each(|line| print_error(line));
}

/// Line with a text from the user; `None` at the end of the input. An empty line repeats the prompt, because neither an
/// answer nor an approval may be empty.
///
/// The reading thread may outlive the work: it ends with the process.
async fn ask_line(wanted: &str) -> anyhow::Result<Option<String>> {
    loop {
        print_prompt(&format!("{wanted} > "));
        let read = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            let bytes = std::io::stdin().lock().read_line(&mut line)?;
            Ok::<_, std::io::Error>((bytes > 0).then(|| line.trim().to_owned()))
        });
        match read.await?? {
            Some(line) if line.is_empty() => {}
            // Ctrl-D leaves the cursor behind the prompt.
            None => {
                print_error("");
                return Ok(None);
            }
            answer => return Ok(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_question(options: &[&str]) -> TicketQuestion {
        TicketQuestion {
            text: "Gross or net?".to_owned(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
        }
    }

    #[test]
    fn number_selects_option_and_text_stays() {
        let options = build_question(&["Gross.", "Net."]).options;
        assert_eq!(prompt::resolve_numbered_option("2", &options), "Net.");
        for text in ["0", "3", "both", "-1"] {
            assert_eq!(prompt::resolve_numbered_option(text, &options), text);
        }
    }

    #[test]
    fn questions_have_numbered_options() {
        let asked = UserQuestion::Questions(vec![build_question(&["Gross.", "Net."]), build_question(&[])]);
        assert_eq!(
            asked.lines(),
            [
                "question: Gross or net?",
                "  1. Gross.",
                "  2. Net.",
                "question: Gross or net?"
            ]
        );
    }

    #[test]
    fn decision_is_number_word_or_request() {
        for (line, verdict) in [
            ("1", Some(DecisionVerdict::Approve)),
            ("Yes", Some(DecisionVerdict::Approve)),
            ("2", Some(DecisionVerdict::Reject)),
            ("n", Some(DecisionVerdict::Reject)),
            ("3", Some(DecisionVerdict::Revise)),
            ("4", None),
            ("count free pieces", None),
        ] {
            assert_eq!(parse_decision(line), verdict, "{line}");
        }
    }
}
