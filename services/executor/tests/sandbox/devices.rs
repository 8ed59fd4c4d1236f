//! Checks of terminals, devices and machine settings in `/proc`.

use std::io::{BufRead, BufReader};

use super::*;

/// A terminal of the same user, held open by a process of this test.
struct Terminal {
    holder: Child,
    name: String,
}

impl Terminal {
    fn open() -> Self {
        let script = "import os, time\nours, theirs = os.openpty()\nprint(os.ttyname(theirs), flush=True)\ntime.sleep(600)";
        let mut command = Command::new("/usr/bin/python3");
        let mut holder = command
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut name = String::new();
        BufReader::new(holder.stdout.as_mut().unwrap())
            .read_line(&mut name)
            .unwrap();
        Self {
            holder,
            name: name.trim().to_owned(),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[test]
fn check_31_user_terminals_are_unreachable() {
    at_each_level("31 other terminals", Needs::Files, |world, level| {
        let terminal = Terminal::open();
        let script = format!(
            "for mode in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):\n    attempt(f'terminal_{{mode}}', lambda: \
             os.open({:?}, mode | os.O_NOCTTY | os.O_NONBLOCK))\n",
            terminal.name
        );
        world.all_denied(level, &script);
    });
}

#[test]
fn namespaced_commands_get_private_terminals() {
    for level in list_reached_levels(Needs::Processes)
        .into_iter()
        .filter(|level| level.has_namespaces())
    {
        let text = World::new().shell(
            level,
            "python3 -c 'import os, pty; print(os.ttyname(os.openpty()[1])); pty.spawn([\"echo\", \"typed\"])'; ls /dev/pts",
        );
        assert!(text.contains("/dev/pts/0") && text.contains("typed"), "{text}");
        print_result_row("31 own terminals", level.name(), "held");
    }
}

#[test]
fn namespaced_commands_see_stateless_devices_only() {
    for level in list_reached_levels(Needs::Processes)
        .into_iter()
        .filter(|level| level.has_namespaces())
    {
        let world = World::new();
        let text = world.shell(
            level,
            "ls /dev; echo x > /dev/null; head -c 1 /dev/zero /dev/urandom | wc -c",
        );
        let known = [
            "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
            "urandom", "zero",
        ];
        let names: Vec<&str> = text
            .lines()
            .take_while(|line| line.chars().all(char::is_alphabetic))
            .collect();
        assert!(
            names.len() > 8 && names.iter().all(|name| known.contains(name)),
            "{text}"
        );
        // A device node in the worktree must not give access either. Only root can create one.
        let node = world.path("work/disk");
        let made = Command::new("mknod")
            .arg(&node)
            .args(["b", "7", "0"])
            .output()
            .unwrap();
        if made.status.success() {
            world.all_denied(
                level,
                "attempt('disk', lambda: os.open('disk', os.O_RDONLY | os.O_NONBLOCK))\n",
            );
        }
        let outcome = if made.status.success() {
            "held"
        } else {
            "held; planted node not run: takes root"
        };
        print_result_row("20 device nodes", level.name(), outcome);
    }
}

#[test]
fn settings_of_the_machine_cannot_be_written() {
    at_each_level("20 /proc/sys and its like", Needs::Files, |world, level| {
        world.all_denied(
            level,
            r#"
def touch(path):
    # Opened and closed, nothing written.
    if os.path.exists(path):
        os.close(os.open(path, os.O_WRONLY))
    else:
        raise OSError(errno.ENOENT, "not here")
for name in ("kernel/core_pattern", "vm/overcommit_memory", "fs/protected_hardlinks", "kernel/pid_max", "kernel/shmmax"):
    attempt("sys_" + name.replace("/", "_"), lambda: touch("/proc/sys/" + name))
attempt("sysrq", lambda: touch("/proc/sysrq-trigger"))
attempt("irq", lambda: touch("/proc/irq/default_smp_affinity"))
attempt("kcore", lambda: read("/proc/kcore"))
"#,
        );
        if level.has_namespaces() {
            world.all_denied(level, "attempt('keys', lambda: read('/proc/keys'))\n");
        }
    });
}
