//! A configuration that follows its files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::cause::chain;

use super::{
    Settings,
    material::{Contents, Material},
};
use crate::settings::Error;

type Build<C> = dyn Fn(Material) -> Result<C, Error> + Send + Sync;

/// A configuration of one side of TLS, made anew when its files change.
pub(super) struct Reloaded<C> {
    settings: Settings,
    build: Box<Build<C>>,
    state: Mutex<State<C>>,
}

struct State<C> {
    config: Arc<C>,
    /// What it was made of.
    used: Contents,
    /// Why the newest files are not used, as it was logged.
    complaint: Option<Error>,
}

impl<C> Reloaded<C> {
    /// # Errors
    /// When the files cannot be used: there is no older configuration yet.
    pub(super) fn new(
        settings: &Settings,
        build: impl Fn(Material) -> Result<C, Error> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let used = Contents::read(settings)?;
        let config = build(Material::parse(&used)?)?;
        Ok(Self {
            settings: settings.clone(),
            build: Box::new(build),
            state: Mutex::new(State {
                config: Arc::new(config),
                used,
                complaint: None,
            }),
        })
    }

    /// The configuration of the files as they are now; the former one as long as they cannot be used. Files that are refused
    /// are looked at again each time: a certificate may be valid a moment later.
    pub(super) fn current(&self) -> Arc<C> {
        let mut state = self.lock();
        let read = match Contents::read(&self.settings) {
            Ok(read) if read == state.used => return Arc::clone(&state.config),
            read => read,
        };
        match read.and_then(|read| self.make(read)) {
            Ok((config, used)) => {
                tracing::info!(file = %self.settings.cert.display(), "a new certificate is in use");
                *state = State {
                    config: Arc::new(config),
                    used,
                    complaint: None,
                };
            }
            Err(error) => state.refuse(error),
        }
        Arc::clone(&state.config)
    }

    fn make(&self, contents: Contents) -> Result<(C, Contents), Error> {
        let material = Material::parse(&contents)?;
        Ok(((self.build)(material)?, contents))
    }

    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> State<C> {
    /// Once for each reason.
    fn refuse(&mut self, error: Error) {
        if self.complaint.as_ref() != Some(&error) {
            tracing::warn!(error = %chain(&error), "a new certificate is not used, the former one stays");
            self.complaint = Some(error);
        }
    }
}
