//! A run's journal as a list for people, one item for each entry.

use api::view::{EntryView, Tone};
use domain::{JournalEntry, Timestamp};
use maud::{Markup, html};

use crate::words::{format_elapsed, make_visible, run_path};

/// Renders one entry of the list. Its time is relative to `start`.
pub(crate) fn render_entry_item(run: &str, entry: &JournalEntry, start: Timestamp) -> Markup {
    let view = EntryView::from(entry);
    let (position, class) = (view.position, tone_class(view.tone));
    let head = make_visible(&view.head);
    html! {
        li id={ "entry-" (position) } class=[view.turn.map(|_| "turn")] {
            span.when title=(view.at) { (format_elapsed(start, entry.at)) }
            span.who { (view.who.as_str()) }
            div.what {
                @match &view.more {
                    Some(more) => details { summary class=(class) { (head) } pre { (make_visible(more)) } },
                    None => span class=(class) { (head) },
                }
            }
            a href={ (run_path(run)) "/entries/" (position) } aria-label={ "Entry " (position) } { "#" (position) }
        }
    }
}

/// Returns the style class of a tone; most tones have none.
const fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Quiet | Tone::Soft => "soft",
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Warm => "warm",
        Tone::Bad => "bad",
    }
}

#[cfg(test)]
mod tests {
    use domain::{Fact, RunFence};

    use super::*;

    fn render_listed_fact(fact: Fact) -> String {
        let entry = JournalEntry {
            position: 7,
            nonce: String::new(),
            fence: RunFence::default(),
            at: Timestamp::from_unix_ms(62_000),
            fact,
        };
        render_entry_item("jira:ENG-1@3", &entry, Timestamp::default()).into_string()
    }

    #[test]
    fn timeline_entry_has_time_actor_and_link() {
        let text = render_listed_fact(Fact::StopRequested { by: "ada".to_owned() });
        for part in [
            "id=\"entry-7\"",
            "1 min 2 s",
            "person",
            "ada asked to stop",
            "href=\"/runs/jira%3AENG-1%403/entries/7\"",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn timeline_escapes_markup_and_hidden_text() {
        let by = "<img src=x onerror=alert(1)>\" hx-get=\"/\r\n\u{202e}".to_owned();
        let text = render_listed_fact(Fact::StopRequested { by });
        assert!(
            text.contains("&lt;img src=x") && text.contains("&lt;U+202E&gt;"),
            "{text}"
        );
        assert!(
            !text.contains("<img") && !text.contains('\r') && !text.contains("\u{202e}"),
            "{text}"
        );
    }
}
