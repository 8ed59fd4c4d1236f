//! Tests of the page of a run.

use domain::{Fact, StopReason};

use super::{
    run, run_pages,
    tests::{
        build_decided_fact, build_hostile_text, build_journal_entries, build_page_time, build_run_view,
        gave_up, render_safe_page,
    },
};
use crate::sample_journal::{build_run_journal, push_fact};
use api::types::RunState;

/// Builds a finished run with this journal.
fn build_finished_run(journal: Vec<domain::JournalEntry>, stop: StopReason) -> run::RunWithJournal {
    run::RunWithJournal {
        id: "jira:ENG-12@57".parse().unwrap(),
        view: build_run_view(RunState::Finished, None, Some(stop)),
        journal,
    }
}

#[test]
fn hostile_texts_of_journal_stay_texts() {
    let journal = build_journal_entries([
        build_decided_fact(),
        Fact::WorkspaceFailed {
            id: "jira:ENG-12@57".parse::<domain::RunId>().unwrap().call(2),
            detail: build_hostile_text(),
            setup: true,
            permanent: false,
            repository: None,
        },
        Fact::RunFinished { reason: gave_up() },
    ]);
    let known = build_finished_run(journal, gave_up());
    let page = render_safe_page(run::render_run(
        &known,
        run_pages::RunPageQuery::default(),
        None,
        build_page_time(),
    ));
    for part in [
        "gave up",
        "no workspace: ",
        "run finished: given up",
        "<li id=\"entry-2\">",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let page = run::render_run(
        &known,
        run_pages::RunPageQuery::default(),
        Some("n0nce"),
        build_page_time(),
    )
    .into_string();
    let tags = page.split('<').filter_map(|part| part.split('>').next());
    let stamped: Vec<&str> = tags.filter(|tag| tag.contains(" hx-")).collect();
    assert_eq!(stamped.len(), 3, "{stamped:?}");
    for tag in stamped {
        assert!(
            tag.contains("hx-nonce=\"n0nce\""),
            "what follows the run is stamped: {tag}"
        );
    }
}

#[test]
fn live_page_continues_after_its_last_entry() {
    let mut journal = build_run_journal();
    journal.truncate(8);
    let mut known = build_finished_run(journal, StopReason::Completed);
    known.view = build_run_view(RunState::Active, None, None);
    let page = run::render_run(
        &known,
        run_pages::RunPageQuery::default(),
        Some("n0nce"),
        build_page_time(),
    )
    .into_string();
    assert!(
        page.contains("/events?start=0&amp;at=7-2-work-5-7&amp;from=0\""),
        "{page}"
    );
    assert!(page.contains("now: </strong>run_command cart.py … "), "{page}");
    assert!(
        page.contains("?follow=true#end\">Follow to the end</a>"),
        "{page}"
    );
    assert!(
        page.contains("id=\"turn-5\"><details open>"),
        "the current turn is open: {page}"
    );
}

#[test]
fn page_lists_limited_number_of_entries() {
    let mut journal = build_run_journal();
    while journal.len() < 1_100 {
        push_fact(&mut journal, Fact::StopRequested { by: "ada".to_owned() });
    }
    let known = build_finished_run(journal, StopReason::Completed);
    let render = |from| {
        let asked = run_pages::RunPageQuery {
            from,
            ..run_pages::RunPageQuery::default()
        };
        run::render_run(&known, asked, None, build_page_time()).into_string()
    };
    let newest = render(None);
    assert_eq!(newest.matches("<li id=\"entry-").count(), 500);
    assert!(newest.contains("<li id=\"entry-1099\">"), "{newest}");
    assert!(newest.contains("?from=0#stage-2\">Work</a>"), "{newest}");
    assert_eq!(newest.matches("Entries 601 to 1,100 of 1,100").count(), 1);
    let first = render(Some(0));
    assert_eq!(first.matches("<li id=\"entry-").count(), 500);
    assert!(first.contains("href=\"#stage-2\">Work</a>"), "{first}");
    assert!(
        first.contains("<li id=\"entry-0\">") && !first.contains("<li id=\"entry-500\">"),
        "{first}"
    );
    // A long page has the links at its end, too.
    assert_eq!(first.matches("Entries 1 to 500 of 1,100").count(), 2);
}
