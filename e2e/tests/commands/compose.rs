//! `compose.yaml`: the services accept its settings and the keys of `prepare.sh`, and each has the listed access alone.
//! No container engine is needed.

use std::{fs, path::Path};

use bootstrap::{ServiceConfig, settings::load_settings};
use queue::Queue;
use serde_json::Value;
use testkit::{NatsOptions, NatsServer, RedisOptions, RedisServer};
use tokio::process::Command;

use crate::{find_repository_root, read_yaml};

/// Networks, volumes and secrets that one service of Journeyman has.
struct ServiceAccess {
    name: &'static str,
    networks: &'static [&'static str],
    volumes: &'static [&'static str],
    secrets: &'static [&'static str],
}

const SERVICES: [ServiceAccess; 6] = [
    ServiceAccess {
        name: "ingest",
        networks: &["state", "front"],
        volumes: &["keys-ingest"],
        secrets: &["github-reader-token"],
    },
    ServiceAccess {
        name: "planner",
        networks: &["state", "work", "outside"],
        volumes: &["keys-planner"],
        secrets: &["model-api-key"],
    },
    ServiceAccess {
        name: "executor",
        networks: &["work"],
        volumes: &["keys-executor", "executor-data"],
        secrets: &[],
    },
    ServiceAccess {
        name: "reporter",
        networks: &["state", "work", "outside"],
        volumes: &["keys-reporter", "reporter-data"],
        secrets: &["github-writer-token"],
    },
    ServiceAccess {
        name: "egress",
        networks: &["work", "outside"],
        volumes: &["keys-egress"],
        secrets: &[],
    },
    ServiceAccess {
        name: "console",
        networks: &["front"],
        volumes: &[],
        secrets: &[],
    },
];

fn read_compose() -> Value {
    read_yaml("compose.yaml")
}

/// Runs the first service of the compose file.
async fn prepare_keys(folder: &Path) {
    let program = e2e::find_binary("journeyman").unwrap();
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var_os("PATH").unwrap().to_string_lossy()
    );
    let ran = Command::new("sh")
        .arg(find_repository_root().join("packaging/compose/prepare.sh"))
        .arg(folder)
        .env("PATH", path)
        .output()
        .await
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Variables of a service, with the paths of its files in `keys`.
fn read_environment(compose: &Value, service: &str, keys: &Path) -> Vec<(String, String)> {
    let variables = compose["services"][service]["environment"].as_object().unwrap();
    let own = format!("{}/{service}/", keys.display());
    let secrets = format!("{}/secrets/", keys.display());
    let variables = variables.iter().filter(|(name, _)| *name != "JOURNEYMAN_CONFIG");
    variables
        .map(|(name, value)| {
            let value = value.as_str().unwrap();
            let value = if value.starts_with("${JOURNEYMAN_ACCOUNTS:?") {
                "journeyman".to_owned()
            } else {
                value.replace("/keys/", &own).replace("/run/secrets/", &secrets)
            };
            (name.clone(), value)
        })
        .collect()
}

fn check_settings<C: ServiceConfig>(compose: &Value, service: &str, keys: &Path) {
    let has_file = !compose["services"][service]["environment"]["JOURNEYMAN_CONFIG"].is_null();
    let file = find_repository_root().join("packaging/compose/journeyman.toml");
    let environment = read_environment(compose, service, keys);
    let config: Result<C, _> = load_settings(has_file.then_some(file.as_path()), environment);
    let checked = config.and_then(|config| config.check());
    checked.unwrap_or_else(|error| panic!("{service}: {error}"));
}

fn write_secrets(compose: &Value, keys: &Path) {
    fs::create_dir(keys.join("secrets")).unwrap();
    for name in compose["secrets"].as_object().unwrap().keys() {
        fs::write(keys.join("secrets").join(name), "ghp_of_the_test").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_accept_settings_of_compose_file() {
    let (compose, keys) = (read_compose(), tempfile::tempdir().unwrap());
    prepare_keys(keys.path()).await;
    write_secrets(&compose, keys.path());
    check_settings::<ingest::Config>(&compose, "ingest", keys.path());
    check_settings::<planner::Config>(&compose, "planner", keys.path());
    check_settings::<executor::Config>(&compose, "executor", keys.path());
    check_settings::<reporter::Config>(&compose, "reporter", keys.path());
    check_settings::<egress::Config>(&compose, "egress", keys.path());
    check_settings::<pages::Config>(&compose, "console", keys.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_accept_prepared_keys_and_keep_them() {
    let keys = tempfile::tempdir().unwrap();
    prepare_keys(keys.path()).await;
    let read = |path: &str| fs::read_to_string(keys.path().join(path)).unwrap();
    let token = read("operator/token");
    let nats = NatsServer::start_with(NatsOptions {
        authorization: Some(read("nats/users.conf")),
        ..NatsOptions::default()
    });
    let nats = nats.await.unwrap();
    for service in ["ingest", "planner", "reporter"] {
        let settings = queue::Settings {
            url: nats.url(),
            nkey_seed: Some(read(&format!("{service}/nats-nkey-seed")).trim().into()),
            ..queue::Settings::default()
        };
        let connected = Queue::connect(&settings, service).await;
        connected.unwrap_or_else(|error| panic!("{service}: {error}"));
    }
    let redis = RedisServer::start_with(RedisOptions {
        acl: Some(read("redis/users.acl")),
        ..RedisOptions::default()
    });
    drop(redis.await.unwrap());
    prepare_keys(keys.path()).await;
    assert_eq!(read("operator/token"), token, "a second start keeps the keys");
}

/// Lays out the mounts of a service below `root`, with its folder of `keys`.
fn lay_out_mounts(service: &Value, keys: &Path, root: &Path) {
    for mount in service["volumes"].as_array().unwrap() {
        let mut parts = mount.as_str().unwrap().split(':');
        let (source, target) = (parts.next().unwrap(), parts.next().unwrap());
        let target = root.join(target.trim_start_matches('/'));
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        match source.strip_prefix("keys-") {
            Some(owner) => fs::rename(keys.join(owner), target).unwrap(),
            None if source.starts_with("./") => {
                fs::copy(find_repository_root().join(source), target).unwrap();
            }
            None => fs::create_dir_all(target).unwrap(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nats_server_finds_users_of_its_settings() {
    let compose = read_compose();
    let (keys, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    prepare_keys(keys.path()).await;
    let service = &compose["services"]["nats"];
    lay_out_mounts(service, keys.path(), root.path());
    let settings = service["command"][1].as_str().unwrap();
    let program = servers::find_program("nats-server", None, "JOURNEYMAN_NATS_SERVER").unwrap();
    let ran = Command::new(program)
        .args(["-t", "--config"])
        .arg(root.path().join(settings.trim_start_matches('/')))
        .output()
        .await
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Value of a service, also from the keys that it merges.
fn find_shared<'a>(service: &'a Value, key: &str) -> &'a Value {
    service.get(key).unwrap_or_else(|| &service["<<"][key])
}

#[test]
fn containers_have_listed_access_alone() {
    let compose = read_compose();
    let list = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items.map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    for access in SERVICES {
        let name = access.name;
        let service = &compose["services"][name];
        assert_eq!(list(&service["networks"]), access.networks, "{name}");
        assert_eq!(list(&service["secrets"]), access.secrets, "{name}");
        let mounted = list(&service["volumes"]);
        let named = mounted.iter().filter_map(|volume| volume.split(':').next());
        let named: Vec<_> = named.filter(|volume| !volume.starts_with(['.', '$'])).collect();
        assert_eq!(named, access.volumes, "{name}");
        assert_eq!(find_shared(service, "cap_drop")[0], "ALL", "{name}");
        assert_eq!(*find_shared(service, "read_only"), true, "{name}");
        let image = format!(
            "journeyman/{name}:${{JOURNEYMAN_VERSION:-{}}}",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(service["image"], image.as_str(), "{name}");
        let ports = list(&service["ports"]);
        assert!(ports.iter().all(|port| port.starts_with("127.0.0.1:")), "{name}");
    }
    // Compose writes a secret from a variable into the container, which a read-only container refuses.
    for (name, secret) in compose["secrets"].as_object().unwrap() {
        let file = format!("./secrets/{name}");
        assert_eq!(secret["file"], file.as_str(), "{name}");
    }
    for network in ["state", "work"] {
        assert_eq!(compose["networks"][network]["internal"], true, "{network}");
    }
    let variables = compose["services"]["executor"]["environment"]
        .as_object()
        .unwrap();
    assert!(
        variables
            .keys()
            .all(|name| name.starts_with("JOURNEYMAN__EXECUTOR__"))
    );
    for name in ["nats", "redis"] {
        let service = &compose["services"][name];
        assert_eq!(service["networks"][0], "state", "{name}");
        let manifest =
            fs::read_to_string(find_repository_root().join(format!("k8s/base/{name}.yaml"))).unwrap();
        let image = format!("image: {}\n", service["image"].as_str().unwrap());
        assert!(manifest.contains(&image), "{name}: {image}");
    }
}
