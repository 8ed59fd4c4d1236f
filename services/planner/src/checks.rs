//! What the settings must be like. It stands apart from them because only the model's dialects know what they need.

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
        model::check(&self.model)
    }
}
