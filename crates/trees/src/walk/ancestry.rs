//! The folders that a folder lies in, to tell a loop: a filesystem or a mount can show a folder inside
//! itself, and walking that would never end.

use std::sync::Arc;

/// A folder and all above it.
pub(super) struct Ancestry {
    device: u64,
    inode: u64,
    above: Option<Arc<Ancestry>>,
}

impl Ancestry {
    pub(super) fn new(device: u64, inode: u64, above: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self {
            device,
            inode,
            above,
        })
    }

    /// Whether this folder or one above it is the one asked for.
    pub(super) fn contains(&self, device: u64, inode: u64) -> bool {
        let mut one = Some(self);
        while let Some(folder) = one {
            if (folder.device, folder.inode) == (device, inode) {
                return true;
            }
            one = folder.above.as_deref();
        }
        false
    }
}

/// Step by step: one call inside another for every level would use up the stack in a deep tree.
impl Drop for Ancestry {
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(folder) = above {
            match Arc::into_inner(folder) {
                Some(mut folder) => above = folder.above.take(),
                None => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_very_deep_tree_is_searched_and_dropped() {
        let mut folder = Ancestry::new(1, 0, None);
        for inode in 1..1_000_000 {
            folder = Ancestry::new(1, inode, Some(folder));
        }
        assert!(folder.contains(1, 0));
        assert!(!folder.contains(2, 0));
        drop(folder);
    }
}
