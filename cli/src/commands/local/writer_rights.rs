//! Permissions that the writing account of GitHub lacks in a repository.

use std::time::Duration;

use domain::{RepositoryName, cause::format_error_chain};
use github::{
    GitHubWriter,
    permissions::{RequiredAppPermission, find_missing_permissions, list_delivery_permissions},
};

// The answer is one line among others, so it does not wait long.
const LIMIT: Duration = Duration::from_secs(15);

/// Rights of the writing account in a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WriterRights {
    /// GitHub reports no missing permission.
    Complete,
    /// Work does not begin without these permissions.
    Missing(Vec<String>),
    /// The App itself lacks one of these permissions, so no installation has it.
    MissingInApp(Vec<String>),
    /// GitHub did not answer.
    Unknown {
        /// Reason, in words.
        problem: String,
    },
}

impl WriterRights {
    /// Describes the rights, without the name of the repository.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Complete => "the writer may push branches and open pull requests".to_owned(),
            Self::Missing(rights) => format!(
                "the writer lacks {}: no work begins; accept the permissions where the App is installed, or give them to the token",
                rights.join(", ")
            ),
            Self::MissingInApp(rights) => format!(
                "the writer's App lacks {}: no work begins; give the permissions to the App, and accept them where it is installed",
                rights.join(", ")
            ),
            Self::Unknown { problem } => problem.clone(),
        }
    }
}

/// Compares the rights of the account with those that work needs. The permission for issues counts only where tickets
/// are issues.
pub(super) async fn find_writer_rights(
    settings: &github::Settings,
    repository: &RepositoryName,
    has_issues: bool,
) -> WriterRights {
    let unknown = |problem| WriterRights::Unknown { problem };
    let writer = match GitHubWriter::new(settings) {
        Ok(writer) => writer,
        Err(error) => return unknown(format_error_chain(&error)),
    };
    let needed = list_delivery_permissions(has_issues);
    let reading = Box::pin(compare_rights(&writer, repository, &needed));
    match tokio::time::timeout(LIMIT, reading).await {
        Ok(Ok(rights)) => rights,
        Ok(Err(error)) => unknown(format_error_chain(&error)),
        Err(_) => unknown(format!("no answer within {} s", LIMIT.as_secs())),
    }
}

async fn compare_rights(
    writer: &GitHubWriter,
    repository: &RepositoryName,
    needed: &[RequiredAppPermission],
) -> Result<WriterRights, github::Error> {
    let missing = writer.missing_permissions(repository, needed).await?;
    if missing.is_empty() {
        return Ok(WriterRights::Complete);
    }
    let names = missing.iter().map(ToString::to_string).collect();
    let account = writer.whoami().await?;
    let lacks_itself = !find_missing_permissions(&missing, &account.permissions).is_empty();
    Ok(if account.is_app && lacks_itself {
        WriterRights::MissingInApp(names)
    } else {
        WriterRights::Missing(names)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rights_are_named_with_remedy() {
        let rights = WriterRights::Missing(vec!["contents:write".to_owned(), "issues:write".to_owned()]);
        let words = rights.describe();
        assert!(words.contains("lacks contents:write, issues:write"), "{words}");
        assert!(words.contains("no work begins"), "{words}");
    }
}
