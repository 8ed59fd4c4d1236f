//! Numbers in texts for people.

/// Formats a number with separators: `28,061`.
pub fn group_digits(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", group_digits(number / 1_000), number % 1_000),
    }
}

/// Formats a number with its noun: `1 file`, `2,000 files`.
pub fn format_count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", group_digits(number)),
    }
}

/// Formats a number of times: `once`, `twice`, `3 times`.
pub fn format_times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format_count(number, "time"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_with_plural_nouns() {
        let texts = [0, 1, 2, 999, 1_000, 2_028_061].map(|number| format_count(number, "line"));
        assert_eq!(
            texts,
            [
                "0 lines",
                "1 line",
                "2 lines",
                "999 lines",
                "1,000 lines",
                "2,028,061 lines"
            ]
        );
        assert_eq!([1, 2, 3].map(format_times), ["once", "twice", "3 times"]);
    }
}
