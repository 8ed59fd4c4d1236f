//! Conversions between the Atlassian Document Format (ADF) and Markdown.

mod from_markdown;
mod placeholder;
mod to_markdown;

pub use from_markdown::from_markdown;
pub use to_markdown::{mentioned_accounts, to_markdown};

#[cfg(test)]
mod tests;
