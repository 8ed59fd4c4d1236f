//! TLS configuration that follows its files.

use std::sync::Arc;

use domain::cause::format_error_chain;
use parking_lot::Mutex;

use super::{
    Settings,
    material::{TlsFileContents, TlsMaterial},
};
use crate::settings::Error;

type BuildTlsConfig<C> = dyn Fn(TlsMaterial) -> Result<C, Error> + Send + Sync;

/// Configuration of one side of TLS, rebuilt when its files change.
pub(super) struct ReloadedConfig<C> {
    settings: Settings,
    build: Box<BuildTlsConfig<C>>,
    state: Mutex<ReloadState<C>>,
}

struct ReloadState<C> {
    config: Arc<C>,
    /// Files that it was built from.
    used: TlsFileContents,
    /// Logged reason why the newest files are not used.
    complaint: Option<Error>,
}

impl<C> ReloadedConfig<C> {
    /// Builds the first configuration.
    ///
    /// # Errors
    /// When the files cannot be used: no older configuration exists yet.
    pub(super) fn new(
        settings: &Settings,
        build: impl Fn(TlsMaterial) -> Result<C, Error> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let used = TlsFileContents::read(settings)?;
        let config = build(TlsMaterial::parse(&used)?)?;
        Ok(Self {
            settings: settings.clone(),
            build: Box::new(build),
            state: Mutex::new(ReloadState {
                config: Arc::new(config),
                used,
                complaint: None,
            }),
        })
    }

    /// Configuration of the current files, or the previous one while they cannot be used.
    ///
    /// Refused files are checked again at each call, because a certificate may become valid later.
    pub(super) fn current(&self) -> Arc<C> {
        let mut state = self.state.lock();
        // Comparing the bytes costs a few microseconds per handshake, and notices the links that Kubernetes
        // swaps.
        let read = match TlsFileContents::read(&self.settings) {
            Ok(read) if read == state.used => return Arc::clone(&state.config),
            read => read,
        };
        match read.and_then(|read| self.make(read)) {
            Ok((config, used)) => {
                tracing::info!(file = %self.settings.cert.display(), "a new certificate is in use");
                *state = ReloadState {
                    config: Arc::new(config),
                    used,
                    complaint: None,
                };
            }
            Err(error) => state.refuse(error),
        }
        Arc::clone(&state.config)
    }

    fn make(&self, contents: TlsFileContents) -> Result<(C, TlsFileContents), Error> {
        let material = TlsMaterial::parse(&contents)?;
        Ok(((self.build)(material)?, contents))
    }
}

impl<C> ReloadState<C> {
    /// Logs each reason once.
    fn refuse(&mut self, error: Error) {
        if self.complaint.as_ref() != Some(&error) {
            tracing::warn!(error = %format_error_chain(&error), "a new certificate is not used, the former one stays");
            self.complaint = Some(error);
        }
    }
}
