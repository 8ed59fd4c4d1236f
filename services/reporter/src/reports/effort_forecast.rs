//! Report of the expected effort.

use domain::report::EffortForecast;

use super::{NoticeContext, ReportKind};
use crate::message;

impl ReportKind for EffortForecast {
    fn words(&self, _: &NoticeContext<'_>) -> Vec<String> {
        vec![message::render_forecast(&self.forecast)]
    }
}
