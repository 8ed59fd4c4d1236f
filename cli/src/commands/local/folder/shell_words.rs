//! Words of shell commands that the user copies from the terminal.

use domain::text::quote_shell_word;

/// Text as one word of a shell, quoted only where it has to be.
pub(in super::super) fn quote_for_shell(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        quote_shell_word(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_quoted() {
        assert_eq!(quote_for_shell("fix/shop-1"), "fix/shop-1");
        assert_eq!(quote_for_shell("my shop"), "'my shop'");
        assert_eq!(quote_for_shell("it's $x"), r"'it'\''s $x'");
        assert_eq!(quote_for_shell(""), "''");
    }
}
