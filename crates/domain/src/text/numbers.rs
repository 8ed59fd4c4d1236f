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

/// Formats milliseconds: `1.5 s`, `3 min 4 s`, `2 h 5 min`, `1 d 1 h`.
pub fn format_duration(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ 0..10 => format!("{seconds}.{} s", ms % 1_000 / 100),
        seconds => format_seconds(seconds),
    }
}

/// Formats seconds: `4 s`, `3 min 4 s`, `2 h 5 min`, `1 d 1 h`.
pub fn format_seconds(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
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

    #[test]
    fn durations_have_two_largest_units() {
        let texts = [340, 1_540, 59_999, 125_000, 7_500_000, 90_000_000].map(format_duration);
        assert_eq!(
            texts,
            ["0.3 s", "1.5 s", "59 s", "2 min 5 s", "2 h 5 min", "1 d 1 h"]
        );
    }
}
