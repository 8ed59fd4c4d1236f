//! JSON of GitHub repositories and of the rules of their branches.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{extend_object, render_user};
use crate::github::rulesets::{BranchRuleset, RulesetCondition};
use crate::github::state::RepositoryRecord;

/// Property names and path suffixes of a repository's URLs.
const LINKS: [(&str, &str); 37] = [
    ("archive_url", "/{archive_format}{/ref}"),
    ("assignees_url", "/assignees{/user}"),
    ("blobs_url", "/git/blobs{/sha}"),
    ("branches_url", "/branches{/branch}"),
    ("collaborators_url", "/collaborators{/collaborator}"),
    ("comments_url", "/comments{/number}"),
    ("commits_url", "/commits{/sha}"),
    ("compare_url", "/compare/{base}...{head}"),
    ("contents_url", "/contents/{+path}"),
    ("contributors_url", "/contributors"),
    ("deployments_url", "/deployments"),
    ("downloads_url", "/downloads"),
    ("events_url", "/events"),
    ("forks_url", "/forks"),
    ("git_commits_url", "/git/commits{/sha}"),
    ("git_refs_url", "/git/refs{/sha}"),
    ("git_tags_url", "/git/tags{/sha}"),
    ("hooks_url", "/hooks"),
    ("issue_comment_url", "/issues/comments{/number}"),
    ("issue_events_url", "/issues/events{/number}"),
    ("issues_url", "/issues{/number}"),
    ("keys_url", "/keys{/key_id}"),
    ("labels_url", "/labels{/name}"),
    ("languages_url", "/languages"),
    ("merges_url", "/merges"),
    ("milestones_url", "/milestones{/number}"),
    ("notifications_url", "/notifications{?since,all,participating}"),
    ("pulls_url", "/pulls{/number}"),
    ("releases_url", "/releases{/id}"),
    ("stargazers_url", "/stargazers"),
    ("statuses_url", "/statuses/{sha}"),
    ("subscribers_url", "/subscribers"),
    ("subscription_url", "/subscription"),
    ("tags_url", "/tags"),
    ("teams_url", "/teams"),
    ("trees_url", "/git/trees{/sha}"),
    ("url", ""),
];

impl RepositoryRecord {
    /// URL of the repository's REST routes.
    pub(in crate::github) fn api_url(&self, url: &str) -> String {
        self.own_url(url)
    }

    pub(super) fn own_url(&self, url: &str) -> String {
        format!("{url}/repos/{}", self.name)
    }

    /// Renders the repository for other objects and webhooks.
    pub(in crate::github) fn json(&self, url: &str) -> Value {
        let name = self.name.split_once('/').map_or("", |(_, name)| name);
        let open = self.pulls.values().filter(|pull| pull.open).count();
        let clone_url = format!("{url}/git/{}.git", self.name);
        let mut body = json!({
            "id": self.id, "node_id": format!("R_{}", self.id), "name": name, "full_name": self.name,
            "private": true, "owner": render_user(self.owner()), "html_url": format!("{url}/{}", self.name),
            "description": null, "fork": false, "clone_url": clone_url, "git_url": clone_url, "ssh_url": clone_url,
            "svn_url": format!("{url}/{}", self.name), "mirror_url": null, "homepage": null, "language": null,
            "license": null, "default_branch": self.default_branch, "archived": self.is_archived, "disabled": false,
            "visibility": "private", "is_template": false, "web_commit_signoff_required": false, "topics": [],
            "custom_properties": {}, "created_at": self.created, "updated_at": self.created, "pushed_at": self.pushed,
        });
        for (name, path) in LINKS {
            body[name] = format!("{}{path}", self.own_url(url)).into();
        }
        extend_object(body, render_counts(open))
    }

    /// Renders the repository for its REST route. `may_push` is the caller's permission.
    pub(in crate::github) fn full_json(&self, url: &str, may_push: bool) -> Value {
        let more = json!({
            "network_count": 0, "subscribers_count": 0, "size": measure_kib(&self.path.join("objects")),
            "permissions": {"admin": false, "push": may_push, "pull": true},
        });
        extend_object(self.json(url), more)
    }

    /// Renders the repository as checks contain it.
    pub(super) fn reference_json(&self, url: &str) -> Value {
        let name = self.name.split_once('/').map_or("", |(_, name)| name);
        json!({"id": self.id, "url": self.own_url(url), "name": name})
    }
}

/// Size of the files in a folder and in the folders directly beneath it, in KiB. GitHub reports that of a repository.
fn measure_kib(folder: &Path) -> u64 {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let folders = entries(folder).filter(|entry| entry.path().is_dir());
    let files = folders.flat_map(|folder| entries(&folder.path()));
    let sizes = files
        .filter_map(|file| file.metadata().ok())
        .map(|found| found.len());
    sizes.sum::<u64>().div_ceil(1024)
}

fn render_counts(open: usize) -> Value {
    json!({
        "size": 1, "forks": 0, "forks_count": 0, "stargazers_count": 0, "watchers": 0, "watchers_count": 0,
        "open_issues": open, "open_issues_count": open, "has_issues": true, "has_projects": true,
        "has_wiki": false, "has_pages": false, "has_downloads": true, "has_discussions": false,
    })
}

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

impl RepositoryRecord {
    /// Renders a ruleset by its id, as far as an account without administration sees it.
    pub(in crate::github) fn ruleset_json(&self, id: usize, url: &str) -> Option<Value> {
        let ruleset = self.rulesets.get(id.checked_sub(1)?)?;
        let included: Vec<String> = ruleset
            .branches
            .iter()
            .map(|branch| format!("refs/heads/{branch}"))
            .collect();
        let bypass = if ruleset.is_bypassed { "always" } else { "never" };
        Some(json!({
            "id": id, "name": format!("ruleset {id}"), "target": "branch", "source_type": "Repository",
            "source": self.name, "enforcement": "active", "current_user_can_bypass": bypass,
            "node_id": format!("RRS_{id}"), "created_at": self.created, "updated_at": self.created,
            "conditions": {"ref_name": {"include": included, "exclude": []}},
            "rules": render_ruleset_rules(ruleset),
            "_links": {
                "self": {"href": format!("{}/rulesets/{id}", self.own_url(url))},
                "html": {"href": format!("{url}/{}/rules/{id}", self.name)},
            },
        }))
    }
}

fn render_ruleset_rules(ruleset: &BranchRuleset) -> Vec<Value> {
    let is_strict = ruleset.includes(RulesetCondition::CurrentBase);
    let has_threads = ruleset.includes(RulesetCondition::ResolvedThreads);
    let checks: Vec<Value> = ruleset
        .required_checks
        .iter()
        .map(|context| json!({"context": context}))
        .collect();
    let checks = json!({
        "type": "required_status_checks",
        "parameters": {
            "required_status_checks": checks, "strict_required_status_checks_policy": is_strict,
            "do_not_enforce_on_create": true,
        },
    });
    let update = json!({"type": "update", "parameters": {"update_allows_fetch_and_merge": false}});
    let reviews = json!({
        "type": "pull_request",
        "parameters": {
            "required_approving_review_count": ruleset.required_approvals, "dismiss_stale_reviews_on_push": false,
            "require_code_owner_review": false, "require_last_push_approval": false,
            "required_review_thread_resolution": has_threads,
        },
    });
    let queue = json!({
        "type": "merge_queue",
        "parameters": {
            "check_response_timeout_minutes": 60, "grouping_strategy": "ALLGREEN", "max_entries_to_build": 5,
            "max_entries_to_merge": 5, "merge_method": "MERGE", "min_entries_to_merge": 1,
            "min_entries_to_merge_wait_minutes": 5,
        },
    });
    let all = [
        (ruleset.required_approvals > 0 || has_threads, reviews),
        (ruleset.includes(RulesetCondition::MergeQueue), queue),
        (
            ruleset.includes(RulesetCondition::SignedCommits),
            json!({"type": "required_signatures"}),
        ),
        (
            ruleset.includes(RulesetCondition::LinearHistory),
            json!({"type": "required_linear_history"}),
        ),
        (ruleset.restricts_creation, json!({"type": "creation"})),
        (ruleset.restricts_updates, update),
        (!ruleset.required_checks.is_empty() || is_strict, checks),
    ];
    let set = all.into_iter().filter(|(is_set, _)| *is_set);
    let patterns = ruleset.patterns.iter().map(|pattern| {
        let parameters = json!({
            "name": "", "negate": pattern.negate, "operator": pattern.operator, "pattern": pattern.pattern,
        });
        json!({"type": pattern.kind, "parameters": parameters})
    });
    set.map(|(_, rule)| rule).chain(patterns).collect()
}
