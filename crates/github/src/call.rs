//! What is asked of GitHub.

use serde_json::Value;

use crate::ETag;

/// One request, its path relative to the API's base.
#[derive(Clone, Copy)]
pub(crate) enum Call<'a> {
    Get(&'a str),
    /// A read that need not answer what is known already.
    GetUnless(&'a str, &'a ETag),
    /// A read that is sent as a body: a query of GraphQL.
    Query(&'a str, &'a Value),
    Post(&'a str, &'a Value),
    Patch(&'a str, &'a Value),
    Delete(&'a str, Option<&'a Value>),
}

impl<'a> Call<'a> {
    pub(crate) const fn is_write(self) -> bool {
        match self {
            Self::Get(_) | Self::GetUnless(..) | Self::Query(..) => false,
            Self::Post(..) | Self::Patch(..) | Self::Delete(..) => true,
        }
    }

    /// The kind of request, each with a primary limit of its own.
    pub(crate) fn resource(self) -> &'static str {
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
