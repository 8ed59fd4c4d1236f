//! Statistics for small numbers of instances.

// Two-sided 95 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Wilson's 95 % interval of a share in `n` independent instances; 0 to 1 for `n` = 0.
pub(crate) fn compute_wilson_interval(share: f64, n: f64) -> (f64, f64) {
    if n <= 0.0 {
        return (0.0, 1.0);
    }
    let square = Z * Z;
    let centre = share + square / (2.0 * n);
    let spread = Z * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt();
    let whole = 1.0 + square / n;
    (
        // Rounding may exceed the range of a share.
        ((centre - spread) / whole).max(0.0),
        ((centre + spread) / whole).min(1.0),
    )
}

/// `McNemar`'s exact two-sided test: probability of a split at least as uneven when neither side is better. `better`
/// and `worse` count the pairs that differ.
pub(crate) fn compute_mcnemar_probability(better: u32, worse: u32) -> f64 {
    let n = better.saturating_add(worse);
    let fewer = better.min(worse);
    // Each binomial probability follows from the previous one. The sum of logarithms avoids an underflow for large
    // `n`.
    let mut log = f64::from(n) * 0.5_f64.ln();
    let mut tail = 0.0;
    for k in 0..=fewer {
        tail += log.exp();
        log += (f64::from(n - k) / f64::from(k + 1)).ln();
    }
    // At an even split both tails contain the middle, so their sum exceeds 1.
    (2.0 * tail).min(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_close(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-4
    }

    #[test]
    fn intervals_are_those_of_the_literature() {
        // Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        for (k, n, low, high) in [
            (81.0, 263.0, 0.2553, 0.3662),
            (15.0, 148.0, 0.0624, 0.1605),
            (0.0, 20.0, 0.0, 0.1611),
            (1.0, 29.0, 0.0061, 0.1718),
        ] {
            let (found_low, found_high) = compute_wilson_interval(k / n, n);
            assert!(
                is_close(found_low, low) && is_close(found_high, high),
                "{k}/{n}: {found_low} {found_high}"
            );
        }
        assert_eq!(compute_wilson_interval(0.0, 0.0), (0.0, 1.0));
    }

    #[test]
    fn one_sided_pairs_have_low_probability() {
        assert!(is_close(compute_mcnemar_probability(0, 0), 1.0));
        assert!(
            is_close(compute_mcnemar_probability(5, 0), 0.0625)
                && is_close(compute_mcnemar_probability(0, 5), 0.0625)
        );
        assert!(is_close(compute_mcnemar_probability(10, 2), 0.0386));
        assert!(is_close(compute_mcnemar_probability(3, 3), 1.0));
    }

    proptest! {
        #[test]
        fn interval_contains_share_and_probability_stays_valid(k in 0u32..2000, more in 0u32..2000) {
            let n = f64::from(k + more);
            let share = if n > 0.0 { f64::from(k) / n } else { 0.5 };
            let (low, high) = compute_wilson_interval(share, n);
            prop_assert!(0.0 <= low && low <= share + 1e-9 && share <= high + 1e-9 && high <= 1.0);
            let p = compute_mcnemar_probability(k, more);
            prop_assert!((0.0..=1.0).contains(&p), "{}", p);
        }
    }
}
