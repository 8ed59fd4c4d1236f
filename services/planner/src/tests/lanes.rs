//! Parallel runs of one ticket.

use domain::{PullRequestEnd, PullRequestEvent, TicketComment, TicketNews};

use super::*;

impl World {
    pub(super) async fn until_the_model_is_asked(&self) {
        self.until_fact("model_requested").await;
    }

    /// Waits for a fact in the journal of the ticket's first run.
    async fn until_fact(&self, name: &str) {
        let stands = async || {
            let row = self.row().await?;
            let entries = self.queue.journal().read(&row.runs.first()?.id).await.ok()?;
            entries
                .iter()
                .any(|(_, entry)| entry.fact.name() == name)
                .then_some(())
        };
        self.until(name, stands).await;
    }
}

fn build_merge_reason() -> TriggerReason {
    TriggerReason::from(PullRequestEvent::Merged(PullRequestEnd {
        pull_request: PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 6,
            url: "https://github.example/acme/shop/pull/6".to_owned(),
            branch: "fix/ENG-12-before".to_owned(),
        },
        by: "ada".to_owned(),
        moved_to: None,
    }))
}

/// Starts a change that waits for the model while an earlier pull request of the ticket is merged.
async fn merged_meanwhile() -> (World, Planner) {
    let world = World::start(build_fix_script()).await;
    world.model.set_latency(ENDLESS);
    let planner = world.planner().await;
    world.ask().await;
    world.until_the_model_is_asked().await;
    world.trigger("merged:6", build_merge_reason()).await;
    (world, planner)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn maintenance_completes_while_change_waits() {
    let (world, planner) = merged_meanwhile().await;
    let row = world
        .until("the hand-over is done", async || {
            let row = world.row().await?;
            let done = |run: &domain::RunSummary| run.job == Job::Finish && run.status == COMPLETED;
            row.runs.iter().any(done).then_some(row)
        })
        .await;
    assert_eq!(
        (row.runs[0].job, &row.runs[0].status),
        (Job::Implement, &RunStatus::Active)
    );
    assert_eq!(row.takeovers, 0);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_ends_change_but_not_maintenance() {
    let (world, planner) = merged_meanwhile().await;
    world
        .trigger("comment:9", TriggerReason::StopRequested { run: None })
        .await;
    let row = world.finished(2).await;
    let by = "ada".to_owned();
    let stopped = RunStatus::Finished {
        reason: StopReason::Stopped { by },
    };
    assert_eq!([&row.runs[0].status, &row.runs[1].status], [&stopped, &COMPLETED]);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn comment_during_work_reaches_next_turn() {
    let script = vec![
        ScriptStep::call("read_file", json!({ "path": "a" })),
        ScriptStep::reply("There is nothing to do.").expecting("Mind the tax."),
        ScriptStep::reply("There is nothing to do."),
        ScriptStep::reply("There is nothing to do."),
    ];
    let world = World::start(script).await;
    world.model.set_latency(ENDLESS);
    let planner = world.planner().await;
    world.ask().await;
    world.until_the_model_is_asked().await;
    let comment = TicketComment {
        author: "ada".to_owned(),
        at: bootstrap::read_wall_clock(),
        text: "Mind the tax.".to_owned(),
        may_instruct: true,
        is_new: false,
    };
    let news = TicketNews::Comment {
        comment,
        pull_request: None,
        attachments: Vec::new(),
    };
    world.trigger("comment:8", TriggerReason::NewsArrived(news)).await;
    world.until_fact("news_arrived").await;
    world.model.set_latency(Duration::ZERO);
    let row = world.finished(1).await;
    assert_eq!((row.runs[0].turns, row.runs.len()), (4, 1));
    assert_eq!(world.model.violations(), Vec::<String>::new());
    assert_eq!(world.model.calls().len(), 4, "no call was interrupted");
    world.stop(planner).await;
}
