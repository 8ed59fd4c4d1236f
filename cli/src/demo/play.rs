//! Parts of a demo from start to end: servers, stand-ins, services, console and story.

use std::{path::Path, process::ExitCode};

use api::Client;
use bootstrap::read_wall_clock;
use servers::ScratchFolder;
use testkit::fixture;

use super::{
    arguments::{DemoArguments, DemoModel},
    console::DemoConsole,
    story::{DemoStory, require_programs},
    vendors::StandInVendors,
};
use crate::{
    exit_codes::EXIT_INTERRUPTED,
    local::{LocalServices, PreparedServices, StartPlan},
};

/// Prefix of the demo's temporary folders.
const FOLDER_PREFIX: &str = "journeyman-demo-";

/// Services of a demo, with their servers.
pub trait DemoServices: Sized {
    /// Starts the services; logs of processes go into the folder.
    ///
    /// # Errors
    /// When a service does not become ready.
    fn start(prepared: PreparedServices, logs: &Path) -> impl Future<Output = anyhow::Result<Self>>;

    /// Drains the services, then stops the servers.
    ///
    /// # Errors
    /// When a service does not drain.
    fn stop(self) -> impl Future<Output = anyhow::Result<()>>;
}

impl DemoServices for LocalServices {
    async fn start(prepared: PreparedServices, _logs: &Path) -> anyhow::Result<Self> {
        Box::pin(prepared.serve()).await
    }

    async fn stop(self) -> anyhow::Result<()> {
        Self::stop(self).await
    }
}

/// Running parts of the demo.
struct DemoPlay<S> {
    services: S,
    console: DemoConsole,
    story: DemoStory,
    /// Last field, so that the folder is removed after its users.
    _folder: ScratchFolder,
}

/// Plays the demo and ends everything that it started, with any result. The first signal interrupts the play,
/// the second one the shutdown.
///
/// # Errors
/// When a part does not start or stop, or the story does not reach its end.
pub async fn perform_demo<S: DemoServices>(
    arguments: &DemoArguments,
    print: fn(&str),
) -> anyhow::Result<ExitCode> {
    let [first, second] = bootstrap::listen_for_signals();
    let mut stage = None;
    let played = tokio::select! {
        played = Box::pin(play_demo::<S>(arguments, print, &mut stage)) => Some(played),
        () = first.cancelled() => None,
    };
    if let (true, Some(Ok(verdict))) = (arguments.stay, &played) {
        // A user who stays must see the verdict before the wait.
        print(verdict);
        print("\neverything keeps running: look around in the console; Ctrl-C ends it");
        first.cancelled().await;
    }
    // The next signal interrupts the shutdown.
    let at_once = if first.is_cancelled() { second } else { first };
    let ended = match stage {
        Some(play) => tokio::select! {
            ended = Box::pin(play.end()) => ended,
            () = at_once.cancelled() => Ok(()),
        },
        None => Ok(()),
    };
    let Some(verdict) = played else {
        print("interrupted; everything that was started is ended");
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    };
    let verdict = verdict?;
    ended?;
    if !arguments.stay {
        print(&verdict);
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts all parts into `stage`, plays the story and returns the last line.
async fn play_demo<S: DemoServices>(
    arguments: &DemoArguments,
    print: fn(&str),
    stage: &mut Option<DemoPlay<S>>,
) -> anyhow::Result<String> {
    let play = stage.insert(Box::pin(DemoPlay::start(arguments, print)).await?);
    Box::pin(play.story.play()).await
}

impl<S: DemoServices> DemoPlay<S> {
    async fn start(arguments: &DemoArguments, print: fn(&str)) -> anyhow::Result<Self> {
        require_programs().await?;
        let project = arguments.project_files()?;
        print("starting nats-server, redis-server, the stand-ins and five services on free loopback ports");
        let started = read_wall_clock();
        // The folder of a demo that was killed has the data of its servers, which the next demo removes.
        for left in ScratchFolder::remove_left_behind(FOLDER_PREFIX) {
            print(&format!(
                "removed {}: the demo that it belonged to did not end in order",
                left.display()
            ));
        }
        let folder = ScratchFolder::create(FOLDER_PREFIX)?;
        let vendors = start_stand_ins(project).await?;
        let environment = arguments.environment(vendors.outside(), folder.path())?;
        let plan = StartPlan::on_free_ports(environment, folder.path().join("data"));
        let prepared = Box::pin(PreparedServices::new(plan)).await?;
        let client = Client::new(&prepared.url, prepared.token.clone())?;
        let url = prepared.url.clone();
        let services = Box::pin(S::start(prepared, folder.path())).await?;
        // The webhooks start after the services, so that none of them is lost.
        vendors.send_webhooks(&url);
        let console = DemoConsole::start(&url, arguments.stay.then_some(client.token()), print).await?;
        print(&format!(
            "ready after {} ms\n",
            read_wall_clock().unix_ms() - started.unix_ms()
        ));
        let is_scripted = arguments.model == DemoModel::Scripted;
        let story = DemoStory::new(vendors, client, folder.path(), is_scripted, print);
        Ok(Self {
            services,
            console,
            story,
            _folder: folder,
        })
    }

    /// Drains the services, then stops the servers, then the stand-ins.
    async fn end(self) -> anyhow::Result<()> {
        self.console.stop().await;
        // The stand-ins go last, because draining services still call them.
        self.services.stop().await
    }
}

/// Starts the stand-ins with the built-in project, or with the files of another one.
async fn start_stand_ins(project: Option<Vec<(String, String)>>) -> anyhow::Result<StandInVendors> {
    let Some(files) = project else {
        return Box::pin(StandInVendors::start_with(&fixture::list_shop_files())).await;
    };
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    Box::pin(StandInVendors::start_with(&files)).await
}
