//! Packs in the object store that a run still needs.

use domain::{ObjectRef, OutboundOutcome};

use super::PlannerRunState;
use super::state::ReportState;

impl PlannerRunState {
    /// Returns every pack that a later step may read: last snapshots, the best verified state, and unpushed
    /// changes of reports.
    pub(crate) fn packs(&self) -> Vec<ObjectRef> {
        let last = self
            .work()
            .snapshot
            .as_ref()
            .map(|snapshot| snapshot.pack.clone());
        let mut packs = self.packs_beside_snapshot();
        packs.extend(last);
        packs
    }

    /// Returns the same without the last snapshot of the run's own repository, which the next one replaces.
    pub(crate) fn packs_beside_snapshot(&self) -> Vec<ObjectRef> {
        let own = self.request().map(|request| &request.repository);
        let others = self
            .works
            .iter()
            .filter(|(repository, _)| Some(*repository) != own);
        let others = others.filter_map(|(_, work)| work.snapshot.as_ref());
        let best = self.best.as_ref().map(|best| &best.snapshot);
        let snapshots = others.chain(best).map(|snapshot| snapshot.pack.clone());
        snapshots
            .chain(self.reports.iter().filter_map(unpushed_pack))
            .collect()
    }
}

/// Returns the pack of a report that may still be performed. A failed one may return from the dead letters.
fn unpushed_pack(report: &ReportState) -> Option<ObjectRef> {
    let is_open = !matches!(
        report.outcome,
        Some(OutboundOutcome::Done(_) | OutboundOutcome::Refused(_))
    );
    let push = report.request.push().filter(|_| is_open);
    push.map(|push| push.pack.clone())
}

#[cfg(test)]
mod tests {
    use domain::{OutboundRequest, record_format::decode_stored_record};

    use super::*;

    #[test]
    fn open_request_keeps_its_pack() {
        let lines = include_str!("../../../../../crates/domain/tests/stored/v1/report.jsonl").lines();
        for line in lines {
            let OutboundRequest { id, at, request, .. } = decode_stored_record(line.as_bytes()).unwrap();
            let stored = serde_json::to_value(&request).unwrap();
            let report = ReportState {
                id,
                request,
                at,
                outcome: None,
                is_void: false,
            };
            let pack = unpushed_pack(&report).map(|pack| serde_json::to_value(pack).unwrap());
            assert_eq!(pack.as_ref(), stored.get("pack"), "{line}");
        }
    }
}
