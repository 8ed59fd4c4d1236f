//! Check of this machine's clock against those of GitHub and Jira.

use std::{collections::BTreeSet, time::Duration};

use reqwest::{
    Client,
    header::{AGE, DATE, HeaderMap},
};

use super::{CHECK_LIMIT, DoctorFinding, DoctorReport, DoctorSections, Remedy, instances::InstanceSections};

// Largest accepted difference. GitHub refuses the token request of an App that is issued more than 60 s ahead of its clock, because ours
// are dated 60 s back; half of that is left for a clock that drifts.
const LARGEST_DIFFERENCE: Duration = Duration::from_secs(30);

/// Adds a finding for each server.
pub(super) async fn check_clocks(
    findings: &mut DoctorReport,
    sections: &DoctorSections,
    instances: &InstanceSections,
) {
    // A redirect would report the clock of another server.
    let client = Client::builder()
        .timeout(CHECK_LIMIT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent("journeyman");
    let client = webproxy::configure_client(client).and_then(reqwest::ClientBuilder::build);
    let Ok(client) = client else {
        let reason = "there is no HTTP client".to_owned();
        findings.add("clock", DoctorFinding::Skipped(reason));
        return;
    };
    for page in list_pages(sections, instances) {
        findings.add("clock", compare_clock(&client, &page).await);
    }
}

/// Page of each server that needs no account, because a wrong clock can invalidate every account.
fn list_pages(sections: &DoctorSections, instances: &InstanceSections) -> BTreeSet<String> {
    let own = [&sections.github_reader, &sections.github_writer];
    let servers = own.into_iter().flatten();
    let servers = servers.chain(instances.github_readers().map(|(_, server)| server));
    let servers = servers.map(|server| format!("{}/meta", server.api_url.trim_end_matches('/')));
    let own = [&sections.jira_reader, &sections.jira_writer];
    let sites = own.into_iter().flatten();
    let sites = sites.chain(instances.jira_readers().map(|(_, site)| site));
    let sites = sites.filter(|site| !site.base_url.is_empty());
    let sites = sites.map(|site| format!("{}/rest/api/2/serverInfo", site.base_url.trim_end_matches('/')));
    servers.chain(sites).collect()
}

async fn compare_clock(client: &Client, page: &str) -> DoctorFinding {
    let before = bootstrap::read_wall_clock().unix_ms();
    let answer = match client.get(page).send().await {
        Ok(answer) => answer,
        // The finding about the account contains the remedy.
        Err(_) => return DoctorFinding::Skipped(format!("{page} does not answer")),
    };
    // The server read its clock about halfway between request and answer.
    let after = bootstrap::read_wall_clock().unix_ms();
    let host = answer.url().host_str().unwrap_or(page).to_owned();
    match read_server_time(answer.headers()) {
        Some(theirs) => judge_difference(&host, i64::midpoint(before, after) - theirs),
        None => DoctorFinding::Skipped(format!("{host} does not report its time")),
    }
}

/// Reads the server's clock in milliseconds, in the middle of the second that it reports. The header `Age` adds the time in a cache.
fn read_server_time(headers: &HeaderMap) -> Option<i64> {
    let date = headers.get(DATE)?.to_str().ok()?;
    let date = httpdate::parse_http_date(date).ok()?;
    let since = date.duration_since(std::time::UNIX_EPOCH).ok()?;
    let age = headers
        .get(AGE)
        .and_then(|age| age.to_str().ok()?.trim().parse().ok());
    // The header `Date` has whole seconds, so its middle is at most half a second wrong.
    let report = since + Duration::from_secs(age.unwrap_or(0)) + Duration::from_millis(500);
    i64::try_from(report.as_millis()).ok()
}

/// Finding about a difference. `ahead_ms` is negative when this machine's clock is behind.
fn judge_difference(host: &str, ahead_ms: i64) -> DoctorFinding {
    let difference = Duration::from_millis(ahead_ms.unsigned_abs());
    let direction = if ahead_ms < 0 { "behind" } else { "ahead of" };
    let report = format!("{} s {direction} that of {host}", difference.as_secs());
    if difference <= LARGEST_DIFFERENCE {
        return DoctorFinding::Ok(report);
    }
    let problem = format!(
        "{report}: tokens and grants made here count as expired or as made in the future; set the clock by NTP, for example with \
         `timedatectl set-ntp true`"
    );
    DoctorFinding::Failed(problem, Remedy::Clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_up_to_half_a_minute_pass() {
        for ahead_ms in [-30_000, -1, 0, 1, 30_000] {
            let finding = judge_difference("jira.example", ahead_ms);
            assert!(matches!(finding, DoctorFinding::Ok(_)), "{ahead_ms}");
        }
        for (ahead_ms, expected) in [
            (30_001, "30 s ahead of that of jira.example: "),
            (-61_000, "61 s behind that of jira.example: "),
            (i64::MIN, " s behind that of jira.example: "),
        ] {
            let DoctorFinding::Failed(report, Remedy::Clock) = judge_difference("jira.example", ahead_ms)
            else {
                panic!("{ahead_ms} passed")
            };
            assert!(report.contains(expected) && report.contains("NTP"), "{report}");
        }
    }

    #[test]
    fn server_time_includes_cache_age() {
        let mut headers = HeaderMap::new();
        assert_eq!(read_server_time(&headers), None);
        headers.insert(DATE, "Thu, 01 Jan 1970 00:01:40 GMT".parse().unwrap());
        assert_eq!(read_server_time(&headers), Some(100_500));
        headers.insert(AGE, "20".parse().unwrap());
        assert_eq!(read_server_time(&headers), Some(120_500));
        for broken in ["yesterday", "", "Thu, 01 Jan 1970 00:01:40 +0100"] {
            headers.insert(DATE, broken.parse().unwrap());
            assert_eq!(read_server_time(&headers), None, "{broken}");
        }
    }
}
