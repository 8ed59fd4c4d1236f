//! Atlassian's document format (ADF) and Markdown, both ways.

mod from_markdown;
mod to_markdown;

pub use from_markdown::from_markdown;
pub use to_markdown::{mentioned_accounts, to_markdown};

#[cfg(test)]
mod tests;
