//! Requests about a change that an executor answers at the same time.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inspection_runs_during_search_for_checks() {
    let world = World::start(build_fix_script()).await;
    // One after the other would never end.
    world.executor.search_until_inspected();
    let planner = world.planner().await;
    world.ask().await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    assert_eq!(world.executor.inspections(), 1);
    let facts = list_fact_names(&world, &row).await;
    let found = facts.iter().position(|name| name == "checks_found").unwrap();
    assert_eq!(facts[found + 1], "change_inspected", "{facts:?}");
    let is_either = |name: &&String| ["checks_found", "change_inspected"].contains(&name.as_str());
    assert_eq!(facts.iter().filter(is_either).count(), 2);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn search_before_work_leaves_inspection_to_proof() {
    let world = World::start(build_fix_script()).await;
    let planner = world.planner().await;
    let mut request = build_job_request(Job::Implement);
    request.rules.agent.base_checks = domain::BaseCheckRule::WhenKnown;
    let job = TriggerReason::JobRequested(Box::new(request));
    world.trigger("changelog:1", job).await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    assert_eq!(world.executor.inspections(), 1);
    let facts = list_fact_names(&world, &row).await;
    let place = |wanted: &str| facts.iter().position(|name| name == wanted).unwrap();
    let last_reply = facts.iter().rposition(|name| name == "model_replied").unwrap();
    assert!(place("checks_found") < place("model_requested"), "{facts:?}");
    assert!(place("change_inspected") > last_reply, "{facts:?}");
    world.stop(planner).await;
}
