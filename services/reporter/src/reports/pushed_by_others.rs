//! Report of a person's push to the branch of our pull request.

use domain::report::PushedByOthers;

use super::{Asked, Effects, Kind, Told, shows};
use crate::{effects::BackToDraft, message, rounds::RoundEvent};

impl Kind for PushedByOthers {
    fn effects(&self, _: &Asked<'_>) -> Effects {
        let pushed = RoundEvent::Pushed {
            branch: None,
            head: self.head.clone(),
            by: Some(self.by.clone()),
        };
        vec![
            Box::new(BackToDraft {
                pull_request: self.pull_request.clone(),
            }),
            shows(&self.pull_request.repository, pushed),
        ]
    }

    fn words(&self, _: &Told<'_>) -> Vec<String> {
        vec![message::pushed_by_others(&self.by, &self.pull_request, &self.head)]
    }
}
