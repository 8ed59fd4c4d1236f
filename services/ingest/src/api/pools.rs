//! Pools of executors: their state from planners, the runs that wait for them, and the rules that name them.

use std::collections::{BTreeMap, BTreeSet};

use api::types::{ExecutorView, MakeView, PoolView, PoolsView};
use axum::{Json, extract::State};
use bootstrap::rules::RulesBook;
use domain::{
    ExecutorMake, ExecutorPool, ExecutorState, ObservedExecutor, PoolFreshness, PoolRecord, SlotQueue,
    Timestamp,
};
use queue::KeyValueBucket;

use super::{ApiProblem, ApiState, ViewerProof, installation::format_repository, scope::TokenScope};

/// Lists the pools of executors: those that planners report, and those that rules name. A limited token sees the pools of the rules
/// in its scope, without the addresses of executors.
#[utoipa::path(get, path = "/v1/pools", security(("bearer" = [])),
    responses((status = 200, body = PoolsView)))]
pub(super) async fn list_pools(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
) -> Result<Json<PoolsView>, ApiProblem> {
    let router = state.router()?;
    let records = router
        .queue
        .table::<PoolRecord>(KeyValueBucket::Pools)
        .list()
        .await?;
    let queues = router
        .queue
        .table::<SlotQueue>(KeyValueBucket::Slots)
        .list()
        .await?;
    let mut known = KnownPools {
        named: group_repositories_by_pool(&router.rules.book(), &caller.scope),
        ..KnownPools::default()
    };
    for (_, record) in records {
        known.records.entry(record.pool.clone()).or_default().push(record);
    }
    for (key, queue) in queues {
        let pool = key.parts().concat();
        known.queues.insert(pool, queue);
    }
    Ok(Json(PoolsView {
        pools: known.views(&caller.scope, bootstrap::read_wall_clock()),
    }))
}

/// Repositories of each pool, within the caller's scope.
fn group_repositories_by_pool(book: &RulesBook, scope: &TokenScope) -> BTreeMap<String, Vec<String>> {
    let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for rules in book.repositories().filter(|rules| scope.has_rules(rules)) {
        named
            .entry(rules.executor.pool.clone())
            .or_default()
            .push(format_repository(rules));
    }
    named
}

/// Everything known about pools, by name.
#[derive(Default)]
struct KnownPools {
    /// Records of all planners.
    records: BTreeMap<String, Vec<PoolRecord>>,
    queues: BTreeMap<String, SlotQueue>,
    /// Repositories in the caller's scope.
    named: BTreeMap<String, Vec<String>>,
}

impl KnownPools {
    fn views(&self, scope: &TokenScope, now: Timestamp) -> Vec<PoolView> {
        let mut names: BTreeSet<&String> = self.named.keys().collect();
        // No repository places an unnamed pool in a scope, so a limited token does not see it.
        if scope.is_all() {
            let awaited = self.queues.iter().filter(|(_, queue)| !queue.waiting.is_empty());
            names.extend(self.records.keys().chain(awaited.map(|(name, _)| name)));
        }
        names
            .into_iter()
            .map(|name| self.view(name, scope, now))
            .collect()
    }

    fn view(&self, name: &str, scope: &TokenScope, now: Timestamp) -> PoolView {
        let records = self.records.get(name).map(Vec::as_slice).unwrap_or_default();
        let pool = ExecutorPool::of(records, now);
        let queue = self.queues.get(name);
        let waiting = queue.map(|queue| queue.waiting.as_slice()).unwrap_or_default();
        let named = self.named.get(name).map(Vec::as_slice).unwrap_or_default();
        let makes = pool.makes();
        let members = pool
            .executors
            .iter()
            .map(|one| build_executor_view(one, &makes, &pool));
        PoolView {
            name: name.to_owned(),
            news: pool.news,
            seen_at: pool.at.map(|at| at.to_string()),
            planners: pool.planners,
            executors: pool.count(),
            ready: pool.ready(),
            free: pool.free(),
            total: pool.total(),
            held: pool.held(),
            waiting: convert_count(waiting.len()),
            waiting_since: waiting.first().map(|first| first.since.to_string()),
            problems: list_pool_problems(&pool, name, named, scope.is_all()),
            members: if scope.is_all() {
                members.collect()
            } else {
                Vec::new()
            },
            makes: makes
                .iter()
                .map(|(make, executors)| make_view(make, *executors))
                .collect(),
        }
    }
}

/// Problems for an operator. They contain addresses only for callers who may see them.
fn list_pool_problems(
    pool: &ExecutorPool,
    name: &str,
    named: &[String],
    with_addresses: bool,
) -> Vec<String> {
    match (pool.news, pool.at) {
        (PoolFreshness::Current, _) => list_current_problems(pool, with_addresses),
        (PoolFreshness::Old, Some(at)) => vec![format!(
            "no planner has reported it since {at}: planners are stopped or do not reach NATS, or it is not in their \
             planner.pools any more"
        )],
        (PoolFreshness::Unknown | PoolFreshness::Old, _) => {
            let rules = match named {
                [] => "runs wait for it".to_owned(),
                named => format!("the rules of {} name it", named.join(", ")),
            };
            vec![format!(
                "{rules}, and no planner reports it: set planner.pools.{name}, or another executor.pool in the rules"
            )]
        }
    }
}

fn list_current_problems(pool: &ExecutorPool, with_addresses: bool) -> Vec<String> {
    let mut problems = Vec::new();
    if !pool.unresolved.is_empty() {
        let names = if with_addresses {
            Vec::from_iter(pool.unresolved.iter().map(String::as_str)).join(", ")
        } else {
            "a name in planner.pools".to_owned()
        };
        problems.push(format!("{names} resolves to no address"));
    }
    if pool.executors.is_empty() {
        problems.push("no executor was found".to_owned());
    }
    problems.extend(list_unavailable_executors(pool, with_addresses));
    if pool.half_heard > 0 {
        problems.push(format!(
            "{} known to some of the planners only",
            count_executors(pool.half_heard)
        ));
    }
    let kinds = pool.makes().len();
    if kinds > 1 {
        problems.push(format!(
            "it is mixed: {kinds} kinds of executors, and a run may come to any"
        ));
    }
    if pool.left_out.executors > 0 {
        problems.push(format!(
            "{} more executors are not listed",
            pool.left_out.executors
        ));
    }
    problems
}

/// Unavailable executors, grouped by reason. The reason of a silent one may contain its address.
fn list_unavailable_executors(pool: &ExecutorPool, with_addresses: bool) -> Vec<String> {
    let mut reasons: BTreeMap<(ExecutorState, &str), u32> = BTreeMap::new();
    for one in &pool.executors {
        let why = match one.state {
            ExecutorState::Silent if !with_addresses => "",
            ExecutorState::Silent | ExecutorState::Unready => one.why.as_str(),
            ExecutorState::Draining | ExecutorState::Ready => continue,
        };
        *reasons.entry((one.state, why)).or_default() += 1;
    }
    let words = |((state, why), count): ((ExecutorState, &str), u32)| {
        let is = if state == ExecutorState::Silent {
            "silent"
        } else {
            "not ready"
        };
        let why = if why.is_empty() {
            String::new()
        } else {
            format!(": {why}")
        };
        format!("{} {is}{why}", count_executors(count))
    };
    reasons.into_iter().map(words).collect()
}

fn build_executor_view(
    one: &ObservedExecutor,
    makes: &BTreeMap<ExecutorMake, u32>,
    pool: &ExecutorPool,
) -> ExecutorView {
    let make = one
        .make
        .as_ref()
        .and_then(|make| makes.keys().position(|known| known == make));
    let heard_at = match one.state {
        ExecutorState::Silent => one.heard_at,
        ExecutorState::Unready | ExecutorState::Draining | ExecutorState::Ready => pool.at,
    };
    ExecutorView {
        address: one.address.clone(),
        state: one.state,
        why: one.why.clone(),
        free: one.free,
        total: one.total,
        held: one.held,
        make: make.map(convert_count),
        heard_at: heard_at.map(|at| at.to_string()),
        started_at: one.started_at.map(|at| at.to_string()),
    }
}

fn make_view(make: &ExecutorMake, executors: u32) -> MakeView {
    MakeView {
        version: make.version.clone(),
        sandbox: format!("{:?}", make.sandbox),
        system: make.system.clone(),
        programs: make.programs.clone(),
        executors,
    }
}

/// Subject and verb: `1 executor is`, `3 executors are`.
fn count_executors(count: u32) -> String {
    match count {
        1 => "1 executor is".to_owned(),
        count => format!("{count} executors are"),
    }
}

fn convert_count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use bootstrap::settings::TextList;
    use domain::SandboxLevel;

    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_ms(1_764_000_000_000);

    fn build_executor_make(version: &str) -> ExecutorMake {
        ExecutorMake {
            version: version.to_owned(),
            sandbox: SandboxLevel::L2,
            system: "Debian GNU/Linux 12 (bookworm)".to_owned(),
            programs: vec!["python3.11".to_owned()],
        }
    }

    fn build_observed_executor(address: &str, state: ExecutorState) -> ObservedExecutor {
        let is_heard = state != ExecutorState::Silent;
        let number = |count| if is_heard { count } else { 0 };
        ObservedExecutor {
            address: address.to_owned(),
            state,
            why: match state {
                ExecutorState::Silent => "it cannot be reached".to_owned(),
                ExecutorState::Unready => "the network is open".to_owned(),
                ExecutorState::Draining | ExecutorState::Ready => String::new(),
            },
            free: if state == ExecutorState::Ready { 1 } else { 0 },
            total: number(4),
            held: number(3),
            make: Some(build_executor_make("1.0.0")),
            heard_at: (!is_heard).then(|| NOW.plus_ms(-90_000)),
            started_at: None,
        }
    }

    fn build_pool_record(planner: &str, age_ms: i64, executors: Vec<ObservedExecutor>) -> PoolRecord {
        PoolRecord {
            pool: "default".to_owned(),
            planner: planner.to_owned(),
            at: NOW.plus_ms(-age_ms),
            executors,
            ..PoolRecord::default()
        }
    }

    fn build_known_pools(records: Vec<PoolRecord>) -> KnownPools {
        KnownPools {
            records: [("default".to_owned(), records)].into(),
            ..KnownPools::default()
        }
    }

    fn find_only_view(known: &KnownPools) -> PoolView {
        let mut views = known.views(&TokenScope::default(), NOW);
        assert_eq!(views.len(), 1, "{views:?}");
        views.remove(0)
    }

    #[test]
    fn pool_sums_up_its_executors() {
        use ExecutorState::{Draining, Ready, Silent, Unready};
        let all = [("a", Ready), ("b", Draining), ("c", Unready), ("d", Silent)];
        let executors = all
            .map(|(address, state)| build_observed_executor(address, state))
            .into();
        let view = find_only_view(&build_known_pools(vec![build_pool_record(
            "one", 5_000, executors,
        )]));
        assert_eq!((view.news, view.planners), (PoolFreshness::Current, 1));
        assert_eq!((view.executors, view.ready), (4, 1));
        assert_eq!((view.free, view.total, view.held), (1, 12, 9));
        assert_eq!(
            view.problems,
            [
                "1 executor is silent: it cannot be reached",
                "1 executor is not ready: the network is open"
            ]
        );
        let heard = Vec::from_iter(view.members.iter().map(|one| one.heard_at.clone().unwrap()));
        assert_eq!(view.members[0].address, "d", "those that work come last");
        assert_eq!(heard[0], NOW.plus_ms(-90_000).to_string());
        assert_eq!(heard[3], NOW.plus_ms(-5_000).to_string());
        assert!(!view.is_mixed());
    }

    #[test]
    fn departed_planner_makes_pool_old() {
        let executors = vec![build_observed_executor("a", ExecutorState::Ready)];
        let view = find_only_view(&build_known_pools(vec![build_pool_record(
            "one",
            60_000,
            executors.clone(),
        )]));
        assert_eq!((view.news, view.planners), (PoolFreshness::Old, 0));
        assert_eq!((view.executors, view.ready), (1, 0));
        assert_eq!((view.free, view.total, view.held), (0, 0, 0));
        assert_eq!(view.members[0].state, ExecutorState::Silent);
        let seen = NOW.plus_ms(-60_000).to_string();
        assert_eq!(view.members[0].heard_at.as_ref(), Some(&seen));
        assert!(view.problems[0].contains(&seen), "{:?}", view.problems);
        // A planner that still reports makes the pool current, and the record of the other planner does not count.
        let gone = build_pool_record(
            "gone",
            60_000,
            vec![build_observed_executor("old", ExecutorState::Ready)],
        );
        let view = find_only_view(&build_known_pools(vec![
            gone,
            build_pool_record("one", 0, executors),
        ]));
        assert_eq!(
            (view.news, view.executors, view.ready),
            (PoolFreshness::Current, 1, 1)
        );
    }

    #[test]
    fn partly_reachable_executor_is_listed_once() {
        let one = build_pool_record(
            "one",
            0,
            vec![build_observed_executor("a", ExecutorState::Silent)],
        );
        let two = build_pool_record(
            "two",
            9_000,
            vec![build_observed_executor("a", ExecutorState::Ready)],
        );
        for records in [vec![one.clone(), two.clone()], vec![two, one]] {
            let view = find_only_view(&build_known_pools(records));
            assert_eq!((view.planners, view.executors, view.ready), (2, 1, 1));
            assert_eq!(
                view.problems,
                ["1 executor is known to some of the planners only"]
            );
        }
    }

    #[test]
    fn differing_executors_make_mixed_pool() {
        let mut other = build_observed_executor("b", ExecutorState::Ready);
        other.make = Some(build_executor_make("1.1.0"));
        let same = build_observed_executor("a", ExecutorState::Ready);
        let view = find_only_view(&build_known_pools(vec![build_pool_record(
            "one",
            0,
            vec![same.clone(), other.clone()],
        )]));
        assert!(view.is_mixed());
        assert_eq!(
            view.problems,
            ["it is mixed: 2 kinds of executors, and a run may come to any"]
        );
        let versions = Vec::from_iter(
            view.makes
                .iter()
                .map(|make| (make.version.as_str(), make.executors)),
        );
        assert_eq!(versions, [("1.0.0", 1), ("1.1.0", 1)]);
        assert_eq!(view.members[1].make, Some(1));
        other.state = ExecutorState::Silent;
        let view = find_only_view(&build_known_pools(vec![build_pool_record(
            "one",
            0,
            vec![same, other],
        )]));
        assert!(!view.is_mixed(), "it may come back as the others are");
    }

    #[test]
    fn unknown_rules_pool_is_listed_with_remedy() {
        let known = KnownPools {
            named: [("python".to_owned(), vec!["acme/shop".to_owned()])].into(),
            ..KnownPools::default()
        };
        let view = find_only_view(&known);
        assert_eq!((view.news, view.seen_at), (PoolFreshness::Unknown, None));
        assert_eq!(
            view.problems,
            [
                "the rules of acme/shop name it, and no planner reports it: set planner.pools.python, or another \
                 executor.pool in the rules"
            ]
        );
    }

    #[test]
    fn limited_token_sees_pools_without_addresses() {
        let list = TextList(vec!["acme/shop".to_owned()]);
        let scope = TokenScope::new(Some(&list), None).expect("scope");
        let mut silent = build_observed_executor("http://10.0.0.8:7403", ExecutorState::Silent);
        silent.why = "http://10.0.0.8:7403 is not an address".to_owned();
        let ready = build_observed_executor("http://10.0.0.7:7403", ExecutorState::Ready);
        let mut record = build_pool_record("one", 0, vec![silent, ready]);
        record.unresolved = vec!["dns://executor.internal:7403".to_owned()];
        let mut known = build_known_pools(vec![record]);
        assert!(known.views(&scope, NOW).is_empty(), "none of its rules names it");
        known
            .named
            .insert("default".to_owned(), vec!["acme/shop".to_owned()]);
        let views = known.views(&scope, NOW);
        assert_eq!((views[0].executors, views[0].ready, views[0].free), (2, 1, 1));
        let text = serde_json::to_string(&views).expect("json");
        assert!(!text.contains("10.0.0.") && !text.contains("internal"), "{text}");
        assert_eq!(
            views[0].problems,
            [
                "a name in planner.pools resolves to no address",
                "1 executor is silent"
            ]
        );
    }

    #[test]
    fn waiting_runs_come_from_queue() {
        let waiter = |number: u64| domain::SlotWaiter {
            run: format!("jira:ENG-{number}@{number}").parse().expect("run"),
            since: NOW.plus_ms(number.cast_signed()),
        };
        let known = KnownPools {
            queues: [(
                "python".to_owned(),
                SlotQueue {
                    waiting: vec![waiter(1), waiter(2)],
                },
            )]
            .into(),
            ..KnownPools::default()
        };
        let view = find_only_view(&known);
        assert_eq!((view.name.as_str(), view.waiting), ("python", 2));
        assert_eq!(view.waiting_since, Some(NOW.plus_ms(1).to_string()));
        assert!(
            view.problems[0].starts_with("runs wait for it"),
            "{:?}",
            view.problems
        );
    }
}
