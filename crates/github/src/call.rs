//! Requests to GitHub: method, path and body.

use serde_json::Value;

use crate::ETag;

/// One request, its path relative to the API's base.
#[derive(Clone, Copy)]
pub(crate) enum GitHubCall<'a> {
    Get(&'a str),
    /// A read that GitHub may answer with 304 while the `ETag` is still valid.
    GetUnless(&'a str, &'a ETag),
    /// A GraphQL query: a read, although it is sent as a POST with a body.
    Query(&'a str, &'a Value),
    Post(&'a str, &'a Value),
    Patch(&'a str, &'a Value),
    Delete(&'a str, Option<&'a Value>),
}

impl<'a> GitHubCall<'a> {
    pub(crate) const fn is_write(self) -> bool {
        match self {
            Self::Get(_) | Self::GetUnless(..) | Self::Query(..) => false,
            Self::Post(..) | Self::Patch(..) | Self::Delete(..) => true,
        }
    }

    /// The rate-limit resource of the request. GitHub counts a separate primary limit for each resource.
    pub(crate) fn resource(self) -> &'static str {
        // Names of `x-ratelimit-resource`. Only the resources that this crate uses are listed.
        match self.place().1 {
            "/graphql" => "graphql",
            path if path.starts_with("/search/") => "search",
            _ => "core",
        }
    }

    /// Method and path.
    pub(crate) const fn place(self) -> (&'static str, &'a str) {
        match self {
            Self::Get(path) | Self::GetUnless(path, _) => ("GET", path),
            Self::Query(path, _) | Self::Post(path, _) => ("POST", path),
            Self::Patch(path, _) => ("PATCH", path),
            Self::Delete(path, _) => ("DELETE", path),
        }
    }

    /// Method and path, without the query.
    pub(crate) fn name(self) -> String {
        let (method, path) = self.place();
        let path = path.split('?').next().unwrap_or_default();
        format!("{method} {path}")
    }
}
