//! Causes of errors. The text of an error is one sentence without its causes; the code that shows it to a
//! person adds them.

use std::error::Error;

/// The source of another error. Converts from text, too.
pub type ErrorCause = Box<dyn Error + Send + Sync>;

/// Returns an error with its causes, outermost first, without repetition: `cannot connect: dns error: no such
/// host`.
pub fn format_error_chain(error: &(dyn Error + 'static)) -> String {
    with_causes(&error.to_string(), error.source())
}

/// Returns the causes behind `text`, which replaces the text of the outermost error.
pub fn with_causes(text: &str, mut cause: Option<&(dyn Error + 'static)>) -> String {
    let mut chain = text.to_owned();
    while let Some(error) = cause {
        let words = error.to_string();
        // Errors of other crates often repeat their cause in their own text.
        if !chain.contains(&words) {
            chain = format!("{chain}: {words}");
        }
        cause = error.source();
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Step {
        text: &'static str,
        source: Option<ErrorCause>,
    }

    fn build_step(text: &'static str, source: impl Into<ErrorCause>) -> Step {
        Step {
            text,
            source: Some(source.into()),
        }
    }

    #[test]
    fn error_chain_lists_causes_in_order() {
        let error = build_step("not stored", build_step("cannot connect", "no such host"));
        assert_eq!(
            format_error_chain(&error),
            "not stored: cannot connect: no such host"
        );
    }

    #[test]
    fn error_chain_omits_repeated_causes() {
        let error = build_step("cannot connect: no such host", "no such host");
        assert_eq!(format_error_chain(&error), "cannot connect: no such host");
        let outer = std::io::Error::other(std::io::Error::other("no such host"));
        assert_eq!(
            with_causes("cannot connect", Some(&outer)),
            "cannot connect: no such host"
        );
    }

    #[test]
    fn error_chain_without_cause_is_unchanged() {
        assert_eq!(
            format_error_chain(&std::io::Error::other("the disk is full")),
            "the disk is full"
        );
    }
}
