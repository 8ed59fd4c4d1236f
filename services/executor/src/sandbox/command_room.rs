//! Room for commands that run at the same time. Only checks wait for it: each workspace may run one command at
//! any time, and its further checks run beside it as far as cores and memory allow.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Number of commands that fit at the same time, with those that run.
#[derive(Clone, Debug)]
pub(crate) struct CommandRoom(Arc<SharedRoom>);

/// Place of a running command. Dropping it admits the next check.
#[derive(Debug)]
pub(crate) struct RoomPermit {
    room: CommandRoom,
    /// Workspace of a check; `None` for another command.
    workspace: Option<String>,
}

#[derive(Debug)]
struct SharedRoom {
    most: usize,
    state: Mutex<RoomState>,
}

#[derive(Debug, Default)]
struct RoomState {
    running: usize,
    /// Number of running checks by workspace.
    checks: HashMap<String, usize>,
    /// Checks that wait, the oldest first.
    waiting: VecDeque<WaitingCheck>,
}

#[derive(Debug)]
struct WaitingCheck {
    workspace: String,
    admit: oneshot::Sender<RoomPermit>,
}

impl CommandRoom {
    /// Creates the room for `most` commands, at least one.
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(SharedRoom {
            most: most.max(1),
            state: Mutex::default(),
        }))
    }

    /// Returns the number of commands that fit at the same time.
    pub(crate) fn most(&self) -> usize {
        self.0.most
    }

    /// Counts a command that runs in any case.
    pub(super) fn enter(&self) -> RoomPermit {
        self.0.state.lock().running += 1;
        RoomPermit {
            room: self.clone(),
            workspace: None,
        }
    }

    /// Waits until a check of this workspace may run: at once if no other check of the workspace runs, and
    /// otherwise in turn as soon as there is room. Dropping the future gives the turn up.
    pub(crate) async fn admit_check(&self, workspace: &str) -> RoomPermit {
        let (admit, admitted) = oneshot::channel();
        let workspace = workspace.to_owned();
        self.0.state.lock().waiting.push_back(WaitingCheck {
            workspace: workspace.clone(),
            admit,
        });
        self.admit_waiting();
        match admitted.await {
            Ok(permit) => permit,
            // The sender is only dropped with a permit sent, so this is not reached; the check still runs then.
            Err(_) => {
                self.0.state.lock().count(&workspace);
                self.permit(workspace)
            }
        }
    }

    fn permit(&self, workspace: String) -> RoomPermit {
        RoomPermit {
            room: self.clone(),
            workspace: Some(workspace),
        }
    }

    fn admit_waiting(&self) {
        let admitted = self.0.state.lock().take_admitted(self.0.most);
        // After the lock is free: a check that was cancelled gives its permit back here, which admits the next
        // one.
        for WaitingCheck { workspace, admit } in admitted {
            drop(admit.send(self.permit(workspace)));
        }
    }
}

impl RoomState {
    fn count(&mut self, workspace: &str) {
        self.running += 1;
        *self.checks.entry(workspace.to_owned()).or_default() += 1;
    }

    fn discount(&mut self, workspace: Option<&str>) {
        self.running = self.running.saturating_sub(1);
        let Some(workspace) = workspace else { return };
        if let Some(count) = self.checks.get_mut(workspace) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.checks.remove(workspace);
            }
        }
    }

    /// Takes and counts the waiting checks that may run now.
    fn take_admitted(&mut self, most: usize) -> Vec<WaitingCheck> {
        let mut admitted = Vec::new();
        loop {
            let has_room = self.running < most;
            let may_run = |check: &WaitingCheck| has_room || !self.checks.contains_key(&check.workspace);
            let Some(next) = self.waiting.iter().position(may_run) else {
                return admitted;
            };
            if let Some(check) = self.waiting.remove(next) {
                self.count(&check.workspace);
                admitted.push(check);
            }
        }
    }
}

impl Drop for RoomPermit {
    fn drop(&mut self) {
        self.room.0.state.lock().discount(self.workspace.as_deref());
        self.room.admit_waiting();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll, Waker},
    };

    use super::*;

    /// Check that waits or runs; dropping it ends it.
    type Check<'a> = Pin<Box<dyn Future<Output = RoomPermit> + 'a>>;

    fn begin<'a>(room: &'a CommandRoom, workspace: &'a str) -> Check<'a> {
        Box::pin(room.admit_check(workspace))
    }

    fn poll(check: &mut Check<'_>) -> Option<RoomPermit> {
        match check.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => Some(permit),
            Poll::Pending => None,
        }
    }

    #[test]
    fn first_check_of_workspace_never_waits() {
        let room = CommandRoom::new(1);
        let command = room.enter();
        let (mut first, mut other, mut second) = (begin(&room, "a"), begin(&room, "b"), begin(&room, "a"));
        let (first, other) = (poll(&mut first).unwrap(), poll(&mut other).unwrap());
        assert!(poll(&mut second).is_none());
        drop((command, other));
        assert!(poll(&mut second).is_none(), "there is room for one, and it runs");
        drop(first);
        assert!(poll(&mut second).is_some());
    }

    #[test]
    fn further_checks_run_in_order_as_room_allows() {
        let room = CommandRoom::new(2);
        let mut checks: Vec<Check<'_>> = (0..4).map(|_| begin(&room, "a")).collect();
        let permits: Vec<_> = checks.iter_mut().map(poll).collect();
        assert_eq!(
            permits.iter().map(Option::is_some).collect::<Vec<_>>(),
            [true, true, false, false]
        );
        drop(permits);
        assert!(checks[2..].iter_mut().all(|check| poll(check).is_some()));
    }

    #[test]
    fn cancelled_check_gives_its_turn_up() {
        let room = CommandRoom::new(1);
        let (mut first, mut second, mut third) = (begin(&room, "a"), begin(&room, "a"), begin(&room, "a"));
        let running = poll(&mut first);
        assert!(poll(&mut second).is_none() && poll(&mut third).is_none());
        drop(second);
        drop(running);
        let third = poll(&mut third).unwrap();
        drop(third);
        let state = room.0.state.lock();
        assert_eq!(
            (state.running, state.checks.len(), state.waiting.len()),
            (0, 0, 0)
        );
    }

    #[test]
    fn admitted_check_that_is_dropped_frees_room() {
        let room = CommandRoom::new(1);
        let (mut first, mut second) = (begin(&room, "a"), begin(&room, "a"));
        let running = poll(&mut first);
        assert!(poll(&mut second).is_none());
        // The permit is sent, and its receiver goes before it looks.
        drop(running);
        drop(second);
        let mut next = begin(&room, "a");
        assert!(poll(&mut next).is_some());
    }
}
