//! Validation of the planner's settings. It is separate from `config`, because the dialects in `model` know
//! which keys they need.

use std::net::SocketAddr;

use bootstrap::{ServiceConfig, settings::Error};

use crate::config::Config;
use crate::model;

impl ServiceConfig for Config {
    fn listen(&self) -> SocketAddr {
        self.planner.listen
    }

    fn telemetry(&self) -> &bootstrap::telemetry::Settings {
        &self.telemetry
    }

    fn check(&self) -> Result<(), Error> {
        self.planner.check(self.tls.is_some())?;
        model::check_models(&self.model)
    }
}
