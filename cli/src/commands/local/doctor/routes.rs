//! Check of the way to each server outside: through the proxy of `[proxy]`, or directly.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use bootstrap::settings;
use domain::cause::format_error_chain;
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;
use webproxy::{DirectReason, OutboundRoute};

use super::{CHECK_LIMIT, DoctorFinding, DoctorReport, DoctorSections, Remedy, instances::InstanceSections};

// Addresses of the dialects without `base_url`.
const ANTHROPIC: &str = "https://api.anthropic.com";
const OPENAI: &str = "https://api.openai.com";

/// Settings with the addresses of models and of the login provider.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RouteSections {
    model: Option<ProviderAddress>,
    console: ConsoleAddresses,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ConsoleAddresses {
    oidc: Option<IssuerAddress>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct IssuerAddress {
    issuer: String,
}

/// `[model]`, or one of its providers.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ProviderAddress {
    dialect: String,
    base_url: Option<String>,
    region: Option<String>,
    providers: BTreeMap<String, ProviderAddress>,
    embeddings: Option<EmbeddingAddress>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EmbeddingAddress {
    base_url: Option<String>,
}

impl ProviderAddress {
    fn list_urls(&self) -> Vec<String> {
        let region = self.region.as_deref().unwrap_or("us-east-1");
        let own = match (&self.base_url, self.dialect.as_str()) {
            (Some(url), _) => url.clone(),
            (None, "openai") => OPENAI.to_owned(),
            (None, "bedrock") => format!("https://bedrock-runtime.{region}.amazonaws.com"),
            (None, _) => ANTHROPIC.to_owned(),
        };
        let embeddings = self.embeddings.as_ref();
        let embeddings =
            embeddings.map(|address| address.base_url.clone().unwrap_or_else(|| OPENAI.to_owned()));
        let others = self.providers.values().flat_map(Self::list_urls);
        [own].into_iter().chain(embeddings).chain(others).collect()
    }
}

/// Adds a finding for each server when there is a proxy. Without one, the checks of the accounts show the same.
pub(super) async fn check_routes(
    findings: &mut DoctorReport,
    file: Option<&Path>,
    sections: &DoctorSections,
    instances: &InstanceSections,
) {
    let way = webproxy::find_installed_proxy();
    if way.is_direct() {
        return;
    }
    let client = Client::builder()
        .timeout(CHECK_LIMIT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent("journeyman");
    let client = match way
        .configure_client(client)
        .and_then(reqwest::ClientBuilder::build)
    {
        Ok(client) => client,
        Err(error) => {
            let problem = format!("no HTTP client: {}", format_error_chain(&error));
            findings.add("route", DoctorFinding::Failed(problem, Remedy::Proxy));
            return;
        }
    };
    // The checks of the services' settings report sections that cannot be read.
    let models: RouteSections = settings::load_process_settings(file).unwrap_or_default();
    for url in list_origins(sections, instances, &models) {
        findings.add("route", try_route(&client, &way.route(&url), url.clone()).await);
    }
}

/// Lists the servers outside, each once.
fn list_origins(
    sections: &DoctorSections,
    instances: &InstanceSections,
    models: &RouteSections,
) -> BTreeSet<Url> {
    let servers = [&sections.github_reader, &sections.github_writer]
        .into_iter()
        .flatten()
        .chain(instances.github_readers().map(|(_, server)| server));
    let sites = [&sections.jira_reader, &sections.jira_writer]
        .into_iter()
        .flatten()
        .chain(instances.jira_readers().map(|(_, site)| site));
    let providers = models.model.iter().flat_map(ProviderAddress::list_urls);
    let issuer = models.console.oidc.iter().map(|oidc| oidc.issuer.clone());
    servers
        .flat_map(|server| [server.api_url.clone(), server.git_url.clone()])
        .chain(sites.map(|site| site.base_url.clone()))
        .chain(providers)
        .chain(issuer)
        .filter_map(|url| find_origin(&url))
        .collect()
}

/// Address of the server of a URL, without path and credentials.
fn find_origin(url: &str) -> Option<Url> {
    let url = Url::parse(url).ok()?;
    Url::parse(&url.origin().ascii_serialization()).ok()
}

async fn try_route(client: &Client, route: &OutboundRoute<'_>, url: Url) -> DoctorFinding {
    let server = url.as_str().trim_end_matches('/').to_owned();
    let way = describe_route(route);
    let is_proxied = matches!(route, OutboundRoute::Proxy(_));
    match client.head(url).send().await {
        Ok(answer) if answer.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED => DoctorFinding::Failed(
            format!("{server} {way}: the proxy refuses proxy.username and proxy.password (407)"),
            Remedy::Proxy,
        ),
        // The proxy answers so for a server that it does not reach.
        Ok(answer)
            if is_proxied
                && matches!(
                    answer.status(),
                    StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT
                ) =>
        {
            let status = answer.status().as_u16();
            DoctorFinding::Failed(
                format!("{server} {way}: the proxy answers {status}"),
                Remedy::Proxy,
            )
        }
        // Any other answer comes from the server, even if it is an error.
        Ok(_) => DoctorFinding::Ok(format!("{server} {way}")),
        Err(error) => {
            let cause = format_error_chain(&error.without_url());
            DoctorFinding::Failed(format!("{server} {way}: {cause}"), Remedy::Proxy)
        }
    }
}

fn describe_route(route: &OutboundRoute<'_>) -> String {
    match route {
        OutboundRoute::Proxy(server) => format!("through {}", server.address()),
        OutboundRoute::Direct(DirectReason::NoProxy) => "directly: no proxy for its scheme".to_owned(),
        OutboundRoute::Direct(DirectReason::Internal) => "directly: it is internal".to_owned(),
        OutboundRoute::Direct(DirectReason::Listed) => "directly: proxy.no_proxy lists it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_model_urls(json: serde_json::Value) -> Vec<String> {
        let address: ProviderAddress = serde_json::from_value(json).unwrap();
        address.list_urls()
    }

    #[test]
    fn model_addresses_follow_dialects() {
        use serde_json::json;
        assert_eq!(list_model_urls(json!({})), [ANTHROPIC]);
        assert_eq!(
            list_model_urls(json!({
                "dialect": "bedrock", "region": "eu-central-1",
                "providers": {"own": {"dialect": "openai", "base_url": "http://llm.test/v1"}},
                "embeddings": {},
            })),
            [
                "https://bedrock-runtime.eu-central-1.amazonaws.com",
                OPENAI,
                "http://llm.test/v1"
            ]
        );
    }

    #[test]
    fn origin_has_no_path_and_no_credentials() {
        let origin = find_origin("https://ada:pw@ghe.example:8443/api/v3?a=b").unwrap();
        assert_eq!(origin.as_str(), "https://ghe.example:8443/");
        assert_eq!(find_origin(""), None);
    }
}
