//! Stage of the fault test: restartable servers, replicated services, randomly failing external services, and
//! the strikes.

use std::time::Duration;

use e2e::{NoteTicket, Options, ReplicaProcesses, ServiceMode, TestWorld};
use testkit::{NatsOptions, NatsServer, RedisOptions, RedisServer};
use tokio::time::Instant;

use crate::faults::{
    schedule::{ACK_WAIT, FaultSchedule, LEASE, ProcessFault, REPLICAS, ScheduledStrike},
    vendor_faults,
};

/// Interval of ingest's sweep for lost wake-ups, in seconds.
const SWEEP_S: &str = "2";
/// Interval of polls, in seconds.
const POLL_S: &str = "4";
// First of five backoffs of a failed run. Their sum exceeds the longest fault.
const RETRY_BASE_MS: &str = "500";
// Executor slots: more than there are tickets in progress.
const SLOTS: &str = "64";
// Reporter slots: more than there are writes without an answer at once.
const REPORTER_SLOTS: &str = "16";

/// Running parts of the test.
pub(crate) struct FaultStage {
    pub(crate) world: TestWorld,
    nats: NatsServer,
    redis: RedisServer,
    /// Strikes in progress with their ends.
    under_way: Vec<(Instant, ProcessFault)>,
    /// Processes that exited by themselves, as text.
    pub(crate) ended: Vec<String>,
}

impl FaultStage {
    pub(crate) async fn start(schedule: &FaultSchedule) -> anyhow::Result<Self> {
        let nats = NatsServer::start_with(NatsOptions {
            port: Some(servers::free_port()?),
            ..NatsOptions::default()
        });
        let redis = RedisServer::start_with(RedisOptions {
            port: Some(servers::free_port()?),
            ..RedisOptions::default()
        });
        let (nats, redis) = (nats.await?, redis.await?);
        let mut settings = build_fault_settings(schedule);
        settings.extend([("NATS__URL", nats.url()), ("REDIS__URL", redis.url())]);
        let world = TestWorld::start(Options {
            mode: ServiceMode::Processes,
            replicas: REPLICAS,
            settings,
            rules: "agent: {review_status: In Review}\n".to_owned(),
            jira: NoteTicket::workflow(),
            ..Options::default()
        });
        let world = Box::pin(world).await?;
        NoteTicket::set_branch_rules(&world, &schedule.signed_tickets())?;
        vendor_faults::enable_faults(&world, schedule);
        Ok(Self {
            world,
            nats,
            redis,
            under_way: Vec::new(),
            ended: Vec::new(),
        })
    }

    /// Starts a strike. [`FaultStage::mend`] ends it in time.
    pub(crate) async fn strike(&mut self, strike: &ScheduledStrike) -> anyhow::Result<()> {
        match &strike.fault {
            // An error means that the process is already down.
            ProcessFault::Kill { process, .. } => drop(self.processes()?.kill(process).await),
            ProcessFault::Freeze { process, .. } => self.processes()?.freeze(process),
            ProcessFault::RestartNats { is_polite: true, .. } => self.nats.stop().await,
            ProcessFault::RestartNats { .. } => self.nats.kill(),
            ProcessFault::RestartRedis { .. } => self.redis.kill(),
            ProcessFault::FlushRedis => {
                // An error means that Redis is down, and it restarts empty.
                let _ = self.redis.flush().await;
            }
        }
        let end = Instant::now() + strike.fault.lasts();
        self.under_way.push((end, strike.fault.clone()));
        Ok(())
    }

    /// Ends the strikes whose time is over, and restarts processes that exited by themselves, as a cluster
    /// does.
    pub(crate) async fn mend(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        let (over, under_way) = self.under_way.drain(..).partition(|(end, _)| *end <= now);
        self.under_way = under_way;
        self.restore(over).await?;
        for (process, status) in self.processes()?.ended() {
            self.ended.push(format!("{process} ended with {status}"));
            self.processes()?.spawn(&process)?;
        }
        Ok(())
    }

    /// Ends all strikes at once.
    pub(crate) async fn mend_all(&mut self) -> anyhow::Result<()> {
        let all = std::mem::take(&mut self.under_way);
        self.restore(all).await?;
        self.mend().await
    }

    async fn restore(&mut self, over: Vec<(Instant, ProcessFault)>) -> anyhow::Result<()> {
        for (_, fault) in over {
            match fault {
                ProcessFault::Kill { process, .. } => self.processes()?.spawn(&process)?,
                ProcessFault::Freeze { process, .. } => self.processes()?.thaw(&process),
                ProcessFault::RestartNats { .. } => self.nats.restart().await?,
                ProcessFault::RestartRedis { .. } => self.redis.restart().await?,
                ProcessFault::FlushRedis => {}
            }
        }
        Ok(())
    }

    fn processes(&mut self) -> anyhow::Result<&mut ReplicaProcesses> {
        let processes = self.world.processes();
        processes.ok_or_else(|| anyhow::anyhow!("the services are not separate processes"))
    }

    /// Stops the services, servers and stand-ins.
    ///
    /// # Errors
    /// When a service does not drain, or the stand-ins recorded violations.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.world.stop_with_dead_letters().await
    }
}

fn build_fault_settings(schedule: &FaultSchedule) -> Vec<(&'static str, String)> {
    let ms = |time: Duration| time.as_millis().to_string();
    let lag = schedule.list_lag.as_secs();
    vec![
        ("NATS__ACK_WAIT_MS", ms(ACK_WAIT)),
        // The windows exceed the lag of lists; otherwise the reporter decides before a list shows its own
        // write.
        ("REDIS__TTL_MS", ms(LEASE)),
        ("INGEST__SWEEP_INTERVAL_S", SWEEP_S.to_owned()),
        ("INGEST__POLL_INTERVAL_S", POLL_S.to_owned()),
        ("PLANNER__RETRY_BASE_MS", RETRY_BASE_MS.to_owned()),
        ("EXECUTOR__SLOTS", SLOTS.to_owned()),
        ("REPORTER__SLOTS", REPORTER_SLOTS.to_owned()),
        ("REPORTER__UNKNOWN_WINDOW_S", (lag * 2).max(3).to_string()),
        ("REPORTER__LIST_LAG_S", (lag + 1).to_string()),
    ]
}
