//! Packs in the object store that a run still needs.

use domain::{ObjectRef, OutboundOutcome};

use super::{PlannerRunState, ReportState};

/// Returns every pack that a later step may read: last snapshots, the best verified state, and unpushed
/// changes of reports.
pub(crate) fn list_packs(state: &PlannerRunState) -> Vec<ObjectRef> {
    let last = state.source().work().snapshot.as_ref();
    let mut packs = list_packs_beside_snapshot(state);
    packs.extend(last.map(|snapshot| snapshot.pack.clone()));
    packs
}

/// Returns the same without the last snapshot of the run's own repository, which the next one replaces.
pub(crate) fn list_packs_beside_snapshot(state: &PlannerRunState) -> Vec<ObjectRef> {
    let others = state.source().other_works();
    let others = others.filter_map(|work| work.snapshot.as_ref());
    let snapshots = others.chain(state.verification().best());
    let reports = state.delivery().reports().iter().filter_map(find_unpushed_pack);
    snapshots
        .map(|snapshot| snapshot.pack.clone())
        .chain(reports)
        .collect()
}

/// Returns the pack of a report that may still be performed. A failed one may return from the dead letters.
fn find_unpushed_pack(report: &ReportState) -> Option<ObjectRef> {
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
            let pack = find_unpushed_pack(&report).map(|pack| serde_json::to_value(pack).unwrap());
            assert_eq!(pack.as_ref(), stored.get("pack"), "{line}");
        }
    }
}
