//! Check that the configured model answers.

use std::{path::Path, time::Duration};

use bootstrap::{ServiceConfig, settings};

use super::{DoctorFinding, DoctorReport, Remedy};

// Time limit with retries, for a provider that asks for a pause or answers slowly.
const MODEL_LIMIT: Duration = Duration::from_secs(30);

/// Sends one short question to the model.
pub(super) async fn check_model(
    findings: &mut DoctorReport,
    file: Option<&Path>,
    environment: &[(String, String)],
) {
    let loaded = settings::load_settings::<planner::Config>(file, environment.iter().cloned());
    let finding = match loaded.and_then(|config| config.check().map(|()| config.model)) {
        // The check of the planner's settings reports their problems.
        Err(_) => {
            DoctorFinding::Skipped("not asked: the settings of the planner are not complete".to_owned())
        }
        Ok(model) => match tokio::time::timeout(MODEL_LIMIT, planner::try_configured_model(&model)).await {
            Ok(Ok(tried)) => DoctorFinding::Ok(format!(
                "{} at {} answers to {}",
                tried.model, tried.host, tried.credential
            )),
            Ok(Err(problem)) => DoctorFinding::Failed(problem, Remedy::SetUpModel),
            Err(_) => DoctorFinding::Failed(
                format!("{} gave no answer within {} s", model.name, MODEL_LIMIT.as_secs()),
                Remedy::SetUpModel,
            ),
        },
    };
    findings.add("model", finding);
}
