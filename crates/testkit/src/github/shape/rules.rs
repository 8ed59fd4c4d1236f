//! JSON of ruleset rules.

use serde_json::{Value, json};

use super::extend_object;
use crate::github::rulesets::BranchRuleset;
use crate::github::state::RepositoryRecord;

impl RepositoryRecord {
    /// Renders the rules that match a branch, each with its ruleset's source.
    pub(in crate::github) fn rules_json(&self, branch: &str) -> Vec<Value> {
        let numbered = self.rulesets.iter().zip(1_u64..);
        let about = numbered.filter(|(ruleset, _)| ruleset.is_about(branch));
        let rules = about.flat_map(|(ruleset, id)| {
            let source = json!({
                "ruleset_source_type": "Repository", "ruleset_source": self.name, "ruleset_id": id,
            });
            let rules = render_ruleset_rules(ruleset).into_iter();
            rules.map(move |rule| extend_object(rule, source.clone()))
        });
        rules.collect()
    }
}

fn render_ruleset_rules(ruleset: &BranchRuleset) -> Vec<Value> {
    let checks: Vec<Value> = ruleset
        .required_checks
        .iter()
        .map(|context| json!({"context": context}))
        .collect();
    let checks = json!({
        "type": "required_status_checks",
        "parameters": {
            "required_status_checks": checks, "strict_required_status_checks_policy": false,
            "do_not_enforce_on_create": true,
        },
    });
    let update = json!({"type": "update", "parameters": {"update_allows_fetch_and_merge": false}});
    let all = [
        (ruleset.restricts_creation, json!({"type": "creation"})),
        (ruleset.restricts_updates, update),
        (!ruleset.required_checks.is_empty(), checks),
    ];
    let set = all.into_iter().filter(|(is_set, _)| *is_set);
    set.map(|(_, rule)| rule).collect()
}
