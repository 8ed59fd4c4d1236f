//! Notice before the first run with a provider: the data that it gets, and what a run may cost.

use std::{collections::BTreeSet, path::Path};

use anyhow::Context;
use bootstrap::settings;
use domain::Dollars;
use planner::{BudgetSettings, CeilingSettings, ModelDestination, ModelSettings, locate_configured_models};
use serde::Deserialize;

use super::{interactive_run::RunViewForm, model::FolderRunSettings};
use crate::user_files;

// Providers that a notice has named, one per line, below the folder of the state.
const NAMED: &str = "named-providers";

/// Settings that a notice describes.
#[derive(Deserialize)]
struct NoticeSettings {
    model: ModelSettings,
    #[serde(default)]
    planner: PlannerBudgets,
}

/// Budgets of the planner.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PlannerBudgets {
    budget: BudgetSettings,
    budget_ceiling: CeilingSettings,
}

/// Prints the notice unless an earlier run named the same providers.
///
/// # Errors
/// An invalid setting, or a folder for the state that cannot be written.
pub(super) fn print_model_notice(
    state: &Path,
    settings: &FolderRunSettings,
    form: RunViewForm,
) -> anyhow::Result<()> {
    let file = settings.file();
    let loaded: NoticeSettings = settings::load_settings(file.as_deref(), settings.environment.clone())?;
    let destination = locate_configured_models(&loaded.model);
    let mut named = read_named_providers(&state.join(NAMED));
    if destination.hosts.iter().all(|host| named.contains(host)) {
        return Ok(());
    }
    for line in render_notice(&destination, &loaded.planner) {
        form.print_note(&line);
    }
    named.extend(destination.hosts);
    let unwritable = || format!("cannot write in {}", state.display());
    std::fs::create_dir_all(state).with_context(unwritable)?;
    let lines: Vec<String> = named.into_iter().collect();
    user_files::replace_file(&state.join(NAMED), lines.join("\n").as_bytes(), 0o600).with_context(unwritable)
}

/// Providers that earlier notices named. A file that cannot be read repeats the notice.
fn read_named_providers(file: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn render_notice(destination: &ModelDestination, budgets: &PlannerBudgets) -> [String; 3] {
    let hosts = destination.hosts.join(", ");
    let price = match &destination.price {
        Some(price) => format!(
            "{} costs ${} for a million tokens that it reads, ${} for a million that it writes",
            destination.model,
            format_price(price.input),
            format_price(price.output)
        ),
        None => format!("the price of {} is not known here", destination.model),
    };
    [
        format!("before the first run with {hosts}:"),
        "  data     the text, the repository's instructions, and the files and outputs of commands that the model reads \
         go there"
            .to_owned(),
        format!(
            "  cost     {price}; {}; --max-cost sets a limit in dollars",
            describe_limits(budgets)
        ),
    ]
}

/// Limits of a run without rules: `a run ends at 10 million tokens or 240 minutes`.
fn describe_limits(budgets: &PlannerBudgets) -> String {
    let PlannerBudgets {
        budget,
        budget_ceiling: most,
    } = budgets;
    let cost = choose_limit(budget.cost_usd.micros(), most.cost_usd.micros());
    let limits = [
        cost.map(|micros| Dollars::from_micros(micros).to_string()),
        choose_limit(budget.tokens, most.tokens).map(format_tokens),
        choose_limit(budget.minutes, most.minutes).map(|minutes| format!("{minutes} minutes")),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    if limits.is_empty() {
        "no setting limits a run".to_owned()
    } else {
        format!("a run ends at {}", limits.join(" or "))
    }
}

/// Smaller of two limits. 0 is no limit.
fn choose_limit(usual: u64, most: u64) -> Option<u64> {
    [usual, most].into_iter().filter(|limit| *limit > 0).min()
}

/// Price in dollars with at least two decimals, and with all that it has: `3.00`, `0.075`.
fn format_price(dollars: f64) -> String {
    let exact = dollars.to_string();
    let decimals = exact.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    if decimals < 2 {
        format!("{dollars:.2}")
    } else {
        exact
    }
}

fn format_tokens(tokens: u64) -> String {
    match (tokens / 1_000_000, tokens % 1_000_000) {
        (millions, 0) => format!("{millions} million tokens"),
        _ => format!("{tokens} tokens"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_settings(more: &[(&str, &str)]) -> FolderRunSettings {
        let usual = [("MODEL__DIALECT", "openai"), ("MODEL__NAME", "m")];
        let variables = usual.iter().chain(more);
        FolderRunSettings::from_variables(
            variables
                .map(|(key, value)| (format!("JOURNEYMAN__{key}"), (*value).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn notice_names_data_price_and_limits() {
        let settings = build_settings(&[("MODEL__BASE_URL", "http://127.0.0.1:8000")]);
        let loaded: NoticeSettings = settings::load_settings(None, settings.environment).unwrap();
        let notice = render_notice(&locate_configured_models(&loaded.model), &loaded.planner);
        assert_eq!(notice[0], "before the first run with 127.0.0.1:8000:");
        assert_eq!(
            notice[2],
            "  cost     the price of m is not known here; a run ends at 10 million tokens or 240 minutes; --max-cost sets \
             a limit in dollars"
        );
    }

    #[test]
    fn price_is_exact() {
        for (dollars, text) in [
            (3.0, "3.00"),
            (0.5, "0.50"),
            (1.25, "1.25"),
            (0.075, "0.075"),
            (0.0025, "0.0025"),
            (0.0, "0.00"),
        ] {
            assert_eq!(format_price(dollars), text);
        }
        let price = [
            ("MODEL__PRICES__M__INPUT", "0.075"),
            ("MODEL__PRICES__M__OUTPUT", "3"),
        ];
        let settings = build_settings(&price);
        let loaded: NoticeSettings = settings::load_settings(None, settings.environment).unwrap();
        let notice = render_notice(&locate_configured_models(&loaded.model), &loaded.planner);
        assert!(
            notice[2].starts_with(
                "  cost     m costs $0.075 for a million tokens that it reads, $3.00 for a million"
            ),
            "{}",
            notice[2]
        );
    }

    #[test]
    fn smaller_budget_is_limit() {
        let settings = build_settings(&[
            ("PLANNER__BUDGET__COST_USD", "5"),
            ("PLANNER__BUDGET_CEILING__COST_USD", "0.5"),
            ("PLANNER__BUDGET__TOKENS", "1500000"),
            ("PLANNER__BUDGET__MINUTES", "0"),
        ]);
        let loaded: NoticeSettings = settings::load_settings(None, settings.environment).unwrap();
        assert_eq!(
            describe_limits(&loaded.planner),
            "a run ends at $0.50 or 1500000 tokens"
        );
    }

    #[test]
    fn each_provider_is_named_once() {
        let state = tempfile::tempdir().unwrap();
        let named = || read_named_providers(&state.path().join(NAMED));
        let first = build_settings(&[("MODEL__BASE_URL", "http://127.0.0.1:8000")]);
        print_model_notice(state.path(), &first, RunViewForm::Brief).unwrap();
        assert_eq!(named().len(), 1);
        print_model_notice(state.path(), &first, RunViewForm::Brief).unwrap();
        assert_eq!(named().len(), 1);
        let second = build_settings(&[("MODEL__BASE_URL", "http://127.0.0.1:9000")]);
        print_model_notice(state.path(), &second, RunViewForm::Brief).unwrap();
        assert!(named().contains("127.0.0.1:8000") && named().contains("127.0.0.1:9000"));
    }
}
