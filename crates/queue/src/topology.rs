//! Streams, durable consumers and buckets as data; each is created when missing, and migrated or refused when
//! different.

use std::{sync::Arc, time::Duration};

use async_nats::{
    header,
    jetstream::{
        self, ErrorCode,
        consumer::{self, AckPolicy, DeliverPolicy, pull},
        context::{CreateStreamErrorKind, GetStreamErrorKind, UpdateStreamError},
        stream::{self, ConsumerUpdateErrorKind, DiscardPolicy, RetentionPolicy},
    },
};
use domain::Timestamp;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::{
    connection::NatsConnection,
    epoch,
    error::Error,
    migration::{self, FieldChange, LossPolicy, MigrationPlan},
    names::{
        self, DEAD, DELIVERIES, JOURNAL, KeyValueBucket, LogNames, OBJECT_CHUNKS, OBJECT_METAS, OBJECTS,
        REPORTS, ROUTER, TIMERS, TRIGGERS, WAKER,
    },
    permissions::NatsRole,
    settings::Settings,
    store::{self, StoreLimits},
    wire::is_without_room,
};

// The reporter creates the topology and usually starts at the same time as the service that checks it.
const OWNER_PATIENCE: Duration = Duration::from_secs(5);
const OWNER_PAUSE: Duration = Duration::from_millis(50);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
// Also the time within which a repeated letter about an unreadable record stays one letter, see
// `DeadLetters::publish_unreadable`.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
// Messages that wait for a delayed redelivery count against this limit too. So it is far above the number of
// messages that are in hand at the same time.
const MAX_ACK_PENDING: i64 = 10_000;

// The server decompresses a whole file of messages to remove or read one of them, and soon drops the result. In a work
// queue that happened for every acknowledgment, in a bucket for every row that was not written lately.
const UNCOMPRESSED: stream::Compression = stream::Compression::None;

// The compared fields, by their names on the wire.
const STREAM_FIELDS: [&str; 13] = [
    "subjects",
    "retention",
    "discard",
    "discard_new_per_subject",
    "max_msgs_per_subject",
    "max_age",
    "storage",
    "num_replicas",
    "duplicate_window",
    "allow_direct",
    "allow_rollup_hdrs",
    "allow_msg_schedules",
    "compression",
];
// `max_bytes` of objects and dead letters follows from settings. On other streams an operator's own limit is
// kept.
const LIMITED_FIELDS: [&str; 14] = {
    let mut fields = ["max_bytes"; 14];
    let mut at = 0;
    while at < STREAM_FIELDS.len() {
        fields[at] = STREAM_FIELDS[at];
        at += 1;
    }
    fields
};
const CONSUMER_FIELDS: [&str; 8] = [
    "deliver_policy",
    "ack_policy",
    "ack_wait",
    "max_deliver",
    "filter_subject",
    "max_ack_pending",
    "headers_only",
    "backoff",
];

fn build_log_stream(name: &str, subjects: String) -> stream::Config {
    stream::Config {
        name: name.to_owned(),
        subjects: vec![subjects],
        retention: RetentionPolicy::Limits,
        max_messages_per_subject: -1,
        duplicate_window: DUPLICATE_WINDOW,
        allow_direct: true,
        // The server compresses a file of messages when it begins the next one, after 4 or 8 MiB.
        compression: Some(stream::Compression::S2),
        ..stream::Config::default()
    }
}

fn work_queue(name: &str, subjects: String) -> stream::Config {
    stream::Config {
        retention: RetentionPolicy::WorkQueue,
        allow_direct: false,
        compression: Some(UNCOMPRESSED),
        ..build_log_stream(name, subjects)
    }
}

/// Stream of wake-up tokens, at most one per ticket. The server refuses a second one while the first is
/// queued or in a worker's hands.
fn build_wakeup_stream(names: &LogNames) -> stream::Config {
    stream::Config {
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        discard_new_per_subject: true,
        ..work_queue(names.wakeups, names.tokens())
    }
}

fn build_bucket_stream(bucket: KeyValueBucket) -> stream::Config {
    stream::Config {
        // A planner that is gone does not remove its view of a pool, so the view expires.
        max_age: if bucket == KeyValueBucket::Pools {
            DAY
        } else {
            Duration::ZERO
        },
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        deny_delete: true,
        compression: Some(UNCOMPRESSED),
        ..build_log_stream(&bucket.stream(), bucket.all())
    }
}

fn object_store(limits: StoreLimits) -> stream::Config {
    stream::Config {
        subjects: vec![OBJECT_CHUNKS.to_owned(), OBJECT_METAS.to_owned()],
        discard: DiscardPolicy::New,
        allow_rollup: true,
        max_bytes: limits.objects(),
        ..build_log_stream(OBJECTS, String::new())
    }
}

fn dead_letters(settings: &Settings) -> stream::Config {
    let bytes = i64::from(settings.dead_letter_mib) << 20;
    stream::Config {
        max_age: DAY * settings.dead_letter_days,
        max_bytes: if bytes == 0 { -1 } else { bytes },
        ..build_log_stream(DEAD, names::build_letter_filter())
    }
}

/// Configurations of all wanted streams, labeled with this release's version.
fn list_wanted_streams(settings: &Settings, limits: StoreLimits) -> Vec<stream::Config> {
    let aged = |config: stream::Config, days: u32| stream::Config {
        max_age: DAY * days,
        ..config
    };
    let mut wanted = vec![
        stream::Config {
            // The message id of a delivery is its webhook's id, so a webhook that is sent again within a day
            // is stored once.
            duplicate_window: DAY,
            ..work_queue(DELIVERIES, names::build_delivery_filter())
        },
        // The key of a record is refused a second time for as long as the stream keeps the first.
        aged(build_log_stream(TRIGGERS.stream, TRIGGERS.records()), 30),
        aged(build_log_stream(REPORTS.stream, REPORTS.records()), 30),
        build_wakeup_stream(&TRIGGERS),
        build_wakeup_stream(&REPORTS),
        stream::Config {
            subjects: vec![names::timers_set(), names::timers_due()],
            max_messages_per_subject: 1,
            allow_message_schedules: true,
            // The server sets it on every stream with schedules; wanting it off would differ at each start.
            allow_rollup: true,
            ..work_queue(TIMERS, String::new())
        },
        build_log_stream(JOURNAL, names::build_journal_filter()),
        dead_letters(settings),
        object_store(limits),
    ];
    wanted.extend(KeyValueBucket::ALL.map(build_bucket_stream));
    wanted
        .into_iter()
        .map(|config| label_config(settings, config))
        .collect()
}

fn label_config(settings: &Settings, config: stream::Config) -> stream::Config {
    stream::Config {
        num_replicas: settings.replicas,
        metadata: migration::build_version_label(),
        ..config
    }
}

/// Names of all streams, in the order in which a backup reads them while services work.
///
/// Streams whose records are derived from others come first: they are older than their source and are derived
/// again. Objects come last, so that each body that a record names is in the backup. The planners' views of
/// pools expire within a day and are left out.
pub(crate) fn names_for_backup() -> Vec<String> {
    let logs = [
        TRIGGERS.wakeups,
        REPORTS.wakeups,
        TIMERS,
        JOURNAL,
        REPORTS.stream,
        TRIGGERS.stream,
        DELIVERIES,
        DEAD,
        OBJECTS,
    ];
    let lasting = KeyValueBucket::ALL
        .into_iter()
        .filter(|bucket| *bucket != KeyValueBucket::Pools);
    let buckets = lasting.map(KeyValueBucket::stream);
    buckets.chain(logs.map(str::to_owned)).collect()
}

fn build_durable_consumer(name: &str, filter: &str, ack_wait: Duration) -> pull::Config {
    // `max_deliver` is -1 because a message is dead-lettered by its handler, never dropped by the server.
    pull::Config {
        durable_name: Some(name.to_owned()),
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::Explicit,
        ack_wait,
        max_deliver: -1,
        max_ack_pending: MAX_ACK_PENDING,
        filter_subject: filter.to_owned(),
        metadata: migration::build_version_label(),
        ..pull::Config::default()
    }
}

/// Wanted durable consumers, each with the name of its stream.
fn list_wanted_consumers(ack_wait: Duration) -> Vec<(&'static str, pull::Config)> {
    let durable = |name: &str, filter: &str| build_durable_consumer(name, filter, ack_wait);
    let mut wanted = vec![
        (DELIVERIES, durable(ROUTER, &names::build_delivery_filter())),
        (TIMERS, durable(WAKER, &names::timers_due())),
    ];
    for names in [&TRIGGERS, &REPORTS] {
        let waker = durable(WAKER, &names.records());
        wanted.push((
            names.stream,
            // The waker needs only the subject and sequence of a record, and its trace headers.
            pull::Config {
                headers_only: true,
                ..waker
            },
        ));
        wanted.push((names.wakeups, durable(names.workers, &names.tokens())));
    }
    wanted
}

/// Creates missing streams and consumers, migrates different ones and raises the epochs of rebuilt logs. Two
/// services that do this at once reach the same result.
pub(crate) async fn ensure_wanted_topology(connection: &Arc<NatsConnection>) -> Result<(), Error> {
    ensure_streams(connection).await?;
    // Consumers and epochs follow the streams: both are read from a stream that must exist.
    for (stream, wanted) in list_wanted_consumers(connection.ack_wait()) {
        ensure_consumer(connection, stream, &wanted).await?;
    }
    for names in [&TRIGGERS, &REPORTS] {
        epoch::read_current_epoch(connection, names).await?;
    }
    Ok(())
}

/// Creates or migrates every stream. Where the servers have less room than [`Settings::store_mib`], the
/// limits are those of a smaller store.
///
/// A service that works with less room is preferred to one that does not start.
async fn ensure_streams(connection: &NatsConnection) -> Result<(), Error> {
    let wanted = StoreLimits::new(&connection.settings);
    let limits = fit_limits(connection, wanted).await?;
    if limits != wanted {
        tracing::warn!(
            wanted_mib = wanted.store_mib(),
            used_mib = limits.store_mib(),
            "nats has less room than nats.store_mib: set it to at most 90 % of max_file_store of the servers"
        );
    }
    for wanted in list_wanted_streams(&connection.settings, limits) {
        ensure_stream(connection, &wanted).await?;
    }
    Ok(())
}

/// Finds the limits of a store for which the servers have room.
///
/// A server reserves the limit of a stream when it accepts it, and reports missing room in no other way. So
/// the objects' stream has the limit of the whole store for a moment.
async fn fit_limits(connection: &NatsConnection, wanted: StoreLimits) -> Result<StoreLimits, Error> {
    let found = match connection.context.get_stream(OBJECTS).await {
        Ok(stream) => Some(stream.cached_info().config.clone()),
        Err(error) if is_missing_stream(&error.kind()) => None,
        Err(error) => return Err(Error::unavailable(format!("look for stream {OBJECTS}"), error)),
    };
    // A settled limit is not probed again, so that a start does not reserve the whole store each time.
    let is_settled = |found: &stream::Config| {
        found.max_bytes == wanted.objects() || migration::is_of_newer_release(&found.metadata)
    };
    if found.as_ref().is_some_and(is_settled) {
        return Ok(wanted);
    }
    let mut limits = wanted;
    while limits.store_mib() > 0 {
        let reserving = stream::Config {
            max_bytes: limits.required(),
            ..match &found {
                Some(found) => found.clone(),
                None => label_config(&connection.settings, object_store(limits)),
            }
        };
        let reserved = match found {
            Some(_) => {
                let updated = connection.context.update_stream(&reserving).await;
                updated.map(drop).map_err(|error| not_updated(OBJECTS, error))
            }
            None => create_stream(connection, &reserving).await.map(drop),
        };
        match reserved {
            Ok(()) => return Ok(limits),
            Err(Error::Full { .. }) => limits = limits.halved(),
            Err(error) => return Err(error),
        }
    }
    Ok(limits)
}

/// Checks that the streams and durable consumers of a role exist. Waits up to [`OWNER_PATIENCE`] for the
/// reporter, which usually starts at the same time.
pub(crate) async fn await_role_topology(connection: &NatsConnection, role: NatsRole) -> Result<(), Error> {
    let give_up = Instant::now() + OWNER_PATIENCE;
    loop {
        match check_role_streams(connection, role).await {
            Err(Error::Unavailable { .. }) if Instant::now() < give_up => sleep(OWNER_PAUSE).await,
            looked => return looked,
        }
    }
}

async fn check_role_streams(connection: &NatsConnection, role: NatsRole) -> Result<(), Error> {
    for name in role.streams() {
        match connection.context.get_stream(&name).await {
            Ok(_) => {}
            Err(error) if is_missing_stream(&error.kind()) => {
                let doing = format!("look for stream {name}");
                return Err(Error::unavailable(
                    doing,
                    "it does not exist yet: the reporter creates it",
                ));
            }
            Err(error) => return Err(Error::unavailable(format!("look for stream {name}"), error)),
        }
    }
    for (stream, durable) in role.consumers() {
        connection.consumer(stream, durable).await?;
    }
    Ok(())
}

async fn ensure_stream(connection: &NatsConnection, wanted: &stream::Config) -> Result<(), Error> {
    let name = &wanted.name;
    let found = match connection.context.get_stream(name).await {
        Ok(stream) => stream.cached_info().config.clone(),
        Err(error) if is_missing_stream(&error.kind()) => create_stream(connection, wanted).await?,
        Err(error) => return Err(Error::unavailable(format!("look for stream {name}"), error)),
    };
    let mut wanted = wanted.clone();
    if *name == OBJECTS {
        // Maintenance forbids rollups once no process of an earlier release needs them. A start must not
        // allow them again.
        wanted.allow_rollup = found.allow_rollup;
    }
    let (wanted, what) = (&wanted, format!("stream {name}"));
    let fields = if store::has_limit(name) {
        &LIMITED_FIELDS[..]
    } else {
        &STREAM_FIELDS[..]
    };
    // A full object store refuses new objects and keeps the old ones, so a smaller limit loses no object. The
    // limit of dead letters is an operator's setting.
    let loss = if store::has_limit(name) {
        LossPolicy::Wanted
    } else {
        LossPolicy::Refused
    };
    let Some(config) = plan_config_update::<stream::Config>(&what, fields, loss, &found, wanted)? else {
        return Ok(());
    };
    match connection.context.update_stream(&config).await {
        Ok(_) => Ok(()),
        Err(error) => Err(not_updated(&what, error)),
    }
}

/// Forbids rollups in the object store if no message was rolled up since an instant of the server's clock.
/// Returns true when they are forbidden.
///
/// A rollup replaces all other messages of its subject or of the whole stream. Processes of earlier releases
/// write descriptions of objects with it.
pub(crate) async fn forbid_rollups(
    connection: &NatsConnection,
    quiet_since: Timestamp,
) -> Result<bool, Error> {
    let what = format!("stream {OBJECTS}");
    let found = connection.context.get_stream(OBJECTS).await;
    let found = found.map_err(|error| Error::unavailable(format!("look for {what}"), error))?;
    let info = found.cached_info();
    if !info.config.allow_rollup {
        return Ok(true);
    }
    // A stream that is younger than the instant does not prove that no earlier release is still at work.
    if info.created.unix_timestamp() >= quiet_since.unix_ms() / 1_000 {
        return Ok(false);
    }
    let mut recent = connection.page_since(OBJECTS, OBJECT_METAS, quiet_since).await?;
    while let Some(newest) = recent.last() {
        let next = newest.sequence + 1;
        if recent
            .iter()
            .any(|stored| stored.headers.get(header::NATS_ROLLUP).is_some())
        {
            return Ok(false);
        }
        recent = connection.page(OBJECTS, OBJECT_METAS, next).await?;
    }
    let config = stream::Config {
        allow_rollup: false,
        ..info.config.clone()
    };
    match connection.context.update_stream(&config).await {
        Ok(_) => Ok(true),
        Err(error) => Err(not_updated(&what, error)),
    }
}

/// Maps a failed update to an error. A refusal of the server is final; a missing answer is worth a retry.
fn not_updated(what: &str, error: UpdateStreamError) -> Error {
    match error.kind() {
        CreateStreamErrorKind::JetStream(refused) if is_refused_for_room(&refused) => Error::full(what),
        CreateStreamErrorKind::JetStream(refused) => {
            Error::topology(format!("{what} cannot be changed"), Some(refused.into()))
        }
        _ => Error::unavailable(format!("change {what}"), error),
    }
}

// A cluster reports that no server is suitable; only its text contains the reason.
fn is_refused_for_room(refused: &jetstream::Error) -> bool {
    is_without_room(refused.error_code()) || refused.to_string().contains("insufficient storage")
}

fn is_missing_stream(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

async fn create_stream(
    connection: &NatsConnection,
    wanted: &stream::Config,
) -> Result<stream::Config, Error> {
    let name = &wanted.name;
    match connection.context.create_stream(wanted.clone()).await {
        Ok(created) => Ok(created.cached_info().config.clone()),
        Err(error) => match error.kind() {
            // Another service created it at the same moment. If it differs from ours, the comparison in the
            // caller reports it.
            CreateStreamErrorKind::JetStream(refused)
                if refused.error_code() == ErrorCode::STREAM_NAME_EXIST =>
            {
                let found = connection.context.get_stream(name).await;
                let found =
                    found.map_err(|error| Error::unavailable(format!("look for stream {name}"), error))?;
                Ok(found.cached_info().config.clone())
            }
            CreateStreamErrorKind::JetStream(refused) if is_refused_for_room(&refused) => {
                Err(Error::full(format!("stream {name}")))
            }
            CreateStreamErrorKind::JetStream(refused) => {
                let problem = format!("stream {name} cannot be created");
                Err(Error::topology(problem, Some(refused.into())))
            }
            _ => Err(Error::unavailable(format!("create stream {name}"), error)),
        },
    }
}

async fn ensure_consumer(
    connection: &NatsConnection,
    stream: &str,
    wanted: &pull::Config,
) -> Result<(), Error> {
    let name = wanted.durable_name.as_deref().unwrap_or_default();
    let handle = connection.context.get_stream_no_info(stream).await;
    let handle = handle.map_err(|error| Error::unavailable(format!("look for stream {stream}"), error))?;
    let consumer = handle
        .get_or_create_consumer(name, wanted.clone())
        .await
        .map_err(|error| Error::unavailable(format!("consumer {name} of {stream}"), error))?;
    let what = format!("consumer {name} of {stream}");
    let found = &consumer.cached_info().config;
    let Some(config) =
        plan_config_update::<consumer::Config>(&what, &CONSUMER_FIELDS, LossPolicy::Refused, found, wanted)?
    else {
        return Ok(());
    };
    match handle.update_consumer(config).await {
        Ok(_) => Ok(()),
        Err(error) => Err(match error.kind() {
            ConsumerUpdateErrorKind::JetStream(refused) => {
                Error::topology(format!("{what} cannot be changed"), Some(refused.into()))
            }
            _ => Error::unavailable(format!("change {what}"), error),
        }),
    }
}

/// Config to update to, or `None` when no update is needed. Logs each changed field.
fn plan_config_update<C: DeserializeOwned>(
    what: &str,
    fields: &[&'static str],
    loss: LossPolicy,
    found: &impl Serialize,
    wanted: &impl Serialize,
) -> Result<Option<C>, Error> {
    let unreadable = |error: serde_json::Error| Error::corrupt(what, error);
    let found = serde_json::to_value(found).map_err(unreadable)?;
    let wanted: Value = serde_json::to_value(wanted).map_err(unreadable)?;
    match migration::plan_migration(what, fields, loss, &found, &wanted) {
        MigrationPlan::Leave => Ok(None),
        MigrationPlan::Refuse(why) => Err(Error::topology(why, None)),
        MigrationPlan::Migrate(changes) => {
            for FieldChange { field, found, wanted } in &changes {
                tracing::info!(what, field, old = %found, new = %wanted, "changed in place");
            }
            let config = serde_json::from_value(migration::patch_config(found, &changes));
            config.map(Some).map_err(unreadable)
        }
    }
}
