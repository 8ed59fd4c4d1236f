//! Graph of files that share names by use and definition, and the distance of files in it.

use std::collections::HashMap;

/// Maximum number of neighbors of a file.
const MAX_NEIGHBOURS: usize = 32;
/// Share of a file's weight that its neighbors receive in each step, and the number of steps.
const DAMPING: f32 = 0.6;
const STEPS: usize = 2;

/// Neighbors of each file of a tree, in both directions.
#[derive(Debug, Default)]
pub(crate) struct NameGraph {
    starts: Vec<u32>,
    neighbours: Vec<u32>,
}

impl NameGraph {
    /// Builds the graph from pairs of files; a pair occurs once for each shared name.
    pub(crate) fn of_pairs(mut pairs: Vec<(u32, u32)>, files: usize) -> Self {
        pairs.sort_unstable();
        let mut graph = Self {
            starts: Vec::with_capacity(files + 1),
            neighbours: Vec::new(),
        };
        let mut rest = pairs.as_slice();
        for file in (0_u32..).take(files) {
            graph.starts.push(graph.length());
            let own = rest.partition_point(|(from, _)| *from == file);
            let (own, after) = rest.split_at(own);
            rest = after;
            let mut counted: Vec<(usize, u32)> = own
                .chunk_by(|one, other| one.1 == other.1)
                .filter_map(|same| Some((same.len(), same.first()?.1)))
                .collect();
            counted.sort_by(|one, other| other.cmp(one));
            graph
                .neighbours
                .extend(counted.iter().take(MAX_NEIGHBOURS).map(|(_, to)| *to));
        }
        graph.starts.push(graph.length());
        graph.neighbours.shrink_to_fit();
        graph
    }

    fn length(&self) -> u32 {
        u32::try_from(self.neighbours.len()).unwrap_or(u32::MAX)
    }

    fn of(&self, file: u32) -> &[u32] {
        let place = |at: usize| self.starts.get(at).map_or(0, |start| *start as usize);
        self.neighbours
            .get(place(file as usize)..place(file as usize + 1))
            .unwrap_or_default()
    }

    /// Closeness of files to the seeds: each seed passes a part of its weight to its neighbors, and these
    /// pass it on.
    pub(crate) fn near(&self, seeds: &HashMap<u32, f32>) -> HashMap<u32, f32> {
        let mut all = seeds.clone();
        let mut moving = seeds.clone();
        for _ in 0..STEPS {
            let mut next: HashMap<u32, f32> = HashMap::new();
            for (file, weight) in &moving {
                let neighbours = self.of(*file);
                // Divided among the neighbors, so that a file which many others use does not lift all of
                // them.
                let share = DAMPING * weight / convert_count(neighbours.len().max(1));
                for neighbour in neighbours {
                    *next.entry(*neighbour).or_default() += share;
                }
            }
            for (file, weight) in &next {
                *all.entry(*file).or_default() += weight;
            }
            moving = next;
        }
        all
    }
}

#[expect(clippy::cast_precision_loss, reason = "a small count")]
fn convert_count(number: usize) -> f32 {
    number as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_reaches_neighbors_of_neighbors_only() {
        let both = |one, other| [(one, other), (other, one)];
        let pairs = [both(0, 1), both(1, 2), both(2, 3), both(3, 4)].concat();
        let graph = NameGraph::of_pairs(pairs, 5);
        let near = graph.near(&HashMap::from([(0, 1.0)]));
        assert!(near[&0] > near[&1] && near[&1] > near[&2]);
        assert_eq!(near.get(&3), None);
    }

    #[test]
    fn file_keeps_closest_neighbors() {
        let mut pairs: Vec<(u32, u32)> = (1..100).map(|other| (0, other)).collect();
        pairs.extend([(0, 70), (0, 70)]);
        let graph = NameGraph::of_pairs(pairs, 100);
        assert_eq!(graph.of(0).len(), MAX_NEIGHBOURS);
        assert_eq!(graph.of(0).first(), Some(&70));
    }
}
