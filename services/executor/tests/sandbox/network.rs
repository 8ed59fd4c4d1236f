//! Checks of the network access of commands, and of their socket families.

use super::*;

/// Socket families that no build needs: packets, vsock, crypto, XDP, raw ICMP.
const FAMILIES: &str = r#"
for family in (17, 38, 40, 44):
    attempt(f'family_{family}', lambda: socket.socket(family, socket.SOCK_RAW if family == 17 else socket.SOCK_STREAM))
attempt('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
# Only routes may be asked for: audit, connection tracking and the rest are the machine's.
for protocol in (4, 6, 9, 10, 12, 15, 16):
    attempt(f'netlink_{protocol}', lambda: socket.socket(16, socket.SOCK_RAW, protocol))
for protocol in (132, 262):
    attempt(f'protocol_{protocol}', lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol))
"#;

#[test]
fn check_16_unneeded_socket_families_are_refused() {
    at_each_level(
        "16 socket families, raw, netlink, MPTCP, SCTP",
        Needs::Files,
        |world, level| {
            world.all_denied(level, FAMILIES);
            // Tools do need addresses and routes (`NETLINK_ROUTE`).
            let text = world.shell(
                level,
                "python3 -c 'import socket; socket.socket(16, socket.SOCK_RAW, 0); print(\"routes\")'",
            );
            assert!(text.contains("routes"), "{text}");
        },
    );
}

#[test]
fn check_16_machine_sockets_are_unreachable() {
    for level in list_reached_levels(Needs::Files) {
        let world = World::new();
        let _socket = UnixListener::bind(world.path("other/socket")).unwrap();
        let script = "attempt('unix', lambda: socket.socket(socket.AF_UNIX).connect(OTHER + '/socket'))\n";
        let allowed = world
            .attempts(level, script)
            .iter()
            .any(|(_, allowed, _)| *allowed);
        assert!(!(allowed && level.has_namespaces()), "{}", level.name());
        let outcome = if allowed {
            "open, documented: below Landlock ABI 9"
        } else {
            "held"
        };
        print_result_row("16 named sockets", level.name(), outcome);
    }
}

#[test]
fn checks_16_to_18_namespaces_hide_network() {
    for level in list_reached_levels(Needs::Processes) {
        if !level.has_namespaces() {
            print_result_row(
                "16-18 TCP, UDP, DNS",
                level.name(),
                "open, documented: the pod's network policy and its self-test (70)",
            );
            continue;
        }
        let world = World::new();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let script = format!(
            r#"
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", {port}), 2))
def fast_open():
    s = socket.socket(); s.settimeout(2)
    return s.sendto(b"x", 0x20000000, ("127.0.0.1", {port}))
attempt("fast_open", fast_open)
def mptcp():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.settimeout(2)
    return s.connect(("127.0.0.1", {port}))
attempt("mptcp", mptcp)
attempt("metadata", lambda: socket.create_connection(("169.254.169.254", 80), 2))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53)))
attempt("dns", lambda: socket.getaddrinfo("packages.example", 80))
"#
        );
        world.all_denied(level, &script);
        print_result_row(
            "16-18 TCP, UDP, fast open, MPTCP, DNS, metadata",
            level.name(),
            "held",
        );
    }
}
