//! Address of a comment in Jira's REST interface, which has the id of the issue.

/// Id of the issue of a comment by the comment's address below one of `bases`; `None` for any other address.
pub(crate) fn parse_comment_address(address: &str, comment: &str, bases: &[&str]) -> Option<u64> {
    bases.iter().find_map(|base| {
        let (site, path) = address.split_at_checked(base.len())?;
        if !site.eq_ignore_ascii_case(base) {
            return None;
        }
        let path = path.strip_prefix("/rest/api/")?;
        // Webhooks of the Cloud have addresses of version 2 too.
        let path = path.strip_prefix("2/").or_else(|| path.strip_prefix("3/"))?;
        let (issue, named) = path.strip_prefix("issue/")?.split_once("/comment/")?;
        let is_of_comment = is_number(comment) && named == comment;
        // A parse alone would accept a sign.
        let issue = Some(issue).filter(|issue| is_of_comment && is_number(issue))?;
        issue.parse().ok()
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::parse_comment_address;

    #[test]
    fn comment_address_of_site_has_issue() {
        let bases = ["http://dc.internal:8080/jira", "https://jira.example"];
        let parse = |address: &str| parse_comment_address(address, "12000", &bases);
        for address in [
            "http://dc.internal:8080/jira/rest/api/2/issue/10000/comment/12000",
            "https://jira.example/rest/api/2/issue/10000/comment/12000",
            "https://Jira.Example/rest/api/3/issue/10000/comment/12000",
        ] {
            assert_eq!(parse(address), Some(10_000), "{address}");
        }
        for address in [
            "",
            "/rest/api/2/issue/10000/comment/12000",
            "https://jira.example",
            "https://jira.exampl\u{e9}/rest/api/2/issue/10000/comment/12000",
            "https://jira.example.evil/rest/api/2/issue/10000/comment/12000",
            "https://jira.example@evil.example/rest/api/2/issue/10000/comment/12000",
            "https://evil.example/https://jira.example/rest/api/2/issue/10000/comment/12000",
            "http://jira.example/rest/api/2/issue/10000/comment/12000",
            "http://dc.internal:8080/rest/api/2/issue/10000/comment/12000",
            "https://jira.example/rest/api/latest/issue/10000/comment/12000",
            "https://jira.example/rest/api/2/issue/ENG-1/comment/12000",
            "https://jira.example/rest/api/2/issue/+10000/comment/12000",
            "https://jira.example/rest/api/2/issue/-1/comment/12000",
            "https://jira.example/rest/api/2/issue//comment/12000",
            "https://jira.example/rest/api/2/issue/10000/../1/comment/12000",
            "https://jira.example/rest/api/2/issue/10000?x=/comment/12000",
            "https://jira.example/rest/api/2/issue/99999999999999999999/comment/12000",
            "https://jira.example/rest/api/2/issue/10000/comment/12001",
            "https://jira.example/rest/api/2/issue/10000/comment/12000/properties",
            "https://jira.example/rest/api/2/issue/10000/comment/12000?a=b",
        ] {
            assert_eq!(parse(address), None, "{address}");
        }
    }

    #[test]
    fn comment_without_numeric_id_has_no_issue() {
        for comment in ["", "last", "12000/x", "+1"] {
            let address = format!("https://jira.example/rest/api/2/issue/10000/comment/{comment}");
            let found = parse_comment_address(&address, comment, &["https://jira.example"]);
            assert_eq!(found, None, "{comment:?}");
        }
    }
}
