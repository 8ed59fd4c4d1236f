//! Namespaces for commands: users, processes, network, IPC, host name and mounts.

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

use crate::{policy::LauncherPolicy, root};

/// User inside the namespace when the executor is root. It owns the same files and has no privileges.
const ORDINARY_USER: u32 = 1000;

/// Enters new namespaces except for mounts. The next child becomes process 1 of the new PID namespace.
pub(crate) fn enter_namespaces() -> io::Result<()> {
    let (uid, gid) = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    unshare_namespaces(
        UnshareFlags::NEWUSER
            | UnshareFlags::NEWPID
            | UnshareFlags::NEWIPC
            | UnshareFlags::NEWUTS
            | UnshareFlags::NEWNET,
    )?;
    map_user((0, uid), (0, gid))
}

/// Sets up files and loopback as process 1 of the new namespace, and gives up the privileges for it.
pub(crate) fn set_up_namespaces(policy: &LauncherPolicy, uid: u32) -> Result<(), String> {
    let at = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    unshare_namespaces(UnshareFlags::NEWNS).map_err(at("mount namespace"))?;
    root::enter_root(policy)?;
    raise_loopback().map_err(at("loopback"))?;
    // The second user namespace has no privileges over the mount and network namespaces, which the first one
    // owns.
    unshare_namespaces(UnshareFlags::NEWUSER).map_err(at("user namespace"))?;
    let user = if uid == 0 { ORDINARY_USER } else { uid };
    map_user((user, 0), (user, 0)).map_err(at("user"))?;
    give_up_capabilities().map_err(|error| format!("capabilities: {error}"))
}

/// Drops every capability of this process.
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
fn unshare_namespaces(flags: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(flags)?)
}

fn map_user(user: (u32, u32), group: (u32, u32)) -> io::Result<()> {
    // The kernel accepts a `gid_map` of an unprivileged process only after `setgroups` is denied
    // (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{} {} 1", user.0, user.1))?;
    fs::write("/proc/self/gid_map", format!("{} {} 1", group.0, group.1))
}

/// Sends `RTM_NEWLINK` to bring interface 1, the loopback, up. `NETLINK_ROUTE` is protocol 0, the default of
/// the socket.
fn raise_loopback() -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let mut message = Vec::new();
    // `nlmsghdr`: length 32, type 16 (`RTM_NEWLINK`), flags 5 (request and acknowledge), sequence and sender
    // 0.
    message.extend(32_u32.to_ne_bytes());
    message.extend(16_u16.to_ne_bytes());
    message.extend(5_u16.to_ne_bytes());
    message.extend([0; 8]);
    // `ifinfomsg`: family and type 0, interface 1, flags `IFF_UP`, mask `IFF_UP`.
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
    // The acknowledgment is an `nlmsgerr`: the error code follows the header of 16 bytes.
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
    // The error is ignored: without it the memory limit of the pod decides alone.
    let _ = File::options()
        .write(true)
        .open("/proc/self/oom_score_adj")
        .and_then(|mut file| file.write_all(b"900"));
}
