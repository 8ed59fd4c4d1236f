//! Names by the rules of a repository: branches, commit messages and titles of pull requests.

use crate::{
    identity::{author::CommitAuthor, ids::RunId, ticket::TicketKey},
    outbound::metadata_pattern::{MetadataPattern, PatternSubject, find_unmet_pattern},
    rules::{RepositoryRules, commits::CommitStyle},
    text::{
        characters::{remove_hidden, truncate_text},
        commit_orders,
    },
    work::handover::WorkHandover,
};

// Maximum characters of the description in a branch name.
const SLUG: usize = 48;
// Maximum characters of a commit subject's description.
const SUBJECT: usize = 100;
// Maximum characters of a pull request's description in its title.
const TITLE: usize = 200;
// Start of the line that names the run of a commit.
const RUN_TRAILER: &str = "Journeyman-Run: ";
// Start of a line that names a co-author of a commit.
const CREDIT_TRAILER: &str = "Co-authored-by: ";
// Start of the line with the author's sign-off.
const SIGN_OFF_TRAILER: &str = "Signed-off-by: ";
// Trailers that a message may lack where the server refuses it with them. A sign-off is a requirement of the
// repository, so it stays.
const OPTIONAL_TRAILERS: [&str; 2] = [RUN_TRAILER, CREDIT_TRAILER];
// Smaller losses than all of them, the smallest first.
const OMITTED_TRAILERS: [&[&str]; 3] = [&[], &[RUN_TRAILER], &[CREDIT_TRAILER]];

/// Naming scheme for the changes of a ticket.
#[derive(Clone, Copy, Debug)]
pub struct ChangeNaming<'a> {
    rules: &'a RepositoryRules,
    ticket: &'a TicketKey,
    /// Patterns of the server, which outrank the style of the rules.
    patterns: &'a [MetadataPattern],
}

/// Properties of a change that its names are made from.
#[derive(Clone, Copy, Debug)]
pub struct ChangeNameParts<'a> {
    /// One of [`ChangeNaming::types`]; any other value becomes the type of a ticket of that kind.
    pub kind: &'a str,
    /// The scope, a part of the repository; empty: none.
    pub scope: &'a str,
    /// Description of the change in one line.
    pub title: &'a str,
}

impl<'a> ChangeNaming<'a> {
    /// Creates the naming scheme for a ticket's change.
    pub const fn new(rules: &'a RepositoryRules, ticket: &'a TicketKey) -> Self {
        Self {
            rules,
            ticket,
            patterns: &[],
        }
    }

    /// Returns the naming scheme for a repository whose server requires patterns.
    #[must_use]
    pub const fn with_patterns(self, patterns: &'a [MetadataPattern]) -> Self {
        Self { patterns, ..self }
    }

    /// Returns the pattern that refuses a commit message.
    pub fn unmet_by_message(&self, message: &str) -> Option<&'a MetadataPattern> {
        find_unmet_pattern(self.patterns, PatternSubject::CommitMessage, message)
    }

    /// Returns the pattern that refuses a branch name.
    pub fn unmet_by_branch(&self, name: &str) -> Option<&'a MetadataPattern> {
        find_unmet_pattern(self.patterns, PatternSubject::BranchName, name)
    }

    /// Returns the types in the rules, for branches, commits and titles.
    pub fn types(&self) -> Vec<&'a str> {
        self.rules.branching.types.values().map(String::as_str).collect()
    }

    /// Returns the type for a ticket's kind, which is the name that its tracker uses.
    pub fn type_of(&self, kind: &str) -> &'a str {
        let types = &self.rules.branching.types;
        let known = types.iter().find(|(name, _)| name.eq_ignore_ascii_case(kind));
        let wanted = match kind.to_lowercase().as_str() {
            "bug" | "defect" | "incident" => "bugfix",
            _ => "feature",
        };
        let usual = types.get_key_value(wanted);
        known
            .or(usual)
            .or_else(|| types.iter().next())
            .map_or("feat", |(_, short)| short)
    }

    /// Returns the name parts of a change that the model described. Without a type, the ticket's kind
    /// determines it.
    pub fn of<'h>(&self, handover: &'h WorkHandover, ticket_kind: &str) -> ChangeNameParts<'h>
    where
        'a: 'h,
    {
        ChangeNameParts {
            kind: match handover.kind.as_str() {
                "" => self.type_of(ticket_kind),
                kind => kind,
            },
            scope: &handover.scope,
            title: &handover.title,
        }
    }

    /// Returns the ticket's key for texts: `ENG-12`, `#7`, or `shop-1` for a ticket of a folder.
    pub fn key(&self) -> String {
        match self.ticket {
            TicketKey::Jira { .. } | TicketKey::Folder { .. } => self.ticket.short(),
            TicketKey::GitHub { number, .. } | TicketKey::Discussion { number, .. } => format!("#{number}"),
        }
    }

    /// Returns the branch name of the change.
    pub fn branch(&self, named: ChangeNameParts<'_>) -> String {
        let key = self.key();
        let slug = build_branch_slug(self.bare(named.title));
        let name = self
            .rules
            .branching
            .pattern
            .replace("{type}", self.known(named.kind))
            .replace("{ticket_key}", key.trim_start_matches('#'))
            .replace("{description}", &slug);
        // git refuses branch names that end with a slash or a dot, which a pattern of the rules can produce.
        name.trim_end_matches(['-', '/', '.']).to_owned()
    }

    /// Returns the title of the pull request.
    pub fn title(&self, named: ChangeNameParts<'_>) -> String {
        let pattern = match named.scope.trim() {
            "" => self.rules.pull_request.title_pattern.replace("({scope})", ""),
            _ => self.rules.pull_request.title_pattern.clone(),
        };
        let key = self.key();
        let title = self.bare(named.title);
        // The pattern adds the ticket, so a key that the model wrote would appear twice.
        let title = if pattern.contains("{ticket_key}") {
            title.trim_end_matches(&format!("({key})")).trim_end()
        } else {
            title
        };
        let filled = pattern
            .replace("{type}", self.known(named.kind))
            .replace("{scope}", named.scope.trim())
            .replace("{description}", &truncate_text(title, TITLE))
            .replace("{ticket_key}", &key);
        filled.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Returns the message of the change's commit. Where the server refuses the style of the rules and accepts the title
    /// as it is, or after the key of the ticket, the message has that form.
    pub fn commit_message(&self, named: ChangeNameParts<'_>, body: &str) -> String {
        let by_rules = self.style_message(named, body);
        if self.unmet_by_message(&by_rules).is_none() {
            return by_rules;
        }
        let mut others = self.list_other_messages(named, body).into_iter();
        let accepted = others.find(|message| self.unmet_by_message(message).is_none());
        accepted.unwrap_or(by_rules)
    }

    /// Returns the message of a run's commit with its trailers. Where the server refuses it, the message takes another
    /// form of the title, and then lacks trailers. Where a required text leaves no room for a body, it lacks the body.
    ///
    /// # Errors
    /// The pattern that refuses every form, so that the change needs another description.
    pub fn commit_message_of_run(
        &self,
        named: ChangeNameParts<'_>,
        body: &str,
        run: &RunId,
        requester: Option<&CommitAuthor>,
    ) -> Result<String, &'a MetadataPattern> {
        let trailers = self.trailers(run, requester);
        let by_rules = self.style_message(named, body);
        let others = self.list_other_messages(named, body);
        let forms = || std::iter::once(&by_rules).chain(&others);
        let is_accepted = |message: &String| self.unmet_by_message(message).is_none();
        for omitted in OMITTED_TRAILERS {
            let mut messages = forms().map(|form| add_trailers(form, &trailers, omitted));
            if let Some(accepted) = messages.find(is_accepted) {
                return Ok(accepted);
            }
        }
        let omit_trailers = |form: &str| add_trailers(form, &trailers, &OPTIONAL_TRAILERS);
        let bare = omit_trailers(&by_rules);
        let Some(pattern) = self.unmet_by_message(&bare) else {
            return Ok(bare);
        };
        let subjects = forms().filter_map(|form| form.lines().next());
        // The model can avoid a forbidden text, and the body explains the commit.
        let subjects = subjects.filter(|_| !pattern.negate);
        let shorter = others.iter().map(String::as_str).chain(subjects);
        let accepted = shorter.map(omit_trailers).find(is_accepted);
        accepted.ok_or(pattern)
    }

    /// Lists the messages of a commit outside of the style of the rules.
    fn list_other_messages(&self, named: ChangeNameParts<'_>, body: &str) -> Vec<String> {
        let key = self.key();
        let title = commit_orders::clean_subject(named.title.trim());
        let title = truncate_text(&title, SUBJECT);
        let body = commit_orders::clean_body(body);
        let others = [
            format!("{title} ({key})"),
            format!("{key}: {title}"),
            title.clone(),
        ];
        let others = others.iter().filter(|subject| {
            let has_key = subject.matches(&key).count();
            has_key == 1 || (has_key == 0 && !self.rules.commits.ticket_in_message)
        });
        let others = others.map(|subject| format!("{subject}\n\n{}", body.trim()).trim_end().to_owned());
        others.collect()
    }

    fn style_message(&self, named: ChangeNameParts<'_>, body: &str) -> String {
        let key = self.key();
        let title = commit_orders::clean_subject(self.bare(named.title));
        let title = truncate_text(&title, SUBJECT);
        let mut subject = match self.rules.commits.style {
            CommitStyle::Plain => title,
            CommitStyle::Conventional => {
                let scope = match named.scope.trim() {
                    "" if self.rules.commits.scope_required => "(core)".to_owned(),
                    "" => String::new(),
                    scope => format!("({scope})"),
                };
                // A commit's type may be more specific than a branch's type, e.g. `docs` or `test`.
                let kind = if is_type(named.kind) {
                    named.kind
                } else {
                    self.known(named.kind)
                };
                format!("{kind}{scope}: {title}")
            }
        };
        if self.rules.commits.ticket_in_message && !has_word(&subject, &key) {
            subject = format!("{subject} ({key})");
        }
        let body = commit_orders::clean_body(body);
        format!("{subject}\n\n{}", body.trim()).trim_end().to_owned()
    }

    /// Returns the trailers of a run's commit: the run, the person who asked for the work, and the co-authors
    /// of the rules.
    pub fn trailers(&self, run: &RunId, requester: Option<&CommitAuthor>) -> Vec<String> {
        let commits = &self.rules.commits;
        let run = format!("{RUN_TRAILER}{run}");
        let requester = requester.filter(|_| commits.co_author_requester);
        let mut others: Vec<String> = requester.map(ToString::to_string).into_iter().collect();
        for who in commits.co_authors.iter().map(|who| who.trim()) {
            if !others.iter().any(|known| known == who) {
                // The requester may also be a co-author in the rules, and a repeated trailer gives credit
                // twice.
                others.push(who.to_owned());
            }
        }
        let others = others.iter().map(|who| format!("{CREDIT_TRAILER}{who}"));
        std::iter::once(run)
            .chain(others)
            .chain(self.sign_off_line())
            .collect()
    }

    /// Returns the last line of a run's commits, where the rules require a sign-off.
    pub fn sign_off_line(&self) -> Option<String> {
        let commits = &self.rules.commits;
        commits
            .sign_off
            .then(|| format!("{SIGN_OFF_TRAILER}{}", commits.author()))
    }

    /// Checks that a branch name follows the pattern.
    ///
    /// # Errors
    /// A valid name as an example.
    pub fn check_branch(&self, name: &str) -> Result<(), String> {
        let pattern = &self.rules.branching.pattern;
        let starts = pattern.starts_with("{type}");
        let has_type = !starts
            || self
                .types()
                .iter()
                .any(|known| name.starts_with(&format!("{known}/")));
        let key = self.key();
        let key = key.trim_start_matches('#');
        let has_key = !pattern.contains("{ticket_key}") || has_word(name, key);
        if (!pattern.starts_with("{type}/") || has_type) && has_key {
            return Ok(());
        }
        Err(self.branch(ChangeNameParts {
            kind: name.split('/').next().unwrap_or_default(),
            scope: "",
            title: "short title",
        }))
    }

    /// Checks that a commit message follows the rules.
    ///
    /// # Errors
    /// The message in its valid form.
    pub fn check_message(&self, message: &str) -> Result<(), String> {
        // The reporter rejects hidden characters and orders, so the corrected form must not contain them.
        let clean = commit_orders::clean_message(&remove_hidden(message));
        let (is_changed, message) = (clean != message, clean.as_str());
        let subject = message.lines().next().unwrap_or_default();
        let (kind, scope, _) = split_conventional_subject(subject).unwrap_or(("", "", subject));
        let rules = &self.rules.commits;
        let is_styled = match rules.style {
            CommitStyle::Plain => true,
            CommitStyle::Conventional => is_type(kind) && !(rules.scope_required && scope.is_empty()),
        };
        let has_key = !rules.ticket_in_message || has_word(message, &self.key());
        // The server decides about the style where it requires a form.
        let is_styled = is_styled || self.has_accepted_style(message);
        if is_styled && has_key {
            return if is_changed { Err(clean) } else { Ok(()) };
        }
        let body = message.split_once('\n').map_or("", |(_, body)| body);
        let title = subject;
        Err(self.commit_message(ChangeNameParts { kind, scope, title }, body))
    }

    /// Returns true if the server requires a form of messages, and this one has it. A forbidden text is not a form.
    fn has_accepted_style(&self, message: &str) -> bool {
        let is_form =
            |pattern: &MetadataPattern| pattern.subject == PatternSubject::CommitMessage && !pattern.negate;
        self.patterns.iter().any(is_form) && self.unmet_by_message(message).is_none()
    }

    fn known(&self, kind: &str) -> &'a str {
        let types = self.types();
        let known = types.iter().copied().find(|known| *known == kind);
        known.unwrap_or_else(|| self.type_of(kind))
    }

    /// Removes a conventional prefix that the model wrote, because the rules add it.
    fn bare<'t>(&self, title: &'t str) -> &'t str {
        let title = title.trim();
        split_conventional_subject(title)
            .filter(|(kind, ..)| is_type(kind))
            .map_or(title, |(.., rest)| rest)
    }
}

/// Adds the trailers to a message, without those that start with one of `omitted`.
fn add_trailers(message: &str, trailers: &[String], omitted: &[&str]) -> String {
    let is_kept = |line: &&str| !omitted.iter().any(|start| line.starts_with(start));
    let kept: Vec<&str> = trailers.iter().map(String::as_str).filter(is_kept).collect();
    match kept.as_slice() {
        [] => message.to_owned(),
        kept => format!("{message}\n\n{}", kept.join("\n")),
    }
}

/// Splits a conventional subject into type, scope and description.
fn split_conventional_subject(subject: &str) -> Option<(&str, &str, &str)> {
    let (head, rest) = subject.split_once(':')?;
    // In Conventional Commits, `!` before the colon marks an incompatible change.
    let head = head.trim().trim_end_matches('!');
    let (kind, scope) = match head.split_once('(') {
        Some((kind, scope)) => (kind, scope.strip_suffix(')')?),
        None => (head, ""),
    };
    (!rest.trim().is_empty()).then_some((kind.trim(), scope.trim(), rest.trim()))
}

/// Returns true for a short lower-case word. All conventions use such types, and a sentence with a colon does
/// not begin with one.
fn is_type(kind: &str) -> bool {
    (2..=12).contains(&kind.len()) && kind.chars().all(|c| c.is_ascii_lowercase())
}

fn has_word(text: &str, word: &str) -> bool {
    // `ENG-1` does not occur in `ENG-12`.
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.match_indices(word).any(|(at, _)| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next())
    })
}

fn build_branch_slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => slug.push(c.to_ascii_lowercase()),
            // Apostrophes are dropped rather than replaced: `cart's` becomes `carts`.
            '\'' | '’' => {}
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
    }
    if slug.len() > SLUG {
        // The cut is at a hyphen, so that the name ends with a whole word.
        let end = slug[..SLUG].rfind('-').unwrap_or(SLUG);
        slug.truncate(end);
    }
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "change" } else { slug }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::characters::is_hidden;

    const CHANGE: ChangeNameParts<'static> = ChangeNameParts {
        kind: "fix",
        scope: "cart",
        title: "Count every piece in the cart's total",
    };

    fn build_ticket() -> TicketKey {
        TicketKey::jira("ENG-12").unwrap()
    }

    #[test]
    fn names_follow_the_default_rules() {
        let (rules, ticket) = (RepositoryRules::default(), build_ticket());
        let naming = ChangeNaming::new(&rules, &ticket);
        assert_eq!(
            naming.branch(CHANGE),
            "fix/ENG-12-count-every-piece-in-the-carts-total"
        );
        assert_eq!(
            naming.title(CHANGE),
            "fix(cart): Count every piece in the cart's total (ENG-12)"
        );
        let message = naming.commit_message(CHANGE, "Why.\n");
        assert_eq!(
            message,
            "fix(cart): Count every piece in the cart's total (ENG-12)\n\nWhy."
        );
        assert_eq!(naming.check_message(&message), Ok(()));
        assert_eq!(naming.check_branch(&naming.branch(CHANGE)), Ok(()));
    }

    fn build_message_pattern(pattern: &str) -> MetadataPattern {
        MetadataPattern {
            subject: PatternSubject::CommitMessage,
            operator: crate::PatternOperator::Regex,
            pattern: pattern.to_owned(),
            negate: false,
        }
    }

    #[test]
    fn message_takes_form_that_server_accepts() {
        let (rules, ticket) = (RepositoryRules::default(), build_ticket());
        for (pattern, title, subject) in [
            (
                r"^fix\(",
                CHANGE.title,
                "fix(cart): Count every piece in the cart's total (ENG-12)",
            ),
            (
                r"^ENG-\d+: ",
                CHANGE.title,
                "ENG-12: Count every piece in the cart's total",
            ),
            (r"^\[ENG-\d+\] ", "[ENG-12] Count", "[ENG-12] Count"),
            (r"^Count", "Count pieces", "Count pieces (ENG-12)"),
            // No form of the title matches, so the model has to write another one.
            ("^nothing$", "Count", "fix(cart): Count (ENG-12)"),
            // Expressions are anchored at lines, so the body does not count for the subject.
            (r"^ENG-\d+: .+$", "Count", "ENG-12: Count"),
        ] {
            let patterns = [build_message_pattern(pattern)];
            let naming = ChangeNaming::new(&rules, &ticket).with_patterns(&patterns);
            let message = naming.commit_message(ChangeNameParts { title, ..CHANGE }, "Why.");
            assert_eq!(message, format!("{subject}\n\nWhy."), "{pattern}");
        }
    }

    #[test]
    fn refused_trailers_leave_commit_message() {
        use crate::PatternOperator::{Contains, EndsWith, Regex};
        let (mut rules, ticket) = (RepositoryRules::default(), build_ticket());
        let run = RunId::new(ticket.clone(), 57);
        let ada: CommitAuthor = "Ada <ada@acme.example>".parse().unwrap();
        let subject = "fix(cart): Count (ENG-12)";
        let (run_line, credit) = (
            "Journeyman-Run: jira:ENG-12@57",
            "Co-authored-by: Ada <ada@acme.example>",
        );
        let own = "Signed-off-by: Journeyman <noreply@journeyman.invalid>";
        let named = ChangeNameParts {
            title: "Count",
            ..CHANGE
        };
        for (operator, pattern, negate, sign_off, message) in [
            (
                Contains,
                "Count",
                false,
                false,
                format!("{subject}\n\nWhy.\n\n{run_line}\n{credit}"),
            ),
            (EndsWith, "Why.", false, false, format!("{subject}\n\nWhy.")),
            (
                EndsWith,
                "acme.example>",
                false,
                false,
                format!("{subject}\n\nWhy.\n\n{run_line}\n{credit}"),
            ),
            (
                EndsWith,
                "@57",
                false,
                false,
                format!("{subject}\n\nWhy.\n\n{run_line}"),
            ),
            (
                Contains,
                "Journeyman-Run",
                true,
                false,
                format!("{subject}\n\nWhy.\n\n{credit}"),
            ),
            (
                Regex,
                "^Co-authored-by:",
                true,
                true,
                format!("{subject}\n\nWhy.\n\n{run_line}\n{own}"),
            ),
            (
                Regex,
                r"Why\.\n\nSigned",
                false,
                true,
                format!("{subject}\n\nWhy.\n\n{own}"),
            ),
            (
                Regex,
                r"\AENG-12: Count\n\nWhy\.\z",
                false,
                false,
                "ENG-12: Count\n\nWhy.".to_owned(),
            ),
            // The body is dropped last, and the subject takes the form that is accepted.
            (EndsWith, "(ENG-12)", false, false, subject.to_owned()),
            (
                Regex,
                r"\AENG-12: \w+\z",
                false,
                false,
                "ENG-12: Count".to_owned(),
            ),
        ] {
            rules.commits.sign_off = sign_off;
            let patterns = [MetadataPattern {
                operator,
                negate,
                ..build_message_pattern(pattern)
            }];
            let naming = ChangeNaming::new(&rules, &ticket).with_patterns(&patterns);
            let made = naming.commit_message_of_run(named, "Why.", &run, Some(&ada));
            assert_eq!(made, Ok(message), "{pattern}");
        }
    }

    #[test]
    fn description_without_form_names_pattern() {
        use crate::PatternOperator::{Contains, EndsWith};
        let (rules, ticket) = (RepositoryRules::default(), build_ticket());
        let run = RunId::new(ticket.clone(), 57);
        for (operator, pattern, negate) in [(EndsWith, "Reviewed.", false), (Contains, "Why", true)] {
            let patterns = [MetadataPattern {
                operator,
                negate,
                ..build_message_pattern(pattern)
            }];
            let naming = ChangeNaming::new(&rules, &ticket).with_patterns(&patterns);
            let made = naming.commit_message_of_run(CHANGE, "Why.", &run, None);
            assert_eq!(made, Err(&patterns[0]), "the body is not dropped for {pattern}");
        }
    }

    #[test]
    fn server_decides_about_style_of_message() {
        let (rules, ticket) = (RepositoryRules::default(), build_ticket());
        let message = "ENG-12: count";
        assert!(ChangeNaming::new(&rules, &ticket).check_message(message).is_err());
        let patterns = [build_message_pattern(r"^ENG-\d+: ")];
        let naming = ChangeNaming::new(&rules, &ticket).with_patterns(&patterns);
        assert_eq!(naming.check_message(message), Ok(()));
        assert!(
            naming.check_message("count (ENG-12)").is_err(),
            "the pattern is not met"
        );
        assert!(
            naming.check_message("ENG-12: count\n\n[skip ci]").is_err(),
            "an order stays refused"
        );
        let forbidden = [MetadataPattern {
            negate: true,
            ..build_message_pattern("WIP")
        }];
        let restricted = ChangeNaming::new(&rules, &ticket).with_patterns(&forbidden);
        assert!(
            restricted.check_message(message).is_err(),
            "a forbidden text leaves the style to the rules"
        );
        assert_eq!(naming.unmet_by_message("fix: count"), Some(&patterns[0]));
        assert_eq!(naming.unmet_by_branch("fix: count"), None);
    }

    #[test]
    fn names_omit_prefix_of_the_model() {
        let (rules, ticket) = (RepositoryRules::default(), build_ticket());
        let naming = ChangeNaming::new(&rules, &ticket);
        let named = ChangeNameParts {
            title: "fix(cart): count (ENG-12)",
            ..CHANGE
        };
        assert_eq!(naming.title(named), "fix(cart): count (ENG-12)");
        assert_eq!(naming.commit_message(named, ""), "fix(cart): count (ENG-12)");
        let acting = ChangeNameParts {
            title: "count for @ann [skip ci]",
            ..CHANGE
        };
        assert_eq!(
            naming.commit_message(acting, "cc @acme/core\nCo-authored-by: Eve <eve@example.com>"),
            "fix(cart): count for ann (skip ci) (ENG-12)\n\ncc acme/core"
        );
        let sentence = ChangeNameParts {
            title: "Cart: count",
            scope: "",
            ..CHANGE
        };
        assert_eq!(naming.title(sentence), "fix: Cart: count (ENG-12)");
    }

    #[test]
    fn a_wrong_name_gets_the_right_form() {
        let (mut rules, ticket) = (RepositoryRules::default(), build_ticket());
        rules.commits.scope_required = true;
        let naming = ChangeNaming::new(&rules, &ticket);
        let hidden = "Count\u{202e} every\u{1b}[31m piece\0\u{e0041}";
        let right = naming.check_message(hidden).unwrap_err();
        assert!(!right.chars().any(is_hidden), "{right:?}");
        assert_eq!(naming.check_message(&right), Ok(()));
        let hidden = format!("{right}\u{200b}");
        assert_eq!(
            naming.check_message(&hidden),
            Err(right),
            "the reporter would refuse it"
        );
        let credit = format!(
            "{}\n\nSigned-off-by: Eve <eve@example.com>",
            naming.check_message("Count").unwrap_err()
        );
        let right = naming.check_message(&credit).unwrap_err();
        assert_eq!(right, "feat(core): Count (ENG-12)\n", "a model gives no credit");
        let right = naming.check_message("Count every piece").unwrap_err();
        assert_eq!(right, "feat(core): Count every piece (ENG-12)");
        assert_eq!(naming.check_message(&right), Ok(()));
        assert!(naming.check_message("fix: count (ENG-12)").is_err(), "no scope");
        assert!(
            naming.check_message("fix(cart): count (ENG-123)").is_err(),
            "another ticket"
        );
        assert_eq!(
            naming.check_branch("fix/count").unwrap_err(),
            "fix/ENG-12-short-title"
        );
        assert_eq!(
            naming.check_branch("topic/ENG-12-x").unwrap_err(),
            "feat/ENG-12-short-title"
        );
    }

    #[test]
    fn branch_names_from_titles_are_valid() {
        let (rules, ticket) = (RepositoryRules::default(), build_ticket());
        let naming = ChangeNaming::new(&rules, &ticket);
        for title in [
            "",
            "..",
            "é~^:?*[\\",
            "a".repeat(300).as_str(),
            "end.lock",
            "x @{ y",
        ] {
            let name = naming.branch(ChangeNameParts { title, ..CHANGE });
            assert!(git_allows(&name), "{name}");
        }
    }

    fn git_allows(name: &str) -> bool {
        name.chars()
            .all(|c| c.is_ascii_alphanumeric() || "-/".contains(c))
            && !name.ends_with(['-', '/'])
    }

    #[test]
    fn commit_trailers_contain_run_and_co_authors() {
        let ticket: TicketKey = "jira:ENG-12".parse().unwrap();
        let mut rules = RepositoryRules::default();
        let run = RunId::new(ticket.clone(), 57);
        assert_eq!(
            ChangeNaming::new(&rules, &ticket).trailers(&run, None),
            ["Journeyman-Run: jira:ENG-12@57"]
        );
        rules.commits.co_authors = vec!["Ada Lovelace <ada@acme.example>".to_owned()];
        rules.commits.sign_off = true;
        assert_eq!(
            ChangeNaming::new(&rules, &ticket).trailers(&run, None)[1..],
            [
                "Co-authored-by: Ada Lovelace <ada@acme.example>",
                "Signed-off-by: Journeyman <noreply@journeyman.invalid>"
            ]
        );
    }

    #[test]
    fn requester_is_co_author_unless_rules_forbid() {
        let ticket: TicketKey = "github:acme/shop#7".parse().unwrap();
        let run = RunId::new(ticket.clone(), 57);
        let ada = CommitAuthor::of_github("github.com", 17, "ada").unwrap();
        let mut rules = RepositoryRules::default();
        rules.commits.co_authors = vec![ada.to_string(), "Rita <rita@acme.example>".to_owned()];
        let named = |rules: &RepositoryRules| ChangeNaming::new(rules, &ticket).trailers(&run, Some(&ada));
        let with_both = [
            "Journeyman-Run: github:acme/shop#7@57",
            "Co-authored-by: ada <17+ada@users.noreply.github.com>",
            "Co-authored-by: Rita <rita@acme.example>",
        ];
        assert_eq!(named(&rules), with_both);
        rules.commits.co_authors.clear();
        rules.commits.co_author_requester = false;
        rules.commits.sign_off = true;
        rules.commits.author = Some("Bot <bot@acme.example>".parse().unwrap());
        assert_eq!(named(&rules)[1..], ["Signed-off-by: Bot <bot@acme.example>"]);
    }
}
