//! Limits of maintenance orders.

use domain::{MaintenanceOrder, MaintenanceOutcome, MaintenanceTask, Timestamp};
use queue::MaintenanceOrders;

use crate::world::{World, await_soon, build_ticket_key};

async fn ask_to_forget(orders: &MaintenanceOrders, number: u64) {
    let order = MaintenanceOrder {
        id: number.to_string(),
        at: Timestamp::from_unix_ms(1_000),
        by: "ops".to_owned(),
        task: MaintenanceTask::ForgetTicket {
            ticket: build_ticket_key(number),
        },
    };
    orders.ask(&order).await.unwrap();
}

/// Runs a worker with this clock until the order has its outcome.
async fn execute_until(world: &World, clock: fn() -> Timestamp, number: u64) -> MaintenanceOutcome {
    let worker = world.queue.maintenance_worker(clock);
    let shutdown = world.shutdown.child_token();
    let stop = shutdown.clone();
    let working = tokio::spawn(async move { worker.run(shutdown).await });
    let orders = world.queue.maintenance_orders();
    let answered = async {
        loop {
            if let Some(outcome) = orders.outcome(&number.to_string()).await.unwrap() {
                return outcome;
            }
            tokio::task::yield_now().await;
        }
    };
    let outcome = await_soon(answered).await;
    stop.cancel();
    working.await.unwrap().unwrap();
    outcome
}

#[tokio::test]
async fn tickets_forgotten_per_hour_are_limited() {
    let world = World::new().await;
    let orders = world.queue.maintenance_orders();
    let most = MaintenanceOrder::TICKETS_AN_HOUR as u64;
    for number in 1..=most + 1 {
        ask_to_forget(&orders, number).await;
    }
    let refused = execute_until(&world, || Timestamp::from_unix_ms(1_000), most + 1).await;
    assert!(
        matches!(&refused, MaintenanceOutcome::Refused { reason } if reason.contains("60 tickets")),
        "{refused:?}"
    );
    for number in 1..=most {
        let outcome = orders.outcome(&number.to_string()).await.unwrap();
        assert_eq!(outcome, Some(MaintenanceOutcome::Done), "{number}");
    }
    // The first hour is over.
    ask_to_forget(&orders, most + 2).await;
    let later = execute_until(&world, || Timestamp::from_unix_ms(3_601_001), most + 2).await;
    assert_eq!(later, MaintenanceOutcome::Done);
}
