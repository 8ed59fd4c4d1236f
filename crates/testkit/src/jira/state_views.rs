//! Read access of tests to the stand-in's state.

use super::{FakeJira, StandInRemoteLink, StandInTicketComment, adf};

impl FakeJira {
    /// Numeric id of a ticket, by its key or a former one.
    #[must_use]
    pub fn issue_id(&self, key: &str) -> Option<u64> {
        self.desk.issue(key).map(|issue| issue.id)
    }

    /// Display name of the assignee.
    #[must_use]
    pub fn assignee(&self, key: &str) -> Option<String> {
        self.desk.issue(key)?.assignee.map(|account| account.name)
    }

    /// Labels of the ticket.
    #[must_use]
    pub fn labels(&self, key: &str) -> Vec<String> {
        self.desk.issue(key).map(|issue| issue.labels).unwrap_or_default()
    }

    /// Name of the ticket's priority.
    #[must_use]
    pub fn priority(&self, key: &str) -> Option<String> {
        Some(self.desk.issue(key)?.priority.to_owned())
    }

    /// Name of the ticket's type.
    #[must_use]
    pub fn issue_type(&self, key: &str) -> Option<String> {
        Some(self.desk.issue(key)?.kind)
    }

    /// Links between tickets: the ticket whose outward description applies, the link type, and the other
    /// ticket.
    #[must_use]
    pub fn issue_links(&self) -> Vec<(String, String, String)> {
        let all = self.desk.relations().into_iter();
        let linked = all.filter_map(|relation| {
            let name = relation.link_type()?.to_owned();
            Some((relation.from, name, relation.to))
        });
        linked.collect()
    }

    /// Name of the ticket's status.
    #[must_use]
    pub fn status(&self, key: &str) -> Option<String> {
        self.desk
            .issue(key)
            .map(|issue| self.desk.statuses[issue.status].name.clone())
    }

    /// Name of the ticket's resolution.
    #[must_use]
    pub fn resolution(&self, key: &str) -> Option<String> {
        self.desk.issue(key)?.resolution.map(str::to_owned)
    }

    /// Names of all statuses that the ticket had, oldest first.
    #[must_use]
    pub fn status_history(&self, key: &str) -> Vec<String> {
        let Some(issue) = self.desk.issue(key) else {
            return Vec::new();
        };
        let moves = issue.histories.iter().flat_map(|history| &history.items);
        let names = moves
            .filter(|item| item["field"] == "status")
            .filter_map(|item| item["toString"].as_str());
        // Tickets start in the first status; the changelog contains the later ones alone.
        std::iter::once(self.desk.statuses[0].name.as_str())
            .chain(names)
            .map(str::to_owned)
            .collect()
    }

    /// Comments of the ticket, oldest first.
    #[must_use]
    pub fn comments(&self, key: &str) -> Vec<StandInTicketComment> {
        let comments = self
            .desk
            .issue(key)
            .map(|issue| issue.comments)
            .unwrap_or_default();
        comments
            .into_iter()
            .map(|comment| StandInTicketComment {
                id: comment.id.to_string(),
                author: comment.author.name,
                text: adf::render_plain_text(&comment.body),
            })
            .collect()
    }

    /// Restricts a comment to the members of a role.
    pub fn restrict_comment(&self, key: &str, comment: &str, role: &str) {
        let visibility = serde_json::json!({"type": "role", "value": role});
        self.desk.show_comment_to(key, comment, Some(visibility));
    }

    /// True if a comment exists and is visible to all users.
    #[must_use]
    pub fn is_public(&self, key: &str, comment: &str) -> bool {
        let issue = self.desk.issue(key);
        let mut comments = issue.iter().flat_map(|issue| &issue.comments);
        comments.any(|known| known.id.to_string() == comment && known.visibility.is_none())
    }

    /// Remote links of the ticket.
    #[must_use]
    pub fn remote_links(&self, key: &str) -> Vec<StandInRemoteLink> {
        let links = self.desk.issue(key).map(|issue| issue.links).unwrap_or_default();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        links
            .into_iter()
            .map(|link| StandInRemoteLink {
                global_id: link.global_id,
                url: text(&link.object["url"]),
                title: text(&link.object["title"]),
            })
            .collect()
    }
}
