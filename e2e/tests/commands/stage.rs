//! Stand-ins of the external services and a folder with rules, without any service.

use std::{ops::Deref, path::Path};

use e2e::{ProviderDialect, StandInVendors};
use tempfile::TempDir;
use testkit::{JiraOptions, ScriptStep, fixture};

use crate::program::{Ran, run_program};

pub(crate) struct Stage {
    vendors: StandInVendors,
    pub(crate) folder: TempDir,
}

impl Deref for Stage {
    type Target = StandInVendors;

    fn deref(&self) -> &StandInVendors {
        &self.vendors
    }
}

impl Stage {
    /// Starts the stand-ins with the fixture's repository; `rules` are additional keys of its rules file.
    pub(crate) async fn start(rules: &str) -> Self {
        Self::start_with(rules, JiraOptions::default()).await
    }

    /// Starts the stand-ins with other Jira options.
    pub(crate) async fn start_with(rules: &str, jira: JiraOptions) -> Self {
        bootstrap::install_tls_provider();
        let vendors = Box::pin(StandInVendors::start(jira, fixture::build_shop_script())).await;
        let vendors = vendors.unwrap();
        // `setup` and `doctor` send this prompt.
        vendors
            .model
            .set_script("Reply with the one word", vec![ScriptStep::reply("ok")]);
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("configs")).unwrap();
        let text = format!("repo: {{owner: acme, name: shop}}\njira: {{project_key: ENG}}\n{rules}");
        std::fs::write(folder.path().join("configs/shop.yaml"), text).unwrap();
        Self { vendors, folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the settings of the external services.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        self.outside()
            .environment(ProviderDialect::Anthropic, &self.path().join("configs"))
    }

    /// Runs `journeyman` in the folder to its end.
    pub(crate) async fn run(&self, arguments: &[&str], environment: &[(String, String)]) -> Ran {
        run_program("journeyman", arguments, environment, self.path()).await
    }

    /// Fails if the stand-ins recorded violations.
    pub(crate) fn assert_kept_protocols(&self) {
        assert_eq!(self.violations(), Vec::<String>::new());
    }
}

/// Returns the settings with one replaced or added, by its name without `JOURNEYMAN__`.
pub(crate) fn replace_setting(
    environment: &[(String, String)],
    key: &str,
    value: &str,
) -> Vec<(String, String)> {
    let mut changed = remove_setting(environment, key);
    changed.push((format!("JOURNEYMAN__{key}"), value.to_owned()));
    changed
}

/// Returns the settings without one.
pub(crate) fn remove_setting(environment: &[(String, String)], key: &str) -> Vec<(String, String)> {
    let name = format!("JOURNEYMAN__{key}");
    let others = environment.iter().filter(|(other, _)| *other != name);
    others.cloned().collect()
}
