//! Wraps a future with a failpoint before and after.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

#[cfg(debug_assertions)]
use crate::{
    FailpointPhase,
    watch::{is_watching, record_pass},
};

/// Names an await that reaches outside the process. `site` is a literal, one of [`crate::SITES`], and occurs
/// in one place only.
pub fn around<F: Future>(site: &'static str, future: F) -> FailpointFuture<F> {
    around_kind(site, "", future)
}

/// Names an await like [`around`]. The kind distinguishes operations of one site that are tested separately.
#[cfg(debug_assertions)]
pub fn around_kind<F: Future>(site: &'static str, kind: &str, future: F) -> FailpointFuture<F> {
    // The kind is copied only while points are recorded or armed, so that normal runs allocate nothing.
    let kind = if is_watching() {
        kind.to_owned()
    } else {
        String::new()
    };
    FailpointFuture {
        site,
        kind,
        is_begun: false,
        future,
    }
}

/// Names an await like [`around`]. Without debug assertions it is the future itself.
#[cfg(not(debug_assertions))]
pub fn around_kind<F: Future>(_site: &'static str, _kind: &str, future: F) -> FailpointFuture<F> {
    FailpointFuture { future }
}

#[cfg(debug_assertions)]
pin_project_lite::pin_project! {
    /// Future of [`around`]. A named type, because an `async` block would hold the inner future twice.
    pub struct FailpointFuture<F> {
        site: &'static str,
        kind: String,
        is_begun: bool,
        #[pin]
        future: F,
    }
}

#[cfg(not(debug_assertions))]
pin_project_lite::pin_project! {
    /// Future of [`around`].
    pub struct FailpointFuture<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for FailpointFuture<F> {
    type Output = F::Output;

    #[cfg(debug_assertions)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if !is_watching() {
            return this.future.poll(context);
        }
        if !std::mem::replace(this.is_begun, true) {
            record_pass(this.site, this.kind, FailpointPhase::Before);
        }
        let polled = this.future.poll(context);
        if polled.is_ready() {
            record_pass(this.site, this.kind, FailpointPhase::After);
        }
        polled
    }

    #[cfg(not(debug_assertions))]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.project().future.poll(context)
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn dropped_future_has_no_after_pass() {
        crate::start_recording();
        around_kind("here", "kind", tokio::task::yield_now()).await;
        let never = around("never", std::future::pending::<()>());
        tokio::select! { biased; () = never => {}, () = std::future::ready(()) => {} }
        around("here", async {}).await;
        let passed: Vec<String> = crate::list_recorded_passes()
            .iter()
            .map(ToString::to_string)
            .collect();
        let expected = [
            "here[kind]/before#1",
            "here[kind]/after#1",
            "never/before#1",
            "here/before#1",
            "here/after#1",
        ];
        assert_eq!(passed, expected);
    }
}
