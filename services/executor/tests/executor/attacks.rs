//! Attempts of one command to influence the next one in the same workspace, by any means but the worktree.

use super::*;

const LOOK: &str = include_str!("attacks/look.py");
const PRELUDE: &str = include_str!("attacks/prelude.py");

/// Name of the attempt, its script, and the message that it prints: success, or the kind of refusal.
const ATTACKS: &[(&str, &str, &str)] = &[
    (
        "a daemon that ignores every signal",
        "daemon(lambda: None)",
        "started",
    ),
    (
        "a stopped process",
        r#"
child = os.fork()
if child == 0:
    os.setsid(); os.kill(os.getpid(), signal.SIGSTOP); time.sleep(600)
os.waitpid(child, os.WUNTRACED); print("stopped")
"#,
        "stopped",
    ),
    (
        "a subreaper with children that are traced and stopped",
        r#"
def work():
    libc.prctl(36, 1, 0, 0, 0)
    for _ in range(8):
        if os.fork() == 0:
            libc.ptrace(0, 0, None, None); os.kill(os.getpid(), signal.SIGSTOP); time.sleep(600)
daemon(work)
"#,
        "started",
    ),
    (
        "a daemon with a lock, a pipe's end, a port, sockets, a watch and a timer",
        r#"
held = []
def work():
    held.append(open("lock", "a")); fcntl.flock(held[0], fcntl.LOCK_EX)
    fifo = os.environ["TMPDIR"] + "/fifo"; os.path.exists(fifo) or os.mkfifo(fifo); held.append(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))
    server = socket.socket(); server.bind(("127.0.0.1", 45678)); server.listen(); held.append(server)
    hidden = socket.socket(socket.AF_UNIX); hidden.bind("\0left"); hidden.listen(); held.append(hidden)
    held.append(libc.inotify_add_watch(libc.inotify_init(), b".", 0xfff))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
daemon(work)
"#,
        "started",
    ),
    (
        "files, folders, links, sockets and pipes in the private folders",
        r#"
for folder in ("/tmp", "/var/tmp", "/dev/shm"):
    open(folder + "/left", "w").write("x"); os.makedirs(folder + "/.a/b"); os.symlink("/", folder + "/link")
    os.mkfifo(folder + "/pipe"); socket.socket(socket.AF_UNIX).bind(folder + "/socket")
print("left")
"#,
        "left",
    ),
    (
        "more files than anybody counts",
        "for number in range(3000): open(f'/tmp/{number}', 'w')\nprint('left')",
        "left",
    ),
    (
        "a folder deeper than a path may be long",
        "os.chdir('/tmp')\nfor _ in range(60): os.mkdir('d' * 200); os.chdir('d' * 200)\nprint('left')",
        "left",
    ),
    (
        "a private folder that nobody can write",
        "os.chmod('/tmp', 0o555); print('left')",
        "left",
    ),
    (
        "a private folder that nobody can enter",
        "os.chmod('/tmp', 0); print('left')",
        "left",
    ),
    (
        "a private folder that is open to its owner alone",
        "os.chmod('/dev/shm', 0o700); print('left')",
        "left",
    ),
    (
        "an attribute of a private folder",
        "print(tried(lambda: os.setxattr('/tmp', 'user.left', b'x')))",
        "allowed",
    ),
    (
        "a default access list of a private folder",
        r#"
acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, 0, 0xffffffff) for tag in (1, 4, 32))
print(tried(lambda: os.setxattr("/tmp", "system.posix_acl_default", acl)))
"#,
        "",
    ),
    (
        "the folders around the workspace, moved or shut",
        r#"
path = os.getcwd().split("/")
print(path[1])
if path[1] == "tmp":
    os.rename("/".join(path[:3]), "/tmp/moved")
"#,
        "tmp",
    ),
    (
        "the folder around the workspace, shut",
        "os.chmod('/'.join(os.getcwd().split('/')[:3]), 0o555); print('left')",
        "left",
    ),
    (
        "a message queue",
        "print(answer(libc.mq_open(b'/left', os.O_CREAT | os.O_RDWR, 0o666, None)))",
        "EMFILE",
    ),
    (
        "shared memory",
        "print(answer(libc.shmget(77, 4096, 0o1666)))",
        "allowed",
    ),
    (
        "semaphores",
        "print(answer(libc.semget(77, 4, 0o1666)))",
        "allowed",
    ),
    (
        "a queue of messages",
        "print(answer(libc.msgget(77, 0o1666)))",
        "allowed",
    ),
    (
        "its own settings",
        r#"
import resource
os.umask(0); os.nice(5); os.chdir("/"); os.environ["LEFT"] = "1"
for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_STACK):
    resource.setrlimit(limit, (64, 64))
for option, value in ((1, 9), (4, 0), (15, 0), (22, 0), (29, 999999), (36, 1), (41, 1)):
    libc.prctl(option, value, 0, 0, 0)
libc.personality(0x0040000); call("ioprio_set", 1, 0, (3 << 13))
os.sched_setaffinity(0, {0}); os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32)); signal.signal(signal.SIGINT, signal.SIG_IGN)
os.setpgid(0, 0); print("changed")
"#,
        "changed",
    ),
    (
        "the priority of everything of its user",
        "print(tried(lambda: os.setpriority(os.PRIO_USER, 0, 10)))",
        "EPERM",
    ),
    (
        "the priority of its group",
        "print(tried(lambda: os.setpriority(os.PRIO_PGRP, 0, 10)))",
        "EPERM",
    ),
    (
        "the priority of the first process",
        "print(tried(lambda: os.setpriority(os.PRIO_PROCESS, 1, 10)))",
        "EPERM",
    ),
    (
        "its disk priority, of the first, of the group, of the user",
        "print([answer(call('ioprio_set', *whom, 3 << 13)) for whom in ((1, 1), (2, 0), (3, 0))])",
        "['EPERM', 'EPERM', 'EPERM']",
    ),
    (
        "processors of the first process",
        "print(tried(lambda: os.sched_setaffinity(1, {0})))",
        "EPERM",
    ),
    (
        "scheduling and limits of the first process",
        r#"
pair = (ctypes.c_uint64 * 2)(64, 64)
print(tried(lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))), answer(libc.prlimit(1, 7, pair, None)))
"#,
        "EPERM EPERM",
    ),
    (
        "a core that is shared with the first process",
        "print(answer(libc.prctl(62, 2, 1, 0, 0)), answer(libc.prctl(62, 3, 1, 0, 0)))",
        "",
    ),
    (
        "what the first process holds",
        r#"
for name in ("mem", "environ", "maps", "auxv", "syscall", "stack", "io"):
    if tried(lambda: open("/proc/1/" + name, "rb", buffering=0).read(1)) == "allowed": print("HOLE", name)
for name in ("cwd", "root", "exe", *(f"fd/{number}" for number in range(32))):
    if tried(lambda: os.readlink("/proc/1/" + name)) == "allowed": print("HOLE", name)
for name in ("oom_score_adj", "comm", "coredump_filter", "timerslack_ns", "autogroup", "clear_refs", "uid_map", "loginuid"):
    result = tried(lambda: open("/proc/1/" + name, "r+b", buffering=0).write(b"0"))
    if result == "allowed": print("HOLE write", name)
print("looked")
"#,
        "looked",
    ),
    (
        "tracing and reading the first process",
        r#"
def pidfd(): return call("pidfd_open", 1, 0)
print([answer(libc.ptrace(16, 1, None, None)), answer(libc.ptrace(0x4206, 1, None, None)),
       answer(call("vm_readv", 1, None, 0, None, 0, 0)), answer(call("pidfd_getfd", pidfd(), 0, 0)),
       answer(call("kcmp", os.getpid(), 1, 0, 0, 0))])
"#,
        "['EPERM', 'EPERM', 'EPERM', 'EPERM', 'EPERM']",
    ),
    (
        "being traced by the first process",
        "libc.ptrace(0, 0, None, None); print('asked', flush=True); os.kill(os.getpid(), signal.SIGSTOP); time.sleep(600)",
        "asked",
    ),
    (
        "every signal to the first process, in every way",
        r#"
for number in range(1, 65):
    libc.kill(1, number); call("tgkill", 1, 1, number); call("tkill", 1, number)
    fd = call("pidfd_open", 1, 0); call("pidfd_signal", fd, number, None, 0); os.close(fd)
    info = (ctypes.c_int * 32)(number, 0, -1); call("sigqueue", 1, number, info)
print("sent")
"#,
        "sent",
    ),
    (
        "every signal to its own group",
        r#"
for number in range(1, 65):
    if number not in (9, 19, 32, 33): signal.signal(number, signal.SIG_IGN)
print("sent", flush=True)
for number in range(1, 65):
    if number not in (9, 19): libc.kill(0, number)
libc.kill(0, 19); libc.kill(0, 9)
"#,
        "sent",
    ),
    (
        "a signal to everybody",
        "print('sent', flush=True); os.kill(-1, signal.SIGSTOP); os.kill(-1, 9)",
        "sent",
    ),
    (
        "the control socket",
        r#"
found = [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2 and os.path.exists("/proc/self/fd/" + fd)]
kinds = [stat.S_ISSOCK(os.fstat(fd).st_mode) for fd in range(3)]
print(found, kinds, [tried(lambda: os.write(fd, b"x")) for fd in range(256) if fd not in (1, 2)].count("allowed"))
"#,
        "[] [False, False, False] 0",
    ),
    (
        "as many processes as there can be",
        r#"
count = 0
while True:
    try: child = os.fork()
    except OSError: break
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True: time.sleep(600)
    count += 1
    if count == 6000: break
print("full" if count < 6000 else "never full", flush=True)
"#,
        "full",
    ),
    (
        "processes that start others without end",
        r#"
os.setsid()
if os.fork() == 0:
    deadline = time.time() + 20
    while time.time() < deadline:
        try: os.fork()
        except OSError: pass
time.sleep(0.2); print("started", flush=True); os._exit(0)
"#,
        "started",
    ),
    (
        "names and numbers of the kernel",
        r#"
def put(path): open(path, "r+b", buffering=0).write(b"77777")
paths = ["kernel/pid_max", "kernel/hostname", "kernel/core_pattern", "kernel/ns_last_pid", "kernel/shmmni", "fs/mqueue/queues_max",
         "net/ipv4/ip_local_port_range", "net/ipv4/ip_unprivileged_port_start", "vm/overcommit_memory", "kernel/msgmni"]
# Opened only: nothing is written should one of them let itself be opened.
print([path for path in paths if tried(lambda: os.close(os.open("/proc/sys/" + path, os.O_WRONLY))) == "allowed"])
name = b"left"
print(answer(libc.sethostname(name, 4)), answer(libc.unshare(0x10000000)), answer(call("add_key", b"user", b"left", b"x", 1, -4)))
"#,
        "[]\nEPERM EPERM EPERM",
    ),
    (
        "its own control group",
        r#"
line = open("/proc/self/cgroup").read().strip().rsplit(":", 1)[1]
names = ("cgroup.freeze", "cgroup.procs", "cgroup.kill", "memory.max", "pids.max")
print([name for name in names if tried(lambda: os.close(os.open("/sys/fs/cgroup" + line + "/" + name, os.O_WRONLY))) == "allowed"])
"#,
        "[]",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_never_influence_next_command() {
    let world = World::start_as(1, |_, settings| settings.limits.processes = 512).await;
    let session = world.open(1).await;
    for (path, content) in [("look.py", LOOK), ("prelude.py", PRELUDE)] {
        session
            .ok(path, "write_file", json!({ "path": path, "content": content }))
            .await;
    }
    let look = "PYTHONDONTWRITEBYTECODE=1 python3 look.py";
    let first = session.shell("first", look).await;
    assert_eq!(session.shell("again", look).await, first);
    let mut before = first;
    let mut holes = Vec::new();
    for (what, script, says) in ATTACKS {
        let command = format!("python3 -B - <<'END'\nfrom prelude import *\n{script}\nEND");
        let input = json!({ "command": command, "timeout_s": 20 });
        let said = session.call(what, "run_command", input).await.content;
        if !said.contains(says) || said.contains("HOLE") {
            holes.push(format!("{what}: {said}"));
        }
        let input = json!({ "command": look, "timeout_s": 20 });
        let found = session
            .call(&format!("after {what}"), "run_command", input)
            .await
            .content;
        let differs = found
            .lines()
            .filter(|line| !before.lines().any(|other| other == *line));
        let differs: Vec<_> = differs.collect();
        if found != before {
            holes.push(format!("after {what}: {differs:#?}"));
        }
        before = found;
    }
    assert!(holes.is_empty(), "{}", holes.join("\n"));
    println!(
        "| 28 one command after another in one world: {} attempts | L1 with namespaces | held |",
        ATTACKS.len()
    );
}
