//! Results of MCP tools as text for models: sanitized, within limits, with a line for each part that has no
//! text.

use std::fmt::Write as _;

use domain::text::{one_line, sanitize_output, truncate_bytes, truncate_text};
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};

/// Maximum size of a result, in bytes.
pub const RESULT_BYTES: usize = 32 * 1024;
/// Maximum number of parts of a result.
pub const RESULT_ITEMS: usize = 50;

// Characters of a name, an address or a type in a line about a part.
const LABEL_CHARS: usize = 300;
// Each four characters of base64 are three bytes.
const BASE64_CHARS: usize = 4;
const BASE64_BYTES: usize = 3;

/// Result of an MCP tool. It is foreign text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpAnswer {
    /// The text.
    pub text: String,
    /// True if the tool reports an error.
    pub is_error: bool,
    /// True if a part is missing.
    pub is_truncated: bool,
}

/// Renders a result.
pub(crate) fn render_answer(result: &CallToolResult) -> McpAnswer {
    let mut parts: Vec<String> = result
        .content
        .iter()
        .take(RESULT_ITEMS)
        .map(render_block)
        .collect();
    let is_textless = parts.iter().all(|part| part.trim().is_empty());
    if let Some(value) = result.structured_content.as_ref().filter(|_| is_textless) {
        parts = vec![sanitize_output(&value.to_string()).into_owned()];
    }
    let omitted = result.content.len().saturating_sub(RESULT_ITEMS);
    let mut text = parts.join("\n\n");
    let is_too_long = text.len() > RESULT_BYTES;
    if is_too_long {
        text.truncate(truncate_bytes(&text, RESULT_BYTES).len());
        text.push_str("\n[truncated: the result is longer; ask the tool for a smaller part]");
    }
    if omitted > 0 {
        // Writing to a text cannot fail.
        let _ = write!(text, "\n[{omitted} more parts of the result are not shown]");
    }
    McpAnswer {
        text,
        is_error: result.is_error == Some(true),
        is_truncated: is_too_long || omitted > 0,
    }
}

fn render_block(block: &ContentBlock) -> String {
    if let ContentBlock::Text(content) = block {
        return sanitize_output(&content.text).into_owned();
    }
    if let ContentBlock::Image(image) = block {
        return describe_binary("image", &image.mime_type, image.data.len());
    }
    if let ContentBlock::Audio(audio) = block {
        return describe_binary("audio", &audio.mime_type, audio.data.len());
    }
    if let ContentBlock::Resource(embedded) = block {
        return render_resource(&embedded.resource);
    }
    if let ContentBlock::ResourceLink(link) = block {
        return render_link(link);
    }
    "[a part of an unknown kind is not shown]".to_owned()
}

fn render_resource(contents: &ResourceContents) -> String {
    if let ResourceContents::TextResourceContents { uri, text, .. } = contents {
        return format!("[resource {}]\n{}", render_label(uri), sanitize_output(text));
    }
    if let ResourceContents::BlobResourceContents {
        uri, mime_type, blob, ..
    } = contents
    {
        let kind = format!("resource {}", render_label(uri));
        return describe_binary(&kind, mime_type.as_deref().unwrap_or("binary"), blob.len());
    }
    "[a resource of an unknown kind is not shown]".to_owned()
}

fn render_link(link: &Resource) -> String {
    let description = link.description.as_deref().unwrap_or_default();
    let description = match description {
        "" => String::new(),
        text => format!(": {}", render_label(text)),
    };
    format!(
        "[link to resource {} at {}{description}]",
        render_label(&link.name),
        render_label(&link.uri)
    )
}

fn describe_binary(kind: &str, mime_type: &str, base64_chars: usize) -> String {
    let kib = (base64_chars / BASE64_CHARS * BASE64_BYTES).div_ceil(1024);
    format!("[{kind}, {}, {kib} KiB: not shown]", render_label(mime_type))
}

fn render_label(text: &str) -> String {
    truncate_text(&one_line(&sanitize_output(text)), LABEL_CHARS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn render(result: Value) -> McpAnswer {
        render_answer(&serde_json::from_value::<CallToolResult>(result).unwrap())
    }

    #[test]
    fn parts_without_text_are_named() {
        let answer = render(json!({"content": [
            {"type": "text", "text": "Found."},
            {"type": "image", "data": "QUJD".repeat(1024), "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "docs://a", "text": "Page A"}},
            {"type": "resource", "resource": {"uri": "docs://b", "blob": "QUJD", "mimeType": "application/pdf"}},
            {"type": "resource_link", "uri": "docs://c", "name": "C", "description": "Third\npage"},
        ]}));
        assert_eq!(
            answer.text,
            "Found.\n\n[image, image/png, 3 KiB: not shown]\n\n[resource docs://a]\nPage A\n\n\
             [resource docs://b, application/pdf, 1 KiB: not shown]\n\n[link to resource C at docs://c: Third page]"
        );
        assert!(!answer.is_error && !answer.is_truncated);
    }

    #[test]
    fn structured_content_replaces_missing_text() {
        let answer = render(json!({"content": [], "structuredContent": {"rows": 3}}));
        assert_eq!(answer.text, "{\"rows\":3}");
        let both = render(
            json!({"content": [{"type": "text", "text": "3 rows"}], "structuredContent": {"rows": 3}}),
        );
        assert_eq!(both.text, "3 rows");
    }

    #[test]
    fn long_results_are_truncated() {
        let answer =
            render(json!({"content": [{"type": "text", "text": "é".repeat(RESULT_BYTES)}], "isError": true}));
        assert!(answer.is_truncated && answer.is_error);
        assert!(answer.text.len() < RESULT_BYTES + 100 && answer.text.contains("[truncated"));
        let many: Vec<Value> = (0..RESULT_ITEMS + 3)
            .map(|_| json!({"type": "text", "text": "x"}))
            .collect();
        let answer = render(json!({"content": many}));
        assert!(
            answer.is_truncated
                && answer
                    .text
                    .ends_with("[3 more parts of the result are not shown]")
        );
    }

    #[test]
    fn hidden_text_becomes_visible() {
        let answer = render(json!({"content": [{"type": "text", "text": "a\u{202e}b\u{1b}[31mc"}]}));
        assert_eq!(answer.text, "a<U+202E>bc");
    }

    proptest! {
        #[test]
        fn fuzz_any_text_stays_within_limit(text in "\\PC{0,200}", times in 0_usize..400) {
            let answer = render(json!({"content": [{"type": "text", "text": text.repeat(times)}]}));
            prop_assert!(answer.text.len() <= RESULT_BYTES + 100);
        }
    }
}
