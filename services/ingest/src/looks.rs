//! When a look at something on GitHub need not be repeated.

use domain::Timestamp;

/// What the last looks at a pull request saw of its last change. GitHub tells whole seconds: what happens in the second of the
/// first look changes nothing that a listing shows, so only a second look can be relied on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looks {
    updated: Option<Timestamp>,
    is_certain: bool,
}

impl Looks {
    /// Whether nothing can have happened since the last look.
    pub(crate) fn know(self, updated: Option<Timestamp>) -> bool {
        self.is_certain && updated.is_some() && self.updated == updated
    }

    /// One more look.
    pub(crate) fn saw(&mut self, updated: Option<Timestamp>) {
        self.is_certain = self.updated == updated;
        self.updated = updated;
    }

    /// Whether the last two looks saw it as of the same second.
    pub(crate) const fn are_certain(self) -> bool {
        self.is_certain
    }

    /// As of the last look.
    pub(crate) const fn updated(self) -> Option<Timestamp> {
        self.updated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_known_when_two_looks_saw_it_as_of_the_same_second() {
        let second = |second: i64| Some(Timestamp::from_unix_ms(second * 1_000));
        let mut looks = Looks::default();
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
