//! Summary of all runs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    record::{EvalRunRecord, EvalTokens},
    statistics::{compute_mcnemar_probability, compute_wilson_interval},
};

/// Instance that is excluded from the evaluation.
#[derive(Clone, Debug, Serialize)]
pub struct InvalidInstance {
    /// Id of the instance.
    pub instance: String,
    /// Reason why it is not played.
    pub reason: String,
}

/// Figures of an evaluation that are not in the records.
#[derive(Clone, Debug, Serialize)]
pub struct EvalFrame {
    /// Release of the command that played the runs.
    pub release: String,
    /// Model by its name at the provider.
    pub model: String,
    /// Digest of the settings and rules.
    pub settings: String,
    /// Valid instances of the data set.
    pub instances: usize,
    /// Runs of each instance.
    pub runs_each: u32,
    /// Instances that cannot be graded.
    pub invalid: Vec<InvalidInstance>,
    /// Reason why the evaluation ended before its last run.
    pub ended_early: Option<String>,
}

/// Figures of an evaluation.
#[derive(Clone, Debug, Serialize)]
pub struct EvalSummary {
    /// Figures that are not in the records.
    #[serde(flatten)]
    pub frame: EvalFrame,
    /// Runs with a record.
    pub finished: usize,
    /// Runs without a record.
    pub missing: usize,
    /// Share of resolved runs.
    pub resolved: ResolvedShare,
    /// Cost of the model calls.
    pub cost: EvalCost,
    /// Turns of all runs.
    pub turns: u64,
    /// Sum of the durations in minutes.
    pub minutes: f64,
    /// Tokens of all runs.
    pub tokens: EvalTokens,
    /// Runs that completed without solving the task.
    pub false_done: usize,
    /// Runs with an infrastructure failure; they count as unresolved.
    pub infra: usize,
    /// Runs by level of evidence.
    pub evidence: BTreeMap<String, usize>,
    /// Runs by stop reason.
    pub stops: BTreeMap<String, usize>,
    /// Instances whose reference solution the agent was shown.
    pub leaks: Vec<String>,
    /// Comparison with another evaluation, where one was given.
    pub comparison: Option<EvalComparison>,
}

/// Share of runs that resolve their instance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResolvedShare {
    /// Graded runs.
    pub runs: usize,
    /// Mean share over the instances, 0 to 1.
    pub share: f64,
    /// Lower end of Wilson's 95 % interval. Runs of one instance count as one, because they are not independent.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// Share of instances with every run resolved, among those with all their runs; absent without such instances.
    pub pass_power: Option<f64>,
}

/// Cost of the model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvalCost {
    /// Sum in US dollars.
    pub usd: f64,
    /// Absent without a resolved run.
    pub usd_per_resolved: Option<f64>,
    /// Replies without a known price; the sums exclude them.
    pub unpriced_replies: u64,
}

/// Comparison with another evaluation, over the instances of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvalComparison {
    /// Instances of both evaluations.
    pub instances: u32,
    /// Instances resolved in most runs here.
    pub here: u32,
    /// Resolved instances of the other evaluation.
    pub there: u32,
    /// Instances that only this evaluation resolved.
    pub gained: Vec<String>,
    /// Instances that only the other evaluation resolved.
    pub lost: Vec<String>,
    /// `McNemar`'s exact probability.
    pub p: f64,
}

/// Runs by instance.
fn group_by_instance(records: &[EvalRunRecord]) -> BTreeMap<&str, Vec<&EvalRunRecord>> {
    let mut all: BTreeMap<&str, Vec<&EvalRunRecord>> = BTreeMap::new();
    for record in records {
        all.entry(&record.key.instance).or_default().push(record);
    }
    all
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of runs and millionths of dollars are far below 2^52"
)]
fn convert_to_float(n: impl TryInto<u64>) -> f64 {
    n.try_into().unwrap_or(u64::MAX) as f64
}

impl ResolvedShare {
    /// Share of these runs, with `runs_each` planned runs per instance.
    pub fn of(records: &[EvalRunRecord], runs_each: u32) -> Self {
        let instances = group_by_instance(records);
        let runs = records.iter().filter(|record| record.resolved).count();
        let share = match records.len() {
            0 => 0.0,
            all => convert_to_float(runs) / convert_to_float(all),
        };
        // The interval counts instances instead of runs: runs of one instance are correlated, and counting them would
        // make it too narrow.
        let (low, high) = compute_wilson_interval(share, convert_to_float(instances.len()));
        let whole: Vec<_> = instances
            .values()
            .filter(|runs| runs.len() >= runs_each as usize)
            .collect();
        let every = whole
            .iter()
            .filter(|runs| runs.iter().all(|run| run.resolved))
            .count();
        Self {
            runs,
            share,
            low,
            high,
            pass_power: (!whole.is_empty()).then(|| convert_to_float(every) / convert_to_float(whole.len())),
        }
    }
}

impl EvalCost {
    /// Sum of the records.
    pub fn of(records: &[EvalRunRecord]) -> Self {
        let micros: u64 = records.iter().map(|record| record.cost_micros).sum();
        let resolved = records.iter().filter(|record| record.resolved).count();
        let usd = convert_to_float(micros) / 1e6;
        Self {
            usd,
            usd_per_resolved: (resolved > 0).then(|| usd / convert_to_float(resolved)),
            unpriced_replies: records.iter().map(|record| u64::from(record.unpriced)).sum(),
        }
    }
}

impl EvalComparison {
    /// Compares the evaluations by instance.
    pub fn of(here: &[EvalRunRecord], there: &[EvalRunRecord]) -> Self {
        let most = |runs: &[&EvalRunRecord]| runs.iter().filter(|run| run.resolved).count() * 2 > runs.len();
        let others = group_by_instance(there);
        let mut found = Self {
            instances: 0,
            here: 0,
            there: 0,
            gained: Vec::new(),
            lost: Vec::new(),
            p: 1.0,
        };
        for (instance, runs) in group_by_instance(here) {
            let Some(other) = others.get(instance) else {
                continue;
            };
            let (ours, theirs) = (most(&runs), most(other));
            found.instances += 1;
            found.here += u32::from(ours);
            found.there += u32::from(theirs);
            match (ours, theirs) {
                (true, false) => found.gained.push(instance.to_owned()),
                (false, true) => found.lost.push(instance.to_owned()),
                _ => {}
            }
        }
        let count = |list: &[String]| u32::try_from(list.len()).unwrap_or(u32::MAX);
        found.p = compute_mcnemar_probability(count(&found.gained), count(&found.lost));
        found
    }
}

impl EvalSummary {
    /// Computes the figures of these runs, and compares them with another evaluation.
    pub fn of(frame: EvalFrame, records: &[EvalRunRecord], other: Option<&[EvalRunRecord]>) -> Self {
        let count = |is: fn(&EvalRunRecord) -> bool| records.iter().filter(|record| is(record)).count();
        let sum = |of: fn(&EvalRunRecord) -> u64| records.iter().map(of).sum::<u64>();
        let leaked = records.iter().filter(|record| record.leak.is_some());
        // Several runs of an instance may leak, and the list names it once.
        let leaks: BTreeSet<_> = leaked.map(|record| record.key.instance.clone()).collect();
        Self {
            finished: records.len(),
            missing: (frame.instances * frame.runs_each as usize).saturating_sub(records.len()),
            resolved: ResolvedShare::of(records, frame.runs_each),
            cost: EvalCost::of(records),
            turns: sum(|record| u64::from(record.turns)),
            minutes: convert_to_float(sum(|record| record.duration_ms)) / 60_000.0,
            tokens: EvalTokens {
                input: sum(|record| record.tokens.input),
                cached: sum(|record| record.tokens.cached),
                output: sum(|record| record.tokens.output),
            },
            false_done: count(EvalRunRecord::is_false_done),
            infra: count(|record| record.infra.is_some()),
            evidence: count_names(records.iter().map(|record| {
                record
                    .evidence
                    .map_or_else(|| "none".to_owned(), |level| level.to_string())
            })),
            stops: count_names(records.iter().map(|record| record.stop.clone())),
            leaks: leaks.into_iter().collect(),
            comparison: other.map(|other| EvalComparison::of(records, other)),
            frame,
        }
    }
}

fn count_names(names: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for name in names {
        *all.entry(name).or_default() += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::build_run_record;

    #[test]
    fn interval_counts_instances_and_power_counts_runs() {
        let records = [
            build_run_record("a", 1, true),
            build_run_record("a", 2, true),
            build_run_record("b", 1, true),
            build_run_record("b", 2, false),
            build_run_record("c", 1, true),
        ];
        let found = ResolvedShare::of(&records, 2);
        assert_eq!((found.runs, found.pass_power), (4, Some(0.5)));
        assert!((found.share - 0.8).abs() < 1e-9);
        assert_eq!((found.low, found.high), compute_wilson_interval(0.8, 3.0));
        let nothing = ResolvedShare::of(&[], 1);
        assert_eq!((nothing.runs, nothing.pass_power), (0, None));
        assert_eq!((nothing.low, nothing.high), (0.0, 1.0));
    }

    #[test]
    fn infrastructure_failure_is_unresolved_without_false_done() {
        let mut infra = build_run_record("b", 1, false);
        infra.infra = Some("the model failed".to_owned());
        infra.unpriced = 2;
        let frame = EvalFrame {
            release: "1".to_owned(),
            model: "m".to_owned(),
            settings: "s".to_owned(),
            instances: 4,
            runs_each: 1,
            invalid: Vec::new(),
            ended_early: None,
        };
        let records = [
            build_run_record("a", 1, true),
            infra,
            build_run_record("c", 1, false),
        ];
        let summary = EvalSummary::of(frame, &records, None);
        assert_eq!((summary.finished, summary.missing), (3, 1));
        assert_eq!((summary.false_done, summary.infra), (1, 1));
        assert!((summary.resolved.share - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(summary.cost.unpriced_replies, 2);
        assert!((summary.cost.usd_per_resolved.unwrap() - 0.03).abs() < 1e-9);
        assert_eq!(summary.evidence.get("E3"), Some(&3));
    }

    #[test]
    fn comparison_pairs_instances_of_both_sides() {
        let here = [
            build_run_record("a", 1, true),
            build_run_record("b", 1, false),
            build_run_record("c", 1, true),
        ];
        let there = [
            build_run_record("a", 1, false),
            build_run_record("a", 2, true),
            build_run_record("b", 1, true),
            build_run_record("d", 1, true),
        ];
        let found = EvalComparison::of(&here, &there);
        assert_eq!((found.instances, found.here, found.there), (2, 1, 1));
        assert_eq!(
            (found.gained, found.lost),
            (vec!["a".to_owned()], vec!["b".to_owned()])
        );
        assert!((found.p - 1.0).abs() < 1e-9);
    }
}
