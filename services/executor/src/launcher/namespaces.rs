//! Namespaces for commands: processes, network, users and mounts of their own.

use std::{
    fs::{self, File},
    io::{self, Write},
};

use rustix::{
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink::SocketAddrNetlink, recv,
        sendto, socket_with,
    },
    thread::{CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities},
};

use crate::{policy::Policy, root};

/// A user that a command is when the executor is root: it owns the same files and can do nothing more.
const ORDINARY_USER: u32 = 1000;

/// Leaves the caller's world, except for its files: the next child is the first process of a new one.
pub(crate) fn leave() -> io::Result<()> {
    let (uid, gid) = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    unshare(
        UnshareFlags::NEWUSER
            | UnshareFlags::NEWPID
            | UnshareFlags::NEWIPC
            | UnshareFlags::NEWUTS
            | UnshareFlags::NEWNET,
    )?;
    map_user((0, uid), (0, gid))
}

/// Arranges files and loopback, by the first process of the new world, then gives up the right to do so again.
pub(crate) fn settle(policy: &Policy, uid: u32) -> Result<(), String> {
    let at = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    unshare(UnshareFlags::NEWNS).map_err(at("mount namespace"))?;
    root::enter(policy)?;
    raise_loopback().map_err(at("loopback"))?;
    unshare(UnshareFlags::NEWUSER).map_err(at("user namespace"))?;
    let user = if uid == 0 { ORDINARY_USER } else { uid };
    map_user((user, 0), (user, 0)).map_err(at("user"))?;
    give_up_capabilities().map_err(|error| format!("capabilities: {error}"))
}

/// From here on this process has no power beyond its user's.
pub(crate) fn give_up_capabilities() -> rustix::io::Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none)
}

#[expect(
    deprecated,
    reason = "its safe form; what it warns of is sharing file descriptors, which is not asked for here"
)]
fn unshare(flags: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(flags)?)
}

fn map_user(user: (u32, u32), group: (u32, u32)) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{} {} 1", user.0, user.1))?;
    fs::write("/proc/self/gid_map", format!("{} {} 1", group.0, group.1))
}

/// `RTM_NEWLINK` for the first interface, up. The route protocol is the first and needs no name.
fn raise_loopback() -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let mut message = Vec::new();
    // Length, type, request + acknowledge, sequence, sender.
    message.extend(32_u32.to_ne_bytes());
    message.extend(16_u16.to_ne_bytes());
    message.extend(5_u16.to_ne_bytes());
    message.extend([0; 8]);
    // Family and kind, interface 1, flags: up, mask: up.
    message.extend([0; 4]);
    message.extend([1_u32, 1, 1].map(u32::to_ne_bytes).concat());
    sendto(
        &socket,
        &message,
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )?;
    let mut answer = [0; 64];
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

/// Makes the kernel choose this process and its children first when memory runs out.
pub(crate) fn prefer_to_kill() {
    // Without it the limits of the pod decide alone.
    let _ = File::options()
        .write(true)
        .open("/proc/self/oom_score_adj")
        .and_then(|mut file| file.write_all(b"900"));
}
