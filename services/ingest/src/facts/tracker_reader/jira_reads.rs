//! Reads of Jira.

use std::collections::BTreeSet;

use domain::{InstanceName, JiraRules, RepositoryRules, TicketKey, Timestamp};

use super::{ReadError, ReadyTicket, TitledTicket, TrackerEdit, TrackerReader};

impl TrackerReader {
    /// Lists the possible statuses of a project's tickets.
    pub(crate) async fn statuses(&self, project: &JiraRules) -> Result<BTreeSet<String>, ReadError> {
        let jira = self.jira.on(project.instance.as_ref());
        let read = jira.project_statuses(&project.project_key);
        Ok(failpoint::around("ingest.jira.statuses", read).await?)
    }

    /// Lists the tickets of a project in a status.
    pub(crate) async fn ready(
        &self,
        project: &JiraRules,
        status: &str,
    ) -> Result<Vec<ReadyTicket>, ReadError> {
        let jira = self.jira.on(project.instance.as_ref());
        let search = jira.search_ready(&project.project_key, status);
        let stubs = failpoint::around("ingest.jira.search", search).await?;
        Ok(stubs
            .into_iter()
            .map(|stub| ReadyTicket {
                id: stub.id,
                ticket: stub.key,
                status: stub.status,
            })
            .collect())
    }

    /// Lists the tickets of a project in a status, or the unfinished ones, latest change first.
    pub(crate) async fn list(
        &self,
        project: &JiraRules,
        status: Option<&str>,
    ) -> Result<Vec<jira::IssueOutline>, ReadError> {
        let jira = self.jira.on(project.instance.as_ref());
        let search = jira.list(&project.project_key, status);
        await_list(search).await
    }

    /// Lists the tickets of a project in any status that changed within the last days, latest change first.
    pub(crate) async fn list_changed(
        &self,
        project: &JiraRules,
        days: u32,
    ) -> Result<Vec<jira::IssueOutline>, ReadError> {
        let jira = self.jira.on(project.instance.as_ref());
        let search = jira.list_changed(&project.project_key, days);
        await_list(search).await
    }

    /// Lists the unfinished tickets of a project that match the JQL condition of its rules. The inner error is Jira's
    /// parse error.
    pub(crate) async fn matching(
        &self,
        project: &JiraRules,
    ) -> Result<Result<Vec<jira::IssueHit>, String>, ReadError> {
        let jira = self.jira.on(project.instance.as_ref());
        let search = jira.matching(&project.project_key, &project.jql);
        split_rejection(failpoint::around("ingest.jira.matching", search).await)
    }

    /// Checks a JQL condition for a ticket. The inner error is Jira's parse error.
    pub(crate) async fn matches(
        &self,
        ticket: &TicketKey,
        condition: &str,
    ) -> Result<Result<bool, String>, ReadError> {
        let search = self.jira.matches(ticket, condition);
        split_rejection(failpoint::around("ingest.jira.match", search).await)
    }

    /// Reads the present key of an issue by its id.
    pub(crate) async fn key_of_issue(
        &self,
        instance: Option<&InstanceName>,
        id: u64,
    ) -> Result<TicketKey, ReadError> {
        let jira = self.jira.on(instance);
        let read = jira.key_of(id);
        Ok(failpoint::around("ingest.jira.key", read).await?)
    }

    /// Id of the issue of a comment by the comment's address at its site; `None` for any other address.
    pub(crate) fn issue_of_comment(
        &self,
        instance: Option<&InstanceName>,
        address: &str,
        comment: &str,
    ) -> Result<Option<u64>, ReadError> {
        Ok(self.jira.on(instance).issue_of_comment(address, comment)?)
    }

    /// Reads the fields that the rules of a site name as acceptance criteria with every issue of it.
    pub(crate) fn name_criteria_fields<'a>(
        &self,
        instance: Option<&InstanceName>,
        rules: impl Iterator<Item = &'a RepositoryRules>,
    ) {
        let of_site = rules.filter(|rules| rules.jira.instance.as_ref() == instance);
        let names = of_site.map(|rules| rules.jira.criteria_field.as_str());
        self.jira.name_criteria_fields(instance, names);
    }

    /// Addresses a moved issue by its id in later reads by this key.
    pub(crate) fn remember_move(&self, key: &TicketKey, id: u64, present: &TicketKey) {
        self.jira.remember_move(key, id, present);
    }

    /// Reads the ticket's last change into a status; `None` when it was created in it.
    pub(crate) async fn last_move(
        &self,
        ticket: &TicketKey,
        status: &str,
    ) -> Result<Option<jira::StatusChange>, ReadError> {
        let read = self.jira.last_transition_to(ticket, status);
        Ok(failpoint::around("ingest.jira.last_move", read).await?)
    }

    /// Lists the tickets of a project that changed since then, least recently changed first.
    pub(crate) async fn changed(
        &self,
        project: &JiraRules,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<jira::IssueChanges, ReadError> {
        // The search takes whole minutes. One more covers the minute that has started.
        let minutes = now.since(since).as_secs() / 60 + 1;
        let jira = self.jira.on(project.instance.as_ref());
        let search = jira.changed_within(&project.project_key, minutes);
        Ok(failpoint::around("ingest.jira.changed", search).await?)
    }

    /// Lists a ticket's comments since then, oldest first.
    pub(crate) async fn comments_since(
        &self,
        ticket: &TicketKey,
        since: Timestamp,
    ) -> Result<Vec<jira::JiraComment>, ReadError> {
        let read = self.jira.comments_since(ticket, since);
        Ok(failpoint::around("ingest.jira.comments", read).await?)
    }

    /// Lists the edits of a ticket's text since then, oldest first.
    pub(crate) async fn text_edits_since(
        &self,
        ticket: &TicketKey,
        since: Timestamp,
    ) -> Result<Vec<TrackerEdit>, ReadError> {
        let read = self.jira.text_edits_since(ticket, since);
        let edits = failpoint::around("ingest.jira.edits", read).await?;
        Ok(edits.into_iter().map(TrackerEdit::from).collect())
    }

    /// Lists the attachments of an issue, oldest first.
    pub(crate) async fn jira_attachments(
        &self,
        ticket: &TicketKey,
    ) -> Result<Vec<jira::JiraAttachment>, ReadError> {
        let read = self.jira.attachments(ticket);
        Ok(failpoint::around("ingest.jira.attachments", read).await?)
    }

    /// Reads the content of an attachment; `None` above this many bytes.
    pub(crate) async fn jira_attachment(
        &self,
        ticket: &TicketKey,
        file: &jira::JiraAttachment,
        most_bytes: usize,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        let read = self.jira.attachment(ticket, file, most_bytes);
        Ok(failpoint::around("ingest.jira.attachment", read).await?)
    }

    /// Reads issues with their descriptions.
    pub(crate) async fn outlines(
        &self,
        instance: Option<&InstanceName>,
        keys: &[&TicketKey],
    ) -> Result<Vec<jira::IssueOutline>, ReadError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let jira = self.jira.on(instance);
        let read = jira.outlines(keys);
        Ok(failpoint::around("ingest.jira.outlines", read).await?)
    }

    /// Lists unfinished issues of a ticket's project with one of these words in their title.
    pub(crate) async fn similar(
        &self,
        ticket: &TicketKey,
        words: &[String],
    ) -> Result<Vec<TitledTicket>, ReadError> {
        let project = match ticket {
            TicketKey::Jira { project, .. } => project,
            TicketKey::GitHub { repository, .. } => return self.open_titles(repository).await,
            TicketKey::Discussion { .. } | TicketKey::Folder { .. } => return Ok(Vec::new()),
        };
        let jira = self.jira.on(ticket.instance());
        let search = jira.similar(project, words);
        let found = failpoint::around("ingest.jira.similar", search).await?;
        let titled = found.into_iter().map(|outlined| TitledTicket {
            key: outlined.key,
            summary: outlined.summary,
            status: outlined.status,
        });
        Ok(titled.collect())
    }

    /// Lists the names of an account's groups; empty for an unknown account.
    pub(crate) async fn jira_groups(
        &self,
        instance: Option<&InstanceName>,
        account: &str,
    ) -> Result<Vec<String>, ReadError> {
        let jira = self.jira.on(instance);
        let read = jira.groups(account);
        match failpoint::around("ingest.jira.groups", read).await {
            // Jira answers 404 for an unknown account.
            Err(jira::Error::NotFound { .. }) => Ok(Vec::new()),
            groups => Ok(groups?),
        }
    }
}

impl TrackerReader {
    /// Reads the values of fields of a ticket, each with the field's name.
    pub(crate) async fn fields(
        &self,
        ticket: &TicketKey,
        names: &[String],
    ) -> Result<Vec<(String, String)>, ReadError> {
        let read = self.jira.field_values(ticket, names);
        Ok(failpoint::around("ingest.jira.fields", read).await?)
    }

    /// Reads the members of a role in a project; empty without such a role.
    pub(crate) async fn jira_role(
        &self,
        instance: Option<&InstanceName>,
        project: &str,
        name: &str,
    ) -> Result<jira::RoleMembers, ReadError> {
        let jira = self.jira.on(instance);
        let read = jira.role(project, name);
        let found = failpoint::around("ingest.jira.role", read).await?;
        Ok(found.unwrap_or_else(|| {
            tracing::warn!(
                project,
                name,
                "the project has no such role (ingest.jira_trigger_role)"
            );
            jira::RoleMembers::default()
        }))
    }
}

/// Awaits a list of tickets, at the one failpoint of such lists.
async fn await_list(
    search: impl Future<Output = Result<Vec<jira::IssueOutline>, jira::Error>>,
) -> Result<Vec<jira::IssueOutline>, ReadError> {
    Ok(failpoint::around("ingest.jira.list", search).await?)
}

/// Turns Jira's rejection of a condition into a result: it is permanent and concerns the rules.
fn split_rejection<T>(answer: Result<T, jira::Error>) -> Result<Result<T, String>, ReadError> {
    match answer {
        Ok(found) => Ok(Ok(found)),
        Err(jira::Error::Rejected { detail }) => Ok(Err(detail)),
        Err(error) => Err(error.into()),
    }
}
