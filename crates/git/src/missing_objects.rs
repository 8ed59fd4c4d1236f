//! Objects that an interrupted fetch left out, and the continuation that fetches only these.

use std::{collections::BTreeSet, ffi::OsString, time::Duration};

use domain::CommitId;

use crate::{
    BareRepository, Error, GitCredentials, GitTransport,
    cli::{self, CallTimeLimit},
    recovery::recover_partial_packs,
    transport::run_blocking_task,
};

// Limit of operations on the local disk.
const DISK_DEADLINE: Duration = Duration::from_secs(60 * 60);

// Maximum number of objects that one request names by their ids.
const MISSING_AT_ONCE: usize = 20_000;

// Maximum number of missing objects in one listing.
const MISSING_LISTED: usize = 150_000;

impl GitTransport {
    /// Continues an interrupted fetch: fetches the missing objects of branches whose head was received. True
    /// when the mirror contains objects that need a check.
    pub(crate) async fn resume(
        &self,
        url: &str,
        auth: Option<&GitCredentials>,
        first: &[&str],
        also_others: bool,
    ) -> Result<bool, Error> {
        let place = self.git_dir().to_owned();
        if !run_blocking_task(move || recover_partial_packs(&place)).await? {
            return Ok(false);
        }
        let heads = self.heads(url, auth).await?;
        let (wanted, others): (Vec<_>, Vec<_>) = heads
            .into_iter()
            .partition(|(branch, _)| first.contains(&branch.as_str()));
        let parts = [wanted, if also_others { others } else { Vec::new() }];
        for part in parts {
            let heads: Vec<CommitId> = part.into_iter().map(|(_, head)| head).collect();
            // A long listing is truncated, so the loop repeats it; without progress it ends.
            let mut before = Vec::new();
            loop {
                let missing = self.missing_objects(heads.clone()).await?;
                if missing.is_empty() || missing == before {
                    break;
                }
                for some in missing.chunks(MISSING_AT_ONCE) {
                    let some: Vec<&str> = some.iter().map(String::as_str).collect();
                    self.fetch(url, auth, &some, false).await?;
                }
                before = missing;
            }
        }
        Ok(true)
    }

    /// Lists objects that these heads refer to and the mirror lacks; heads that the mirror lacks contribute
    /// none.
    async fn missing_objects(&self, heads: Vec<CommitId>) -> Result<Vec<String>, Error> {
        let place = self.git_dir().to_owned();
        let here = run_blocking_task(move || {
            let mirror = BareRepository::open(&place)?;
            Ok(heads
                .into_iter()
                .filter(|head| mirror.contains(head))
                .collect::<Vec<_>>())
        });
        let here = here.await?;
        if here.is_empty() {
            return Ok(Vec::new());
        }
        let mut input: String = here.iter().map(|head| format!("{head}\n")).collect();
        input.push_str("--not\n--all\n");
        let listed = self.list_objects(&[], input).await?;
        if !listed.success {
            // A commit within the history is missing, and older releases fail instead of listing it; the next
            // fetch is complete.
            return Ok(Vec::new());
        }
        Ok(parse_missing(&listed.stdout))
    }

    /// Lists objects that the trees of these commits refer to and the mirror lacks.
    pub(crate) async fn missing_files(&self, commits: &BTreeSet<CommitId>) -> Result<Vec<String>, Error> {
        let input = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let listed = self.list_objects(&["--no-walk"], input).await?;
        if !listed.success {
            return Err(Error::Failed(cli::summarize_stderr(&listed.stderr).into()));
        }
        Ok(parse_missing(&listed.stdout))
    }

    /// Lists the objects of these commits, the missing ones with a mark.
    async fn list_objects(&self, options: &[&str], commits: String) -> Result<cli::GitOutput, Error> {
        let args = ["rev-list", "--objects", "--missing=print", "--quiet"];
        let args = args.iter().chain(options).chain(&["--stdin"]);
        let args: Vec<OsString> = args.map(Into::into).collect();
        let limit = CallTimeLimit::Total(DISK_DEADLINE);
        self.run(&args, commits.into(), ("", None), limit).await
    }
}

/// Parses the missing objects of a listing.
fn parse_missing(listed: &str) -> Vec<String> {
    let missing = listed.lines().filter_map(|line| line.strip_prefix('?'));
    let missing = missing.filter(|id| id.len() == 40).map(str::to_owned);
    missing.take(MISSING_LISTED).collect()
}
