//! Small bar charts as inline SVG, one bar for each day.
//!
//! maud renders them like the rest of a page: their colors come from the style sheet, so they follow the theme, and
//! the content security policy needs no exception. The numbers are beside each chart and in its table.

use maud::{Markup, html};

// Width of a bar with its gap, and of the bar alone; height of the chart. The browser scales all of them.
const STEP: u64 = 10;
const BAR: u64 = 7;
const HEIGHT: u64 = 100;

/// Part of a bar, from the bottom up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarPart {
    pub(crate) tone: BarTone,
    pub(crate) value: u64,
}

/// Color of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BarTone {
    Plain,
    Good,
    Soft,
    Bad,
}

impl BarTone {
    const fn class(self) -> &'static str {
        match self {
            Self::Plain => "bar-plain",
            Self::Good => "bar-good",
            Self::Soft => "bar-soft",
            Self::Bad => "bar-bad",
        }
    }
}

/// Bar of one day.
#[derive(Clone, Debug)]
pub(crate) struct DayBar {
    /// The day: `2026-11-23`.
    pub(crate) day: String,
    /// The value in words, on hover and in the table.
    pub(crate) words: String,
    pub(crate) parts: Vec<BarPart>,
}

/// Renders the bars with the first and the last day below them, and a folded table of the numbers.
pub(crate) fn render_day_chart(name: &str, bars: &[DayBar]) -> Markup {
    let most = bars.iter().map(sum_parts).max().unwrap_or_default().max(1);
    let width = STEP * u64::try_from(bars.len()).unwrap_or_default().max(1);
    html! {
        figure.chart {
            svg viewBox={ "0 0 " (width) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(name) {
                @for (index, bar) in (0..).zip(bars) { (render_bar(index, bar, most)) }
            }
            figcaption {
                span { (bars.first().map_or("", |bar| bar.day.as_str())) }
                span { (bars.last().map_or("", |bar| bar.day.as_str())) }
            }
        }
        (render_numbers(name, bars))
    }
}

fn render_bar(index: u64, bar: &DayBar, most: u64) -> Markup {
    let mut top = HEIGHT;
    let mut parts = Vec::with_capacity(bar.parts.len());
    for part in &bar.parts {
        let height = scale_value(part.value, most).min(top);
        top -= height;
        parts.push((part.tone, top, height));
    }
    html! {
        g {
            title { (bar.day) ": " (bar.words) }
            @for (tone, y, height) in parts {
                rect class=(tone.class()) x=(index * STEP + 1) y=(y) width=(BAR) height=(height) {}
            }
        }
    }
}

/// Renders the table. Days without anything are left out, because most days of a small team are empty.
fn render_numbers(name: &str, bars: &[DayBar]) -> Markup {
    html! {
        details {
            summary.small { "Numbers by day" }
            table {
                caption { (name) }
                thead { tr { th scope="col" { "Day" } th.number scope="col" { "Value" } } }
                tbody {
                    @for bar in bars.iter().rev().filter(|bar| sum_parts(bar) > 0) {
                        tr { th scope="row" { (bar.day) } td.number { (bar.words) } }
                    }
                }
            }
        }
    }
}

fn sum_parts(bar: &DayBar) -> u64 {
    let values = bar.parts.iter().map(|part| part.value);
    values.fold(0, u64::saturating_add)
}

/// Scales a value to the height of the chart. A small value stays visible.
fn scale_value(value: u64, most: u64) -> u64 {
    if value == 0 {
        return 0;
    }
    let scaled = u128::from(value) * u128::from(HEIGHT) / u128::from(most.max(1));
    u64::try_from(scaled).unwrap_or(HEIGHT).clamp(2, HEIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_bar(day: &str, values: &[u64]) -> DayBar {
        let tones = [BarTone::Good, BarTone::Soft, BarTone::Bad];
        let parts = tones.into_iter().zip(values);
        DayBar {
            day: day.to_owned(),
            words: format!("{values:?}"),
            parts: parts
                .map(|(tone, value)| BarPart { tone, value: *value })
                .collect(),
        }
    }

    #[test]
    fn bars_share_scale_and_stay_inside_chart() {
        let chart = render_day_chart(
            "Ended",
            &[
                build_bar("2026-11-23", &[1, 2, 1]),
                build_bar("2026-11-24", &[2, 0, 0]),
            ],
        )
        .into_string();
        for part in [
            "viewBox=\"0 0 20 100\"",
            "class=\"bar-good\" x=\"1\" y=\"75\" width=\"7\" height=\"25\"",
            "class=\"bar-soft\" x=\"1\" y=\"25\" width=\"7\" height=\"50\"",
            "class=\"bar-bad\" x=\"1\" y=\"0\" width=\"7\" height=\"25\"",
            "class=\"bar-good\" x=\"11\" y=\"50\" width=\"7\" height=\"50\"",
        ] {
            assert!(chart.contains(part), "{part}: {chart}");
        }
        assert!(
            !chart.contains("style="),
            "the policy forbids inline styles: {chart}"
        );
    }

    #[test]
    fn empty_days_leave_bar_and_row_out() {
        let chart = render_day_chart("Ended", &[build_bar("2026-11-23", &[0, 0, 0])]).into_string();
        assert!(
            chart.contains("height=\"0\"") && !chart.contains("<td"),
            "{chart}"
        );
        let nothing = render_day_chart("Ended", &[]).into_string();
        assert!(nothing.contains("viewBox=\"0 0 10 100\""), "{nothing}");
    }

    #[test]
    fn extreme_values_neither_vanish_nor_overflow() {
        assert_eq!(scale_value(1, u64::MAX), 2);
        assert_eq!(scale_value(u64::MAX, 1), HEIGHT);
    }
}
