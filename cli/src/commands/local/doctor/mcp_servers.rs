//! Check of the MCP servers of the settings, and of their names in the rules.

use std::{collections::BTreeSet, path::Path};

use bootstrap::{rules::RulesBook, settings};
use planner::McpInspection;

use super::{CHECK_LIMIT, DoctorFinding, DoctorReport, Remedy};

/// Adds a finding for each server, and one for each server that only the rules name.
pub(super) async fn check_mcp_servers(
    findings: &mut DoctorReport,
    book: &RulesBook,
    (file, environment): (Option<&Path>, &[(String, String)]),
) {
    // The check of the planner's settings reports their problems.
    let Ok(config) = settings::load_settings::<planner::Config>(file, environment.iter().cloned()) else {
        return;
    };
    for (name, found) in Box::pin(planner::inspect_mcp_servers(&config, CHECK_LIMIT)).await {
        findings.add(
            "mcp server",
            match found {
                McpInspection::Works(tools) => DoctorFinding::Ok(format!("{name}: {tools}")),
                McpInspection::Failed(problem) => {
                    DoctorFinding::Failed(format!("{name}: {problem}"), Remedy::McpServers)
                }
                McpInspection::Unchecked(reason) => DoctorFinding::Skipped(format!("{name}: {reason}")),
            },
        );
    }
    for name in list_unknown_servers(book, &config) {
        let problem = format!(
            "{name}: a rule agent.mcp names it, and neither [mcp.servers.{name}] nor agent.mcp_commands has it"
        );
        findings.add("mcp server", DoctorFinding::Failed(problem, Remedy::McpServers));
    }
}

fn list_unknown_servers(book: &RulesBook, config: &planner::Config) -> BTreeSet<String> {
    let named = book.repositories().flat_map(|rules| {
        let names = rules.agent.mcp.iter();
        names.filter(|name| !rules.agent.mcp_commands.contains_key(*name))
    });
    named
        .filter(|name| !config.mcp.servers.contains_key(*name))
        .cloned()
        .collect()
}
