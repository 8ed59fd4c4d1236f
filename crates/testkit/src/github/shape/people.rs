//! JSON of accounts and Apps.

use serde_json::{Value, json};

use super::{extend_object, number_of};
use crate::github::{READER_APP_ID, READER_LOGIN, WRITER_APP_ID, WRITER_LOGIN};

/// Creation date of everything that exists from the stand-in's start.
pub(super) const BEGINNING: &str = "2026-01-01T00:00:00Z";
/// Property names and path suffixes of an account's URLs.
const LINKS: [(&str, &str); 9] = [
    ("followers_url", "/followers"),
    ("following_url", "/following{/other_user}"),
    ("gists_url", "/gists{/gist_id}"),
    ("starred_url", "/starred{/owner}{/repo}"),
    ("subscriptions_url", "/subscriptions"),
    ("organizations_url", "/orgs"),
    ("repos_url", "/repos"),
    ("events_url", "/events{/privacy}"),
    ("received_events_url", "/received_events"),
];

/// Renders an account inside other objects. A login that ends in `[bot]` belongs to an App.
pub(in crate::github) fn render_user(login: &str) -> Value {
    let id = number_of(login);
    let (kind, page) = match login.strip_suffix("[bot]") {
        Some(slug) => ("Bot", format!("apps/{slug}")),
        None => ("User", login.to_owned()),
    };
    // A URL cannot contain brackets.
    let address = login.replace('[', "%5B").replace(']', "%5D");
    let url = format!("https://api.github.test/users/{address}");
    let mut user = json!({
        "login": login, "id": id, "node_id": format!("U_{id}"), "avatar_url": "https://github.test/avatar.png",
        "gravatar_id": "", "url": url, "html_url": format!("https://github.test/{page}"), "type": kind,
        "site_admin": false,
    });
    for (name, path) in LINKS {
        user[name] = format!("{url}{path}").into();
    }
    user
}

/// Renders an account for GraphQL, where an App's login has no suffix `[bot]`.
pub(in crate::github) fn render_actor(login: &str) -> Value {
    let id = number_of(login);
    match login.strip_suffix("[bot]") {
        Some(slug) => json!({"__typename": "Bot", "login": slug, "databaseId": id}),
        None => json!({"__typename": "User", "login": login, "databaseId": id}),
    }
}

/// Renders an account for its REST routes.
pub(in crate::github) fn render_account(login: &str) -> Value {
    let more = json!({
        "name": login, "company": null, "blog": "", "location": null, "email": null, "hireable": null, "bio": null,
        "public_repos": 0, "public_gists": 0, "followers": 0, "following": 0, "created_at": BEGINNING,
        "updated_at": BEGINNING,
    });
    extend_object(render_user(login), more)
}

/// Renders an account with its role in a repository.
pub(in crate::github) fn render_collaborator(login: &str, role: &str) -> Value {
    extend_object(render_user(login), json!({"role_name": role}))
}

/// Renders an App by its login.
pub(in crate::github) fn render_app(login: &str) -> Value {
    let slug = login.trim_end_matches("[bot]");
    let id = match login {
        READER_LOGIN => READER_APP_ID,
        WRITER_LOGIN => WRITER_APP_ID,
        other => number_of(other),
    };
    json!({
        "id": id, "slug": slug, "node_id": format!("A_{id}"), "name": slug, "owner": render_user("acme"), "description": null,
        "external_url": "https://journeyman.test", "html_url": format!("https://github.test/apps/{slug}"),
        "permissions": {"metadata": "read"}, "events": ["push", "pull_request", "check_run"],
        "created_at": BEGINNING, "updated_at": BEGINNING,
    })
}

/// Renders the App behind a login, if the login is an App's.
pub(super) fn app_of(login: &str) -> Option<Value> {
    login.ends_with("[bot]").then(|| render_app(login))
}

/// Renders the installation of the App with this login.
pub(in crate::github) fn render_installation(id: u64, owner: &str, login: &str, url: &str) -> Value {
    let app = render_app(login);
    json!({
        "id": id, "account": render_user(owner), "app_id": app["id"], "app_slug": app["slug"], "target_id": render_user(owner)["id"],
        "target_type": "Organization", "access_tokens_url": format!("{url}/app/installations/{id}/access_tokens"),
        "repositories_url": format!("{url}/installation/repositories"),
        "html_url": format!("https://github.test/installations/{id}"), "permissions": app["permissions"],
        "events": app["events"], "repository_selection": "all", "single_file_name": null, "suspended_by": null,
        "suspended_at": null, "created_at": BEGINNING, "updated_at": BEGINNING,
    })
}
