//! Limits of the shown chunks: in total, per module and per file.

use std::collections::HashMap;

/// Maximum number of chunks of one module in an answer.
pub const MAX_IN_MODULE: usize = 4;
/// Maximum number of chunks in an answer.
pub const MAX_CHUNKS: usize = 10;
/// Maximum number of chunks of one file in an answer.
const MAX_IN_FILE: usize = 2;

/// Counter of the chosen chunks.
#[derive(Debug)]
pub(crate) struct ChunkCaps<'a> {
    modules: HashMap<&'a str, usize>,
    files: HashMap<u32, usize>,
    left: usize,
    in_module: usize,
}

impl<'a> ChunkCaps<'a> {
    pub(crate) fn new(max: usize, in_module: usize) -> Self {
        Self {
            modules: HashMap::new(),
            files: HashMap::new(),
            left: max,
            in_module,
        }
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Counts another chunk of this module and file and returns true, if all limits allow it.
    pub(crate) fn take(&mut self, module: &'a str, file: u32) -> bool {
        let of_module = self.modules.entry(module).or_default();
        let of_file = self.files.entry(file).or_default();
        let may = self.left > 0 && *of_module < self.in_module && *of_file < MAX_IN_FILE;
        if may {
            self.left -= 1;
            *of_module += 1;
            *of_file += 1;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_limit_each_module_and_file() {
        let mut caps = ChunkCaps::new(6, MAX_IN_MODULE);
        let taken: Vec<bool> = (0..4).map(|_| caps.take("a", 1)).collect();
        assert_eq!(taken, [true, true, false, false]);
        assert!(caps.take("a", 2) && caps.take("a", 3) && !caps.take("a", 4));
        assert!(caps.take("b", 5) && caps.take("b", 6) && caps.is_full() && !caps.take("c", 7));
    }
}
