//! Which executor is asked for a workspace.

use domain::RunFence;
use grant::Signer;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::executors::{Caller, Executors};

#[tokio::test]
async fn a_workspace_that_is_open_already_is_found_although_its_executor_is_full() {
    let (full, free) = (FakeExecutor::start().await, FakeExecutor::start().await);
    full.hold_run_in_the_last_slot(&domain::RunId::new(ticket(), 1));
    let key = grant::generate();
    let settings = PlannerSettings {
        listen: ([127, 0, 0, 1], 0).into(),
        slots: 1,
        retry_base_ms: 20,
        retry_longest_ms: 900_000,
        max_retries: 5,
        pools: [(
            "default".to_owned(),
            bootstrap::settings::TextList(vec![free.url.clone(), full.url.clone()]),
        )]
        .into(),
        gate_url: "http://127.0.0.1:1/git".to_owned(),
        egress_url: None,
        grant_key_id: key.id.clone(),
        grant_key: key.private_key.clone(),
    };
    let signer = Signer::new(&key.id, &key.private_key).unwrap();
    let shutdown = CancellationToken::new();
    let _stopped = shutdown.clone().drop_guard();
    let executors = Executors::start(settings, signer, &shutdown);
    let request = request(Job::Implement);
    let caller = Caller {
        run: domain::RunId::new(ticket(), 1),
        repository: request.repository.clone(),
        fence: RunFence::new(1, 2, 1),
    };
    let opened = executors.open(&caller, &request, None, None).await.unwrap();
    assert_eq!(opened.executor, full.url);
    assert_eq!((full.open(), free.open()), (1, 0));
}
