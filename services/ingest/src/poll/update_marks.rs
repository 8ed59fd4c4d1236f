//! Repeated reads of a changed object on GitHub.

use domain::Timestamp;

/// Update times that the last reads of a pull request reported. GitHub reports whole seconds: a change within the second of
/// the first read is not visible in a listing, so only a second read is reliable.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UpdateMarks {
    updated: Option<Timestamp>,
    is_certain: bool,
}

impl UpdateMarks {
    /// True when no change is possible since the last read.
    pub(crate) fn know(self, updated: Option<Timestamp>) -> bool {
        self.is_certain && updated.is_some() && self.updated == updated
    }

    /// Records a read.
    pub(crate) fn saw(&mut self, updated: Option<Timestamp>) {
        self.is_certain = self.updated == updated;
        self.updated = updated;
    }

    /// True when the last two reads reported the same update time.
    pub(crate) const fn are_certain(self) -> bool {
        self.is_certain
    }

    /// Update time at the last read.
    pub(crate) const fn updated(self) -> Option<Timestamp> {
        self.updated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn update_is_certain_after_second_read() {
        let second = |second: i64| Some(Timestamp::from_unix_ms(second * 1_000));
        let mut looks = UpdateMarks::default();
        for (updated, is_known) in [
            (1, false),
            (1, false),
            (1, true),
            (2, false),
            (2, false),
            (2, true),
        ] {
            assert_eq!(looks.know(second(updated)), is_known, "{updated}");
            looks.saw(second(updated));
        }
    }
}
