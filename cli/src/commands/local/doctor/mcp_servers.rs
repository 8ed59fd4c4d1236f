//! Check of the MCP servers of the settings, and of their names in the rules.

use std::{collections::BTreeSet, path::Path};

use bootstrap::{
    rules::{ConfiguredInstances, RulesBook},
    settings,
};

use super::{CHECK_LIMIT, DoctorFinding, DoctorReport, DoctorSections, Remedy};

/// Adds a finding for each server, and one for each server that only the rules name.
pub(super) async fn check_mcp_servers(
    findings: &mut DoctorReport,
    sections: &DoctorSections,
    connections: &ConfiguredInstances,
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
                Ok(tools) => DoctorFinding::Ok(format!("{name}: {tools}")),
                Err(problem) => DoctorFinding::Failed(format!("{name}: {problem}"), Remedy::McpServers),
            },
        );
    }
    for name in list_unknown_servers(sections, connections, &config) {
        let problem =
            format!("{name}: a rule agent.mcp names it, and the settings have no [mcp.servers.{name}]");
        findings.add("mcp server", DoctorFinding::Failed(problem, Remedy::McpServers));
    }
}

fn list_unknown_servers(
    sections: &DoctorSections,
    connections: &ConfiguredInstances,
    config: &planner::Config,
) -> BTreeSet<String> {
    let Ok(book) = RulesBook::read(&sections.rules.dir, connections) else {
        return BTreeSet::new();
    };
    let named = book.repositories().flat_map(|rules| &rules.agent.mcp);
    named
        .filter(|name| !config.mcp.servers.contains_key(*name))
        .cloned()
        .collect()
}
