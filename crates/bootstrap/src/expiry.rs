//! Gauge of the time until credentials expire, for alerts.

use std::{
    collections::BTreeMap,
    sync::{LazyLock, Once},
};

use domain::{CredentialEnds, Timestamp};
use opentelemetry::{KeyValue, global};
use parking_lot::Mutex;

use crate::read_wall_clock;

/// End of each credential, by its section of the settings. One map per process, as its meters are.
static ENDS: LazyLock<Mutex<BTreeMap<String, Timestamp>>> = LazyLock::new(Mutex::default);
static OBSERVED: Once = Once::new();

/// Publishes the ends of credentials as the gauge `journeyman.credential.expires`, in seconds from now. A
/// later call replaces the end of the same section.
pub fn publish_credential_ends(ends: &CredentialEnds) {
    for end in &ends.ends {
        let section = match &end.instance {
            Some(name) => format!("jira.{name}"),
            None => end.kind.clone(),
        };
        record_end(&section, end.ends);
    }
}

fn record_end(credential: &str, ends: Timestamp) {
    let mut known = ENDS.lock();
    known.insert(credential.to_owned(), ends);
    // A collection holds the lock of the meters while it runs the callback, which locks this map. The
    // registration takes both in the other order, so the map is unlocked before.
    drop(known);
    OBSERVED.call_once(register_expiry_gauge);
}

fn register_expiry_gauge() {
    global::meter("journeyman")
        .i64_observable_gauge("journeyman.credential.expires")
        .with_unit("s")
        .with_callback(|gauge| {
            let now = read_wall_clock();
            let known = ENDS.lock();
            for (credential, ends) in known.iter() {
                let name = KeyValue::new("journeyman.credential", credential.clone());
                gauge.observe(seconds_to(*ends, now), &[name]);
            }
        })
        .build();
}

/// Seconds until an instant; negative afterwards, so that the alert stays.
const fn seconds_to(ends: Timestamp, now: Timestamp) -> i64 {
    ends.unix_s() - now.unix_s()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expired_credential_is_negative_and_latest_counts() {
        let at = |day: &str| Timestamp::parse(&format!("{day}T00:00:00Z")).expect("a day");
        assert_eq!(seconds_to(at("2027-01-31"), at("2027-01-30")), 86_400);
        assert_eq!(seconds_to(at("2027-01-31"), at("2027-02-01")), -86_400);
        let of = |instance: Option<&str>, day| domain::CredentialEnd {
            kind: "of_a_test".to_owned(),
            instance: instance.map(|name| name.parse().expect("instance")),
            ends: at(day),
        };
        publish_credential_ends(&CredentialEnds {
            ends: vec![of(None, "2027-01-31"), of(Some("test"), "2027-02-28")],
        });
        publish_credential_ends(&CredentialEnds {
            ends: vec![of(None, "2028-01-31")],
        });
        let known = ENDS.lock();
        assert_eq!(known.get("of_a_test"), Some(&at("2028-01-31")));
        assert_eq!(known.get("jira.test"), Some(&at("2027-02-28")));
    }
}
