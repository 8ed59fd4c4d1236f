//! Check of the validity of the certificates in the settings.

use std::{path::Path, time::Duration};

use certs::CertificateDetails;
use domain::Timestamp;

use super::{DoctorFinding, DoctorReport, DoctorSections, remedy::Remedy};

// Warning time before an expiry: enough for an operator to return from a holiday.
const SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);
const DAY_S: u64 = 24 * 60 * 60;

/// Adds a finding for each certificate file in the settings.
pub(super) fn check_certificates(findings: &mut DoctorReport, sections: &DoctorSections, now: Timestamp) {
    let tls = sections.tls.as_ref();
    let nats = sections.nats.as_ref();
    let authority_of_redis = sections.redis.as_ref().and_then(|redis| redis.ca.as_deref());
    let files = [
        ("tls.cert", tls.map(|tls| tls.cert.as_path()), RENEW),
        ("tls.ca", tls.map(|tls| tls.ca.as_path()), REPLACE),
        ("nats.cert", nats.and_then(|nats| nats.cert.as_deref()), RENEW),
        ("nats.ca", nats.and_then(|nats| nats.ca.as_deref()), REPLACE),
        ("redis.ca", authority_of_redis, REPLACE),
    ];
    let mut has_certificates = false;
    for (key, path, remedy) in files {
        if let Some(path) = path {
            has_certificates = true;
            findings.add(key, inspect_certificate_file(path, &remedy, now));
        }
    }
    if !has_certificates {
        let none = "no [tls]: services communicate without TLS, as on one machine".to_owned();
        findings.add("certificates", DoctorFinding::Skipped(none));
    }
}

/// Remedy for an expiring certificate, as text and as link.
struct ExpiryRemedy(&'static str, Remedy);

const RENEW: ExpiryRemedy = ExpiryRemedy(
    "`journeyman certs renew DIR` makes new ones, with DIR as `certs init` had it",
    Remedy::RenewCertificates,
);
const REPLACE: ExpiryRemedy = ExpiryRemedy(
    "a new authority is made by `journeyman certs init` in a new folder; `journeyman docs tls` has the order of the steps",
    Remedy::NewAuthority,
);

fn inspect_certificate_file(path: &Path, remedy: &ExpiryRemedy, now: Timestamp) -> DoctorFinding {
    let place = path.display();
    let read = match std::fs::read_to_string(path) {
        Ok(read) => read,
        Err(error) => {
            return DoctorFinding::Failed(format!("cannot read {place}: {error}"), Remedy::Certificates);
        }
    };
    match certs::read_certificates(&read) {
        Ok(seen) => judge_expiry(&place.to_string(), &seen, remedy, now),
        Err(error) => DoctorFinding::Failed(format!("{place}: {error}"), Remedy::Certificates),
    }
}

/// Finding about the certificate that expires first.
fn judge_expiry(
    place: &str,
    seen: &[CertificateDetails],
    ExpiryRemedy(advice, remedy): &ExpiryRemedy,
    now: Timestamp,
) -> DoctorFinding {
    let Some(first) = seen.iter().min_by_key(|seen| seen.not_after) else {
        return DoctorFinding::Failed(format!("{place}: no certificate"), Remedy::Certificates);
    };
    let (name, until) = (&first.name, first.not_after);
    if until <= now {
        return DoctorFinding::Failed(format!("{place}: {name} has expired, on {until}"), *remedy);
    }
    let left = until.since(now);
    if left < SOON {
        let days = left.as_secs() / DAY_S;
        return DoctorFinding::Warn(format!(
            "{place}: {name} expires in {days} days, on {until}; {advice}"
        ));
    }
    DoctorFinding::Ok(format!("{place}: {name} until {until}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_ms(1_800_000_000_000);

    fn judge_end_in(days: &[i64]) -> DoctorFinding {
        let seen: Vec<CertificateDetails> = days
            .iter()
            .map(|days| CertificateDetails {
                name: "planner".to_owned(),
                hosts: Vec::new(),
                identities: Vec::new(),
                not_after: NOW.plus_ms(days * 24 * 60 * 60 * 1000),
            })
            .collect();
        judge_expiry("tls.crt", &seen, &RENEW, NOW)
    }

    #[test]
    fn certificate_expiry_warns_within_two_weeks() {
        assert!(matches!(judge_end_in(&[15]), DoctorFinding::Ok(_)));
        let DoctorFinding::Warn(words) = judge_end_in(&[300, 3]) else {
            panic!("no warning")
        };
        assert!(
            words.contains("planner expires in 3 days") && words.contains("certs renew"),
            "{words}"
        );
        for days in [&[0][..], &[-1, 300]] {
            let DoctorFinding::Failed(words, Remedy::RenewCertificates) = judge_end_in(days) else {
                panic!("no failure")
            };
            assert!(words.contains("planner has expired"), "{words}");
        }
    }
}
