//! Routing rules that isolate a pod from its network. The ephemeral container of the round `partition`
//! applies them.
//!
//! A lost node sends no reset and no refusal: it is silent. Network policies do not imitate that. Most
//! engines leave established connections open, and some refuse new ones with an answer. Routing rules apply
//! to every packet of the pod, independent of the network plugin. They block both directions except for the
//! pod's loopback addresses. Their removal restores the former state.

use std::{io, time::Duration};

use anyhow::Context;
use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink::SocketAddrNetlink, recv,
        sendto, socket_with,
    },
};
use tokio::signal::unix::{SignalKind, signal};

// `RTM_NEWRULE` and `RTM_DELRULE` of `linux/rtnetlink.h`.
const NEW_RULE: u16 = 32;
const DELETE_RULE: u16 = 33;
/// `NLM_F_REQUEST | NLM_F_ACK`, and the same with `NLM_F_CREATE | NLM_F_EXCL`.
const REQUEST: u16 = 0x005;
const CREATE: u16 = 0x605;
// `FRA_DST`, `FRA_PRIORITY` and `FRA_TABLE` of `linux/fib_rules.h`.
const DESTINATION: u16 = 1;
const PRIORITY: u16 = 6;
const TABLE: u16 = 15;
// `FR_ACT_TO_TBL` and `FR_ACT_BLACKHOLE` of the same header.
const LOOK_UP: u8 = 1;
const DROP: u8 = 6;
/// `RT_TABLE_LOCAL`, the table of the pod's own addresses.
const LOCAL: u8 = 255;

/// IP version of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleFamily {
    V4,
    V6,
}

impl RuleFamily {
    const fn number(self) -> u8 {
        match self {
            Self::V4 => 2,
            Self::V6 => 10,
        }
    }

    /// Returns the loopback network and its prefix length.
    fn loopback(self) -> (Vec<u8>, u8) {
        match self {
            Self::V4 => (vec![127, 0, 0, 0], 8),
            Self::V6 => ([vec![0; 15], vec![1]].concat(), 128),
        }
    }
}

/// Routing rule that drops packets or resolves them in the local table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoutingRule {
    /// Default rule of every network namespace: the pod's own addresses come first.
    Local { priority: u32 },
    /// Rule for the loopback network alone.
    Loopback { priority: u32 },
    /// Rule that drops every packet.
    DropAll { priority: u32 },
}

/// Default rule of a new network namespace.
const FIRST: RoutingRule = RoutingRule::Local { priority: 0 };
// Rules that replace the default rule. The dropping rule is added last, so that no packet is lost before
// loopback has its own rule.
const ISOLATING: [RoutingRule; 3] = [
    RoutingRule::Loopback { priority: 5 },
    RoutingRule::Local { priority: 20 },
    RoutingRule::DropAll { priority: 10 },
];

impl RoutingRule {
    /// Encodes the netlink request that adds or deletes this rule.
    fn encode(self, family: RuleFamily, kind: u16) -> Vec<u8> {
        let (priority, action, is_loopback) = match self {
            Self::Local { priority } => (priority, LOOK_UP, false),
            Self::Loopback { priority } => (priority, LOOK_UP, true),
            Self::DropAll { priority } => (priority, DROP, false),
        };
        let (address, bits) = family.loopback();
        let table = if action == LOOK_UP { LOCAL } else { 0 };
        // `struct fib_rule_hdr`: family, two prefix lengths, type of service, table, two reserved bytes,
        // action, flags.
        let mut body = vec![
            family.number(),
            if is_loopback { bits } else { 0 },
            0,
            0,
            table,
            0,
            0,
            action,
        ];
        body.extend(0_u32.to_ne_bytes());
        body.extend(encode_attribute(PRIORITY, &priority.to_ne_bytes()));
        if action == LOOK_UP {
            body.extend(encode_attribute(TABLE, &u32::from(LOCAL).to_ne_bytes()));
        }
        if is_loopback {
            body.extend(encode_attribute(DESTINATION, &address));
        }
        let flags = if kind == NEW_RULE { CREATE } else { REQUEST };
        // The netlink header has 16 bytes.
        let length = u32::try_from(16 + body.len()).unwrap_or(u32::MAX);
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        // Sequence number and sender stay zero, because each request waits for its answer before the next.
        message.extend([0; 8]);
        message.extend(body);
        message
    }
}

/// Encodes a netlink attribute. All values here have a length that needs no padding.
fn encode_attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat()
}

/// Sends a netlink request and waits for the kernel's acknowledgment.
fn ask_kernel(message: &[u8]) -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    sendto(
        &socket,
        message,
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )?;
    let mut answer = [0; 256];
    // The answer is an `NLMSG_ERROR`: a header of 16 bytes, then the negated error number.
    let (count, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    let code = answer
        .get(16..20)
        .filter(|_| count >= 20)
        .and_then(|bytes| bytes.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Isolates all address families of the pod and returns them. A node may lack IPv6.
fn isolate_network() -> anyhow::Result<Vec<RuleFamily>> {
    let mut isolated = Vec::new();
    for family in [RuleFamily::V4, RuleFamily::V6] {
        match isolate_family(family) {
            Ok(()) => isolated.push(family),
            Err(error) if is_absent(&error) && family == RuleFamily::V6 => {}
            Err(error) => {
                restore_rules(&isolated);
                return Err(error).context("cannot change the routing rules; this takes NET_ADMIN");
            }
        }
    }
    Ok(isolated)
}

fn is_absent(error: &io::Error) -> bool {
    let absent = [Errno::AFNOSUPPORT, Errno::OPNOTSUPP];
    absent
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn isolate_family(family: RuleFamily) -> io::Result<()> {
    let mut added = Vec::new();
    let changed = ISOLATING
        .iter()
        .try_for_each(|rule| {
            ask_kernel(&rule.encode(family, NEW_RULE))?;
            added.push(*rule);
            Ok(())
        })
        .and_then(|()| ask_kernel(&FIRST.encode(family, DELETE_RULE)));
    // A half-changed family would leave the pod without its addresses.
    if changed.is_err() {
        for rule in added.iter().rev() {
            let _ = ask_kernel(&rule.encode(family, DELETE_RULE));
        }
    }
    changed
}

/// Restores the default rules and ignores errors, because the pod's network ends with the pod.
fn restore_rules(families: &[RuleFamily]) {
    for family in families {
        // The default rule returns first, so that the pod is never without its addresses.
        let _ = ask_kernel(&FIRST.encode(*family, NEW_RULE));
        for rule in ISOLATING.iter().rev() {
            let _ = ask_kernel(&rule.encode(*family, DELETE_RULE));
        }
    }
}

/// Isolates the pod for a time, or until the container is stopped.
///
/// # Errors
/// When the kernel refuses a rule.
pub(crate) async fn hold_isolation(time: Duration) -> anyhow::Result<()> {
    // The handler precedes the first rule, so that no signal leaves the pod isolated.
    let mut terminate = signal(SignalKind::terminate()).context("signals")?;
    let families = isolate_network()?;
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    restore_rules(&families);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_names_its_length_family_action() {
        let drop = RoutingRule::DropAll { priority: 10 }.encode(RuleFamily::V4, NEW_RULE);
        assert_eq!(drop.len(), 16 + 12 + 8);
        assert_eq!(drop[..4], u32::try_from(drop.len()).unwrap().to_ne_bytes());
        assert_eq!((drop[16], drop[20], drop[23]), (2, 0, DROP));
        let local = FIRST.encode(RuleFamily::V6, DELETE_RULE);
        assert_eq!(local.len(), 16 + 12 + 8 + 8);
        assert_eq!((local[16], local[20], local[23]), (10, LOCAL, LOOK_UP));
    }

    #[test]
    fn loopback_rule_covers_own_network_alone() {
        let rule = RoutingRule::Loopback { priority: 5 };
        let (v4, v6) = (
            rule.encode(RuleFamily::V4, NEW_RULE),
            rule.encode(RuleFamily::V6, NEW_RULE),
        );
        assert_eq!((v4[17], v6[17]), (8, 128));
        assert!(v4.ends_with(&[127, 0, 0, 0]));
        assert!(v6.ends_with(&[0, 0, 0, 1]));
    }

    #[test]
    fn dropping_rule_comes_behind_loopback_before_local() {
        let place = |wanted: &dyn Fn(&RoutingRule) -> Option<u32>| ISOLATING.iter().find_map(wanted).unwrap();
        let drop = place(&|rule| match rule {
            RoutingRule::DropAll { priority } => Some(*priority),
            RoutingRule::Local { .. } | RoutingRule::Loopback { .. } => None,
        });
        let loopback = place(&|rule| match rule {
            RoutingRule::Loopback { priority } => Some(*priority),
            RoutingRule::Local { .. } | RoutingRule::DropAll { .. } => None,
        });
        let local = place(&|rule| match rule {
            RoutingRule::Local { priority } => Some(*priority),
            RoutingRule::Loopback { .. } | RoutingRule::DropAll { .. } => None,
        });
        assert!(loopback < drop && drop < local, "{loopback} {drop} {local}");
    }
}
