//! Conversions between the wiki markup of Jira Data Center and Markdown.

mod escape;
mod from_markdown;
mod inline;
mod to_markdown;

pub use from_markdown::{from_markdown, from_markdown_within};
pub use to_markdown::to_markdown;

#[cfg(test)]
mod tests;
