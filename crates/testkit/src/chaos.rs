//! Trouble drawn from a seed. A draw depends on the seed and a label only, not on what else was drawn before.

use std::time::Duration;

use crate::fault::{Fault, FaultPoint};

/// How long a limited caller is asked to wait, in seconds.
const LIMITED_S: u32 = 1;

/// What a seed says about one label, such as the third write to one path.
pub(crate) fn draw(seed: u64, label: &str) -> fastrand::Rng {
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("{seed} {label}").as_bytes());
    let first = digest.as_ref().iter().take(8);
    fastrand::Rng::with_seed(first.fold(0, |seed, byte| (seed << 8) | u64::from(*byte)))
}

/// Whether something happens that happens so many times in a thousand.
pub(crate) fn happens(draw: &mut fastrand::Rng, per_thousand: u32) -> bool {
    draw.u32(0..1000) < per_thousand
}

/// Writes that go wrong by chance: applied and answered by an error, cut or left without an answer for a while, refused
/// without effect, limited.
#[derive(Debug, Clone)]
pub struct WriteFaults {
    /// Decides which; the same seed gives the same fault to the nth write of a path.
    pub seed: u64,
    /// How many writes of a thousand.
    pub per_thousand: u32,
    /// How long an answer is held back that the caller should not wait for.
    pub hold: Duration,
}

impl WriteFaults {
    /// The fault that the nth write (from 0) to a path meets, if any. `limit` is the status of the service's rate limit.
    pub(crate) fn of(&self, method: &str, path: &str, nth: u64, limit: u16) -> Option<Fault> {
        let mut draw = draw(self.seed, &format!("{method} {path} {nth}"));
        if !is_write(method, path) || !happens(&mut draw, self.per_thousand) {
            return None;
        }
        let applied = Fault::new(path, 1, 502).after_effect();
        Some(match draw.u32(0..5) {
            0 => applied,
            1 => applied.cut(),
            2 => applied.cut().held(self.hold),
            3 => Fault::new(path, 1, 502),
            // To git a 403 says that the credentials are no good.
            _ if path.contains("git-receive-pack") => Fault::new(path, 1, 429).retry_after(LIMITED_S),
            _ => Fault::new(path, 1, limit).retry_after(LIMITED_S),
        })
    }
}

fn is_write(method: &str, path: &str) -> bool {
    let reads = ["/search/jql", "/access_tokens", "/git-upload-pack"];
    method != "GET" && !reads.iter().any(|read| path.contains(read))
}

/// A fault's name, to count it by.
pub(crate) fn name(fault: &Fault) -> String {
    match (fault.point, fault.cut, fault.hold.is_zero()) {
        (FaultPoint::AfterEffect, true, false) => "applied, then silence".to_owned(),
        (FaultPoint::AfterEffect, true, true) => "applied, then cut".to_owned(),
        (FaultPoint::AfterEffect, false, _) => format!("applied, then {}", fault.status),
        (FaultPoint::BeforeEffect, true, _) => "cut without effect".to_owned(),
        (FaultPoint::BeforeEffect, false, _) => format!("{} without effect", fault.status),
    }
}

/// Webhooks that come late, and so out of order, and more than once.
#[derive(Debug, Clone)]
pub struct DeliveryFaults {
    /// Decides which; the same seed gives the same to the nth delivery.
    pub seed: u64,
    /// How many deliveries of a thousand come late.
    pub late_per_thousand: u32,
    /// How late at most.
    pub latest: Duration,
    /// How many of a thousand come more than once.
    pub repeated_per_thousand: u32,
    /// How often these come in all.
    pub copies: u32,
}

impl DeliveryFaults {
    /// The delays after which the nth delivery is sent, one for each copy.
    pub(crate) fn delays(&self, nth: u64) -> Vec<Duration> {
        let mut draw = draw(self.seed, &format!("delivery {nth}"));
        let is_late = happens(&mut draw, self.late_per_thousand);
        let copies = if happens(&mut draw, self.repeated_per_thousand) {
            self.copies.max(1)
        } else {
            1
        };
        let delay = |_| {
            if is_late {
                self.latest.mul_f64(draw.f64())
            } else {
                Duration::ZERO
            }
        };
        (0..copies).map(delay).collect()
    }
}

/// CI that is done before the push which it belongs to is answered.
#[derive(Debug, Clone)]
pub struct EarlyChecks {
    /// Decides which pushes; the same seed gives the same to a branch.
    pub seed: u64,
    /// How many branches of a thousand.
    pub per_thousand: u32,
    /// How long the answer to the push is held back, so that the webhooks overtake it.
    pub hold: Duration,
}

impl EarlyChecks {
    pub(crate) fn strikes(&self, branch: &str) -> bool {
        happens(
            &mut draw(self.seed, &format!("checks of {branch}")),
            self.per_thousand,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(seed: u64) -> Vec<Option<String>> {
        let faults = WriteFaults {
            seed,
            per_thousand: 500,
            hold: Duration::from_secs(1),
        };
        let of = |nth| faults.of("POST", "/comments", nth, 403).as_ref().map(name);
        (0..200).map(of).collect()
    }

    #[test]
    fn a_seed_repeats_its_faults_and_plays_each_kind() {
        assert_eq!(names(7), names(7));
        assert_ne!(names(7), names(8));
        let kinds: std::collections::BTreeSet<_> = names(7).into_iter().flatten().collect();
        assert_eq!(
            Vec::from_iter(kinds),
            [
                "403 without effect",
                "502 without effect",
                "applied, then 502",
                "applied, then cut",
                "applied, then silence"
            ]
        );
    }

    #[test]
    fn reads_meet_no_fault_and_git_is_never_told_that_its_credentials_are_no_good() {
        let faults = WriteFaults {
            seed: 1,
            per_thousand: 1000,
            hold: Duration::ZERO,
        };
        assert!(faults.of("GET", "/pulls", 0, 403).is_none());
        assert!(faults.of("POST", "/rest/api/3/search/jql", 0, 429).is_none());
        let push = |nth| faults.of("POST", "/git/acme/shop.git/git-receive-pack", nth, 403);
        assert!((0..200).all(|nth| push(nth).is_some_and(|fault| fault.status != 403)));
    }

    #[test]
    fn a_repeated_delivery_comes_as_often_as_was_said() {
        let faults = DeliveryFaults {
            seed: 3,
            late_per_thousand: 500,
            latest: Duration::from_secs(2),
            repeated_per_thousand: 500,
            copies: 10,
        };
        let counts: std::collections::BTreeSet<usize> = (0..50).map(|nth| faults.delays(nth).len()).collect();
        assert_eq!(Vec::from_iter(counts), [1, 10]);
        assert!(
            (0..50)
                .flat_map(|nth| faults.delays(nth))
                .all(|delay| delay <= faults.latest)
        );
    }
}
