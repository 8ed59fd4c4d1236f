//! Samples, quantiles and output lines.

use std::{future::Future, time::Duration};

use crate::output::print_line;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Figures that were printed so far, for the pages. One list for the process, as there is one output.
static PRINTED: Mutex<Vec<MeasuredFigure>> = Mutex::new(Vec::new());

/// Printed figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MeasuredFigure {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
}

/// Returns all figures that were printed so far, in order.
pub(crate) fn list_printed_figures() -> Vec<MeasuredFigure> {
    PRINTED.lock().clone()
}

/// Prints a figure with three significant digits.
pub(crate) fn print_figure(name: &str, value: f64, unit: &str) {
    print_line(&format!("bench {name} {} {unit}", format_value(value)));
    PRINTED.lock().push(MeasuredFigure {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
    });
}

/// Formats a value with three significant digits.
pub(crate) fn format_value(value: f64) -> String {
    let digits = match value.abs() {
        0.0..1.0 => 3,
        1.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

/// Durations of repeated operations.
#[derive(Default)]
pub(crate) struct DurationSamples(Vec<Duration>);

impl DurationSamples {
    /// Times `count` sequential operations. The first failure ends the series.
    pub(crate) async fn sequential<Fut: Future<Output = anyhow::Result<()>>>(
        count: usize,
        mut operation: impl FnMut(usize) -> Fut,
    ) -> anyhow::Result<Self> {
        let mut samples = Self::default();
        for number in 0..count {
            let start = Instant::now();
            operation(number).await?;
            samples.add(start.elapsed());
        }
        Ok(samples)
    }

    pub(crate) fn add(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(crate) fn median(&self) -> Duration {
        self.quantile(50)
    }

    pub(crate) fn quantile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        // Nearest rank, limited to the last sample.
        let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(at).copied().unwrap_or_default()
    }

    /// Prints the median and, from 200 samples on, the 99th percentile.
    pub(crate) fn print(&self, name: &str) {
        self.print_quantile(name, 50);
        if self.0.len() >= 200 {
            self.print_quantile(name, 99);
        }
    }

    /// Prints the median and the 99th percentile. With fewer than 200 samples the latter is close to the
    /// maximum.
    pub(crate) fn print_both(&self, name: &str) {
        self.print_quantile(name, 50);
        self.print_quantile(name, 99);
    }

    fn print_quantile(&self, name: &str, percent: usize) {
        print_figure(
            &format!("{name}_p{percent}"),
            convert_to_milliseconds(self.quantile(percent)),
            "ms",
        );
    }
}

/// Converts a duration to milliseconds.
pub(crate) fn convert_to_milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Computes the mean time between consecutive moments; zero for fewer than two.
pub(crate) fn compute_mean_interval(moments: &[Instant]) -> Duration {
    let (Some(first), Some(last)) = (moments.first(), moments.last()) else {
        return Duration::ZERO;
    };
    // Moments enclose one interval fewer than their number.
    let intervals = u32::try_from(moments.len() - 1).unwrap_or(u32::MAX).max(1);
    last.saturating_duration_since(*first) / intervals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_interval_follows_number_of_moments() {
        let start = Instant::now();
        for count in [0, 1, 2, 5, 50, 51] {
            let moments: Vec<Instant> = (0..count)
                .map(|number| start + Duration::from_secs(number))
                .collect();
            let expected = Duration::from_secs(u64::from(count > 1));
            assert_eq!(compute_mean_interval(&moments), expected, "{count} moments");
        }
    }
}
