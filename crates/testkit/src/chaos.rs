//! Faults drawn from a seed. A draw depends on the seed and a label alone, never on earlier draws.

use std::time::Duration;

use crate::fault::{FaultPoint, ServiceFault};

/// `retry-after` of a rate-limited answer, in seconds.
const LIMITED_S: u32 = 1;

/// Returns the generator for a label, such as the third write to one path. Equal seeds and labels give equal
/// generators.
pub(crate) fn create_generator(seed: u64, label: &str) -> fastrand::Rng {
    // A digest spreads similar labels over all seeds; its first eight bytes are enough.
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("{seed} {label}").as_bytes());
    let first = digest.as_ref().iter().take(8);
    fastrand::Rng::with_seed(first.fold(0, |seed, byte| (seed << 8) | u64::from(*byte)))
}

/// Draws whether an event happens that has a probability of `per_thousand` in 1,000.
pub(crate) fn draw_event(draw: &mut fastrand::Rng, per_thousand: u32) -> bool {
    draw.u32(0..1000) < per_thousand
}

/// Random faults of write requests: an error after the effect, a broken or delayed answer after the effect,
/// an error without effect, a rate limit.
#[derive(Debug, Clone)]
pub struct WriteFaults {
    /// Seed. The same seed gives the same fault to the nth write of a path.
    pub seed: u64,
    /// Share of writes that meet a fault, in thousandths.
    pub per_thousand: u32,
    /// Delay of an answer that should outlast the caller's patience.
    pub hold: Duration,
}

impl WriteFaults {
    /// Returns the fault that the nth write (from 0) to a path meets. `limit` is the HTTP status of the
    /// service's rate limit.
    pub(crate) fn of(&self, method: &str, path: &str, nth: u64, limit: u16) -> Option<ServiceFault> {
        let mut draw = create_generator(self.seed, &format!("{method} {path} {nth}"));
        if !is_write(method, path) || !draw_event(&mut draw, self.per_thousand) {
            return None;
        }
        let applied = ServiceFault::new(path, 1, 502).after_effect();
        Some(match draw.u32(0..5) {
            0 => applied,
            1 => applied.cut(),
            2 => applied.cut().held(self.hold),
            3 => ServiceFault::new(path, 1, 502),
            // Git takes a 403 as rejected credentials and does not retry, so a rate-limited push gets a 429
            // instead.
            _ if path.contains("git-receive-pack") => ServiceFault::new(path, 1, 429).retry_after(LIMITED_S),
            _ => ServiceFault::new(path, 1, limit).retry_after(LIMITED_S),
        })
    }
}

fn is_write(method: &str, path: &str) -> bool {
    // These calls are POST requests without an effect on the service, so they count as reads.
    let reads = ["/search/jql", "/access_tokens", "/git-upload-pack"];
    method != "GET" && !reads.iter().any(|read| path.contains(read))
}

/// Returns the name under which faults of this kind are counted.
pub(crate) fn describe_fault(fault: &ServiceFault) -> String {
    match (fault.point, fault.cut, fault.hold.is_zero()) {
        (FaultPoint::AfterEffect, true, false) => "applied, then silence".to_owned(),
        (FaultPoint::AfterEffect, true, true) => "applied, then cut".to_owned(),
        (FaultPoint::AfterEffect, false, _) => format!("applied, then {}", fault.status),
        (FaultPoint::BeforeEffect, true, _) => "cut without effect".to_owned(),
        (FaultPoint::BeforeEffect, false, _) => format!("{} without effect", fault.status),
    }
}

/// Random faults of webhook deliveries: late (therefore out of order) and repeated.
#[derive(Debug, Clone)]
pub struct DeliveryFaults {
    /// Seed. The same seed gives the same faults to the nth delivery.
    pub seed: u64,
    /// Share of late deliveries, in thousandths.
    pub late_per_thousand: u32,
    /// Longest delay of a late delivery.
    pub latest: Duration,
    /// Share of repeated deliveries, in thousandths.
    pub repeated_per_thousand: u32,
    /// Total number of copies of a repeated delivery.
    pub copies: u32,
}

impl DeliveryFaults {
    /// Returns the delays after which the nth delivery is sent, one for each copy.
    pub(crate) fn delays(&self, nth: u64) -> Vec<Duration> {
        let mut draw = create_generator(self.seed, &format!("delivery {nth}"));
        let is_late = draw_event(&mut draw, self.late_per_thousand);
        let copies = if draw_event(&mut draw, self.repeated_per_thousand) {
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

/// CI that completes before the push that it checks is answered.
#[derive(Debug, Clone)]
pub struct EarlyChecks {
    /// Seed. The same seed gives the same decision to a branch name.
    pub seed: u64,
    /// Share of branches whose checks are early, in thousandths.
    pub per_thousand: u32,
    /// Delay of the push's answer, so that the webhooks arrive first.
    pub hold: Duration,
}

impl EarlyChecks {
    pub(crate) fn strikes(&self, branch: &str) -> bool {
        draw_event(
            &mut create_generator(self.seed, &format!("checks of {branch}")),
            self.per_thousand,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_fault_names(seed: u64) -> Vec<Option<String>> {
        let faults = WriteFaults {
            seed,
            per_thousand: 500,
            hold: Duration::from_secs(1),
        };
        let of = |nth| {
            faults
                .of("POST", "/comments", nth, 403)
                .as_ref()
                .map(describe_fault)
        };
        (0..200).map(of).collect()
    }

    #[test]
    fn seed_repeats_every_kind_of_fault() {
        assert_eq!(list_fault_names(7), list_fault_names(7));
        assert_ne!(list_fault_names(7), list_fault_names(8));
        let kinds: std::collections::BTreeSet<_> = list_fault_names(7).into_iter().flatten().collect();
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
    fn faults_spare_reads_and_git_credentials() {
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
    fn repeated_delivery_has_configured_copies() {
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
