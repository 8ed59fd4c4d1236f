//! Check that the configured model answers.

use std::{path::Path, time::Duration};

use bootstrap::{ServiceConfig, settings};

use super::{Finding, Findings, Remedy};

// Time limit with retries, for a provider that asks for a pause or answers slowly.
const MODEL_LIMIT: Duration = Duration::from_secs(30);

/// Sends one short question to the model.
pub(super) async fn check(findings: &mut Findings, file: Option<&Path>, environment: &[(String, String)]) {
    let loaded = settings::load::<planner::Config>(file, environment.iter().cloned());
    let finding = match loaded.and_then(|config| config.check().map(|()| config.model)) {
        // The check of the planner's settings reports their problems.
        Err(_) => Finding::Skipped("not asked: the settings of the planner are not complete".to_owned()),
        Ok(model) => match tokio::time::timeout(MODEL_LIMIT, planner::try_model(&model)).await {
            Ok(Ok(tried)) => Finding::Ok(format!(
                "{} at {} answers to {}",
                tried.model, tried.host, tried.credential
            )),
            Ok(Err(problem)) => Finding::Failed(problem, Remedy::SetUpModel),
            Err(_) => Finding::Failed(
                format!("{} gave no answer within {} s", model.name, MODEL_LIMIT.as_secs()),
                Remedy::SetUpModel,
            ),
        },
    };
    findings.add("model", finding);
}
