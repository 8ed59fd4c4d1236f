//! Conflicts of generated histories, resolved by a perfect, a careless and a one-sided model.

use domain::{CommitId, DroppedHunk, list_unnamed_hunks};
use fastrand::Rng;
use git::BareRepository;
use git2::{Index, IndexEntry, IndexTime, Signature, Time};

use crate::output::print_line;

const FILE: &str = "table.txt";
/// Lines of a file, and edits of one side.
const LINES: usize = 30;
const EDITS: usize = 5;
// Distance of two edits in lines.
const EDIT_DISTANCE: usize = 3;

/// Way in which a scripted model resolves a conflict.
#[derive(Clone, Copy)]
enum ScriptedResolver {
    /// As the person did, with a reason for each adapted line.
    Perfect,
    /// As the person did, without one change of a side.
    Careless,
    /// One side as it is, without a reason.
    OneSided,
}

/// Changed lines of one side, by their index.
type SideEdits = Vec<(usize, String)>;

/// One conflict, with the person's resolution.
struct GeneratedConflict {
    before: Vec<String>,
    ours: SideEdits,
    theirs: SideEdits,
}

/// Numbers of one model.
#[derive(Default)]
struct ResolverScore {
    as_person: usize,
    refused: usize,
    /// Accepted results that lack a change which no reason names.
    silent: usize,
}

/// Judges the resolutions of `count` conflicts; prints one line for each model:
/// `conflicts MODEL COUNT AS_PERSON REFUSED SILENT`. Returns true when nothing was lost silently, and every
/// resolution of the perfect model was accepted.
pub(super) fn judge_conflicts(count: usize) -> anyhow::Result<bool> {
    let folder = tempfile::tempdir()?;
    let repository = BareRepository::init_bare(&folder.path().join("conflicts.git"))?;
    let mut is_good = true;
    for resolver in [
        ScriptedResolver::Perfect,
        ScriptedResolver::Careless,
        ScriptedResolver::OneSided,
    ] {
        let mut score = ResolverScore::default();
        for seed in 0..count {
            // The seed makes each figure repeatable.
            let mut rng = Rng::with_seed(u64::try_from(seed)?);
            let conflict = GeneratedConflict::generate(&mut rng);
            judge_conflict(&repository, &conflict, resolver, &mut rng, &mut score)?;
        }
        let ResolverScore {
            as_person,
            refused,
            silent,
        } = score;
        print_line(&format!(
            "conflicts {} {count} {as_person} {refused} {silent}",
            resolver.name()
        ));
        let is_complete = !matches!(resolver, ScriptedResolver::Perfect) || as_person == count;
        is_good &= silent == 0 && is_complete;
    }
    Ok(is_good)
}

fn judge_conflict(
    repository: &BareRepository,
    conflict: &GeneratedConflict,
    resolver: ScriptedResolver,
    rng: &mut Rng,
    score: &mut ResolverScore,
) -> anyhow::Result<()> {
    let ancestor = commit_lines(repository, &conflict.before, &[])?;
    let parent = std::slice::from_ref(&ancestor);
    let ours = commit_lines(repository, &conflict.apply(&[&conflict.ours]), parent)?;
    let theirs = commit_lines(repository, &conflict.apply(&[&conflict.theirs]), parent)?;
    let merge = repository.prepare_merge(&ours, &theirs)?;
    anyhow::ensure!(!merge.conflicts.is_empty(), "the generated sides do not conflict");
    let person = conflict.resolve();
    let (result, dropped) = match resolver {
        ScriptedResolver::Perfect => (person.clone(), conflict.name_adapted()),
        ScriptedResolver::Careless => (conflict.forget_one(rng), conflict.name_adapted()),
        ScriptedResolver::OneSided => (conflict.apply(&[&conflict.ours]), Vec::new()),
    };
    let head = commit_lines(repository, &result, &[ours.clone(), theirs.clone()])?;
    let audit = repository.audit_merge_commit(&ours, &theirs, &head)?;
    let is_accepted = audit.markers.is_empty() && list_unnamed_hunks(&audit.lost, &dropped).is_empty();
    score.refused += usize::from(!is_accepted);
    score.as_person += usize::from(is_accepted && result == person);
    score.silent += usize::from(is_accepted && conflict.loses_silently(&result, &dropped));
    Ok(())
}

impl ScriptedResolver {
    const fn name(self) -> &'static str {
        match self {
            Self::Perfect => "perfect",
            Self::Careless => "careless",
            Self::OneSided => "one_sided",
        }
    }
}

impl GeneratedConflict {
    /// Generates sides that change one line in common, and others apart.
    // Each edit is a hunk of its own: a reason that names one line explains its whole hunk.
    fn generate(rng: &mut Rng) -> Self {
        let before: Vec<String> = (0..LINES).map(|line| format!("line {line}")).collect();
        let mut places: Vec<usize> = (0..LINES).step_by(EDIT_DISTANCE).collect();
        rng.shuffle(&mut places);
        let (ours, rest) = places.split_at(EDITS);
        let theirs = ours.iter().take(1).chain(rest.iter().take(EDITS - 1));
        let edit = |side: &str, place: &usize| (*place, format!("line {place} {side}"));
        Self {
            ours: ours.iter().map(|place| edit("by us", place)).collect(),
            theirs: theirs.map(|place| edit("by them", place)).collect(),
            before,
        }
    }

    /// Applies edits in their order.
    fn apply(&self, sides: &[&SideEdits]) -> Vec<String> {
        let mut lines = self.before.clone();
        for (place, text) in sides.iter().copied().flatten() {
            if let Some(line) = lines.get_mut(*place) {
                line.clone_from(text);
            }
        }
        lines
    }

    /// Returns the person's resolution: both edits of the common line in one line.
    fn resolve(&self) -> Vec<String> {
        let mut lines = self.apply(&[&self.ours, &self.theirs]);
        for (place, _) in self.list_common() {
            if let Some(line) = lines.get_mut(place) {
                *line = format!("line {place} by us and them");
            }
        }
        lines
    }

    /// Returns the places that both sides changed, each with both texts.
    fn list_common(&self) -> Vec<(usize, [&String; 2])> {
        let common = self.ours.iter().filter_map(|(place, ours)| {
            let (_, theirs) = self.theirs.iter().find(|(other, _)| other == place)?;
            Some((*place, [ours, theirs]))
        });
        common.collect()
    }

    fn name_adapted(&self) -> Vec<DroppedHunk> {
        let quotes = self.list_common().into_iter().flat_map(|(_, texts)| texts);
        let named = quotes.map(|quote| DroppedHunk {
            path: FILE.to_owned(),
            quote: quote.clone(),
            reason: "One line has both.".to_owned(),
        });
        named.collect()
    }

    /// Returns the person's resolution without one change that the other side did not touch.
    fn forget_one(&self, rng: &mut Rng) -> Vec<String> {
        let common = self.list_common();
        let is_apart = |place: &usize| common.iter().all(|(other, _)| other != place);
        let edits = self.ours.iter().chain(&self.theirs).map(|(place, _)| *place);
        let apart: Vec<usize> = edits.filter(is_apart).collect();
        let mut lines = self.resolve();
        if let Some(place) = rng.choice(apart)
            && let (Some(line), Some(before)) = (lines.get_mut(place), self.before.get(place))
        {
            line.clone_from(before);
        }
        lines
    }

    /// Returns true when a change of a side is in neither the result nor the reasons. The generator knows each
    /// change, so this does not depend on the audit.
    fn loses_silently(&self, result: &[String], dropped: &[DroppedHunk]) -> bool {
        let mut edits = self.ours.iter().chain(&self.theirs);
        edits.any(|(_, text)| {
            let is_named = dropped.iter().any(|hunk| hunk.quote == *text);
            !is_named && !result.contains(text)
        })
    }
}

fn commit_lines(
    repository: &BareRepository,
    lines: &[String],
    parents: &[CommitId],
) -> anyhow::Result<CommitId> {
    let git = repository.objects();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut index = Index::new()?;
    index.add(&IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        file_size: 0,
        id: git.blob(text.as_bytes())?,
        flags: 0,
        flags_extended: 0,
        path: FILE.as_bytes().to_vec(),
    })?;
    let tree = git.find_tree(index.write_tree_to(git)?)?;
    let who = Signature::new("Replay", "replay@journeyman.example", &Time::new(1, 0))?;
    let parents = parents
        .iter()
        .map(|parent| git.find_commit(git2::Oid::from_str(parent.as_str())?))
        .collect::<Result<Vec<_>, git2::Error>>()?;
    let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
    let id = git.commit(None, &who, &who, "table", &tree, &parents)?;
    Ok(id.to_string().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_conflict_loses_hunk_silently() {
        assert!(judge_conflicts(10).unwrap());
    }
}
