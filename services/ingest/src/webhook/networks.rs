//! Networks from which webhooks are accepted. The check precedes the signature and never replaces it.

use std::net::IpAddr;

use bootstrap::settings::TextList;
use ipnet::IpNet;

/// Setting `ingest.webhook_networks`.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebhookNetworks(Vec<IpNet>);

impl WebhookNetworks {
    /// Parses the setting. The error names the invalid entry.
    pub(crate) fn new(setting: &TextList) -> Result<Self, String> {
        let read = |text: &String| {
            text.parse::<IpNet>()
                .map_err(|_| format!("{text:?} must be a network such as 192.30.252.0/22"))
        };
        setting.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// True when a webhook may come from the address. An empty setting admits every peer; otherwise an unknown
    /// address is rejected.
    pub(crate) fn admit(&self, peer: Option<IpAddr>) -> bool {
        // A dual-stack listener reports IPv4 peers as IPv4-mapped IPv6 addresses.
        let peer = peer.map(|peer| peer.to_canonical());
        let is_inside = |peer| self.0.iter().any(|network| network.contains(&peer));
        self.0.is_empty() || peer.is_some_and(is_inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_networks(texts: &[&str]) -> WebhookNetworks {
        let texts = texts.iter().map(|&text| text.to_owned());
        WebhookNetworks::new(&TextList(texts.collect())).expect("networks")
    }

    #[test]
    fn empty_networks_admit_every_peer() {
        let some = build_networks(&["192.30.252.0/22", "2a0a:a440::/29"]);
        for (peer, is_admitted) in [
            ("192.30.253.7", true),
            ("192.31.0.1", false),
            ("::ffff:192.30.253.7", true),
            ("2a0a:a441::1", true),
            ("2a0b::1", false),
        ] {
            let peer: IpAddr = peer.parse().expect("address");
            assert_eq!(some.admit(Some(peer)), is_admitted, "{peer}");
            assert!(build_networks(&[]).admit(Some(peer)), "{peer}");
        }
        assert!(!some.admit(None));
        assert!(build_networks(&[]).admit(None));
    }
}
