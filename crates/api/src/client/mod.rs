//! Client of the API, with one part for each subject.

mod actions;
mod connection;
mod installation;
mod jobs;
mod pull_requests;
mod run_stream;
mod runs;
mod tickets;

use std::sync::Arc;

use reqwest::Method;
use secrecy::SecretString;

use self::connection::{ClientConnection, accept_unknown_path};
pub use self::{
    actions::ApiAction,
    connection::ActingPerson,
    installation::{DeadLetterClient, InstallationClient},
    jobs::{JobClient, build_implement_job},
    pull_requests::{PullRequestClient, PullRequestSubmission},
    run_stream::{RunEvent, RunJournalEntry},
    runs::RunClient,
    tickets::TicketClient,
};
use crate::{Error, types::CallerView};

/// Client of the API with its token, with one part for each subject. A clone is cheap.
#[derive(Clone)]
pub struct Client {
    connection: Arc<ClientConnection>,
    runs: RunClient,
    tickets: TicketClient,
    jobs: JobClient,
    pull_requests: PullRequestClient,
    dead_letters: DeadLetterClient,
    installation: InstallationClient,
}

impl Client {
    /// Creates a client of the API at `url`.
    ///
    /// # Errors
    /// When the HTTP client cannot be created.
    pub fn new(url: &str, token: SecretString) -> Result<Self, Error> {
        ClientConnection::new(url, token).map(Self::of)
    }

    fn of(connection: ClientConnection) -> Self {
        let connection = Arc::new(connection);
        Self {
            runs: RunClient {
                connection: Arc::clone(&connection),
            },
            tickets: TicketClient {
                connection: Arc::clone(&connection),
            },
            jobs: JobClient {
                connection: Arc::clone(&connection),
            },
            pull_requests: PullRequestClient {
                connection: Arc::clone(&connection),
            },
            dead_letters: DeadLetterClient {
                connection: Arc::clone(&connection),
            },
            installation: InstallationClient {
                connection: Arc::clone(&connection),
            },
            connection,
        }
    }

    /// Returns the client on behalf of a person. Its token must be one that may act for people.
    #[must_use]
    pub fn on_behalf_of(self, person: ActingPerson) -> Self {
        let mut connection = ClientConnection::clone(&self.connection);
        connection.person = Some(person);
        Self::of(connection)
    }

    /// Returns the client with the person's name at the identity provider. Journals contain it next to the
    /// display name.
    #[must_use]
    pub fn with_subject(self, subject: String) -> Self {
        let mut connection = ClientConnection::clone(&self.connection);
        connection.subject = Some(subject);
        Self::of(connection)
    }

    /// The base URL, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.connection.url
    }

    /// The token of the calls.
    pub fn token(&self) -> &SecretString {
        &self.connection.token
    }

    /// The person on whose behalf the calls are made; `None` for a client that acts for itself.
    pub fn person(&self) -> Option<&ActingPerson> {
        self.connection.person.as_ref()
    }

    /// Runs, their journals, and the orders of people to them.
    pub const fn runs(&self) -> &RunClient {
        &self.runs
    }

    /// Tickets, and the orders of people to the work on them.
    pub const fn tickets(&self) -> &TicketClient {
        &self.tickets
    }

    /// Requests for jobs, and previews of them.
    pub const fn jobs(&self) -> &JobClient {
        &self.jobs
    }

    /// Requests for pull requests of branches that exist already.
    pub const fn pull_requests(&self) -> &PullRequestClient {
        &self.pull_requests
    }

    /// Records that a service could not handle.
    pub const fn dead_letters(&self) -> &DeadLetterClient {
        &self.dead_letters
    }

    /// Activity, cost, pools, rules and credentials of the installation, and the stop of all planners.
    pub const fn installation(&self) -> &InstallationClient {
        &self.installation
    }

    /// Reads the name and the role of the caller. `None` for an API of an earlier release without this path,
    /// which has then not checked the token.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn caller(&self) -> Result<Option<CallerView>, Error> {
        accept_unknown_path(self.connection.call(Method::GET, "/v1/me", None).await)
    }

    /// Returns the effects of the call without performing them.
    ///
    /// # Errors
    /// Those of the API with their texts, including the reason why the call would fail.
    pub async fn would(&self, act: ApiAction<'_>) -> Result<Vec<String>, Error> {
        self.connection.would(act).await
    }

    /// Performs the call.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn act(&self, act: ApiAction<'_>) -> Result<(), Error> {
        self.connection.act(act).await
    }
}
