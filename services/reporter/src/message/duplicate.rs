//! Text about a new ticket that seems to duplicate another one.

use domain::TicketKey;

use super::words::format_code;

/// Renders the notice. `of` is the other ticket's key as people write it: `ENG-5` or `acme/shop#5`. Both trackers
/// render keys as links.
pub(crate) fn render_duplicate(of: &str, is_linked: bool) -> String {
    let is_key = TicketKey::jira(of).is_ok() || format!("github:{of}").parse::<TicketKey>().is_ok();
    let name = if is_key { of.to_owned() } else { format_code(of) };
    let linked = if is_linked { " The two are linked." } else { "" };
    format!(
        "This seems to ask for the same as {name}, which is open.{linked} Please close one of them if that is so; Journeyman closes \
         neither."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_notice_links_only_valid_keys() {
        assert!(render_duplicate("ENG-5", false).contains("same as ENG-5,"));
        assert!(render_duplicate("acme/shop#5", false).contains("same as acme/shop#5,"));
        assert!(render_duplicate("@everyone", false).contains("same as `@everyone`,"));
        assert!(render_duplicate("ENG-5", true).contains("which is open. The two are linked. Please"));
    }
}
