//! The order of a sorted set: a tree of short rows that counts what is below each branch.
//!
//! An item is a score and the number of the slot that holds its member. The tree knows no
//! members: who asks for a place says of an item whether it stands before it. Items have ranks,
//! from zero on; finding, adding and taking out one takes a row on each level.
//!
//! What is appended leaves full rows behind it, and what is taken from the front empties row
//! after row; so a log that grows at one end and shrinks at the other is kept dense.
//!
//! Invariants: no row but the root's is empty; a row never grows past the room it was made with,
//! so the bytes of the tree follow from how many rows it has; `len` and `first` of a child are
//! those of its node.

use std::ops::Range;

use super::Direction;
use crate::size::malloc_bytes;

/// Items of a leaf, a kilobyte: moving half of it takes some nanoseconds.
const LEAF_MAX: usize = 64;
/// Children of a branch. Eight levels of them are more than there are slots.
const BRANCH_MAX: usize = 32;

const LEAF_BYTES: usize = malloc_bytes(LEAF_MAX * size_of::<Item>());
const BRANCH_BYTES: usize = malloc_bytes(BRANCH_MAX * size_of::<Child>());

#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) score: f64,
    pub(super) slot: u32,
}

#[derive(Debug)]
enum Node {
    Leaf(Vec<Item>),
    Branch(Vec<Child>),
}

#[derive(Debug)]
struct Child {
    node: Node,
    /// Items in all that is below.
    len: usize,
    first: Item,
}

/// How many rows there are.
#[derive(Clone, Copy, Debug, Default)]
struct Rows {
    leaves: usize,
    branches: usize,
}

#[derive(Debug)]
pub(super) struct Tree {
    root: Node,
    len: usize,
    rows: Rows,
}

impl Tree {
    pub(super) fn new() -> Self {
        let root = Node::Leaf(Vec::with_capacity(LEAF_MAX));
        Self { root, len: 0, rows: Rows { leaves: 1, branches: 0 } }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.rows.leaves * LEAF_BYTES + self.rows.branches * BRANCH_BYTES
    }

    /// How many items are `before`: it is so of all up to some item, and of none behind it.
    pub(super) fn rank(&self, before: impl Fn(&Item) -> bool) -> usize {
        let (mut node, mut rank) = (&self.root, 0);
        loop {
            match node {
                Node::Leaf(items) => return rank + items.partition_point(before),
                Node::Branch(children) => {
                    let at = child_at(children, &before);
                    rank += children[..at].iter().map(|child| child.len).sum::<usize>();
                    node = &children[at].node;
                }
            }
        }
    }

    /// Adds an item behind those that are `before` it.
    pub(super) fn insert(&mut self, item: Item, before: impl Fn(&Item) -> bool) {
        self.len += 1;
        let Some(right) = self.root.insert(item, &before, &mut self.rows) else { return };
        let mut children = Vec::with_capacity(BRANCH_MAX);
        let left = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
        children.extend([Child::of(left), Child::of(right)]);
        self.root = Node::Branch(children);
        self.rows.branches += 1;
    }

    /// Takes out the items of these ranks, which are there, and shows each.
    pub(super) fn drain(&mut self, ranks: Range<usize>, mut gone: impl FnMut(Item)) {
        self.len -= ranks.len();
        self.root.drain(ranks, &mut gone, &mut self.rows);
        while let Node::Branch(children) = &mut self.root {
            self.root = match children.pop() {
                None => {
                    self.rows.leaves += 1;
                    Node::Leaf(Vec::with_capacity(LEAF_MAX))
                }
                Some(only) if children.is_empty() => only.node,
                Some(last) => return children.push(last),
            };
            self.rows.branches -= 1;
        }
    }

    /// Shows the items of these ranks, which are there.
    pub(super) fn visit(
        &self,
        ranks: Range<usize>,
        direction: Direction,
        mut visit: impl FnMut(&Item),
    ) {
        self.root.visit(ranks, direction, &mut visit);
    }

    /// Gives every slot another number.
    pub(super) fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        self.root.renumber(&number);
    }
}

/// A copy of a row would have room for no more than it holds; these are made anew, and full.
impl Clone for Tree {
    fn clone(&self) -> Self {
        let mut copy = Self::new();
        self.visit(0..self.len, Direction::Ascending, |item| copy.insert(*item, |_| true));
        copy
    }
}

impl Node {
    /// Items or children, in the row itself.
    fn row_len(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Branch(children) => children.len(),
        }
    }

    /// Returns what stands right of it now, where its row was full.
    fn insert(
        &mut self,
        item: Item,
        before: &impl Fn(&Item) -> bool,
        rows: &mut Rows,
    ) -> Option<Self> {
        match self {
            Self::Leaf(items) => {
                let at = items.partition_point(before);
                let right = put(items, at, item, LEAF_MAX)?;
                rows.leaves += 1;
                Some(Self::Leaf(right))
            }
            Self::Branch(children) => {
                let at = child_at(children, before);
                let right = children[at].node.insert(item, before, rows);
                children[at].refresh();
                let right = put(children, at + 1, Child::of(right?), BRANCH_MAX)?;
                rows.branches += 1;
                Some(Self::Branch(right))
            }
        }
    }

    fn drain(&mut self, ranks: Range<usize>, gone: &mut impl FnMut(Item), rows: &mut Rows) {
        let children = match self {
            Self::Leaf(items) => return items.drain(ranks).for_each(gone),
            Self::Branch(children) => children,
        };
        let (mut at, mut start) = (0, 0);
        while start + children[at].len <= ranks.start {
            start += children[at].len;
            at += 1;
        }
        let mut emptied = at..at;
        for (place, child) in children.iter_mut().enumerate().skip(at) {
            if start >= ranks.end {
                break;
            }
            let end = start + child.len;
            child.node.drain(
                ranks.start.max(start) - start..ranks.end.min(end) - start,
                gone,
                rows,
            );
            start = end;
            if child.node.row_len() > 0 {
                child.refresh();
            } else {
                rows.lose(&child.node);
                emptied =
                    if emptied.is_empty() { place..place + 1 } else { emptied.start..place + 1 };
            }
        }
        children.drain(emptied);
        for left in [at + 1, at, at.saturating_sub(1)] {
            join(children, left, rows);
        }
    }

    fn visit(&self, ranks: Range<usize>, direction: Direction, visit: &mut impl FnMut(&Item)) {
        let children = match (self, direction) {
            (Self::Leaf(items), Direction::Ascending) => {
                return items[ranks].iter().for_each(visit);
            }
            (Self::Leaf(items), Direction::Descending) => {
                return items[ranks].iter().rev().for_each(visit);
            }
            (Self::Branch(children), _) => children,
        };
        let mut within = |child: &Child, start: usize| {
            let from = ranks.start.max(start);
            let to = ranks.end.min(start + child.len);
            if from < to {
                child.node.visit(from - start..to - start, direction, visit);
            }
        };
        match direction {
            Direction::Ascending => {
                let mut start = 0;
                for child in children {
                    within(child, start);
                    start += child.len;
                }
            }
            Direction::Descending => {
                let mut start = children.iter().map(|child| child.len).sum::<usize>();
                for child in children.iter().rev() {
                    start -= child.len;
                    within(child, start);
                }
            }
        }
    }

    fn renumber(&mut self, number: &impl Fn(u32) -> u32) {
        match self {
            Self::Leaf(items) => items.iter_mut().for_each(|item| item.slot = number(item.slot)),
            Self::Branch(children) => {
                for child in children {
                    child.node.renumber(number);
                    child.refresh();
                }
            }
        }
    }
}

impl Child {
    /// Of a node that holds something.
    fn of(node: Node) -> Self {
        let mut child = Self { node, len: 0, first: Item { score: 0.0, slot: 0 } };
        child.refresh();
        child
    }

    fn refresh(&mut self) {
        (self.len, self.first) = match &self.node {
            Node::Leaf(items) => (items.len(), items[0]),
            Node::Branch(children) => {
                (children.iter().map(|child| child.len).sum(), children[0].first)
            }
        };
    }
}

impl Rows {
    fn lose(&mut self, node: &Node) {
        match node {
            Node::Leaf(_) => self.leaves -= 1,
            Node::Branch(_) => self.branches -= 1,
        }
    }
}

/// The child that a place is in: the last one whose first item is `before`, or the first.
fn child_at(children: &[Child], before: &impl Fn(&Item) -> bool) -> usize {
    children.partition_point(|child| before(&child.first)).saturating_sub(1)
}

/// Puts something into a row. A full one keeps its first half, and the rest is returned.
fn put<T>(row: &mut Vec<T>, at: usize, new: T, max: usize) -> Option<Vec<T>> {
    if row.len() < max {
        row.insert(at, new);
        return None;
    }
    let mut right = Vec::with_capacity(max);
    if at == max {
        right.push(new);
    } else {
        right.extend(row.drain(max / 2..));
        match at.checked_sub(max / 2) {
            Some(behind) => right.insert(behind, new),
            None => row.insert(at, new),
        }
    }
    Some(right)
}

/// Makes one of a child and the next, where one of them is small and both fit easily.
fn join(children: &mut Vec<Child>, left: usize, rows: &mut Rows) {
    let Some([a, b]) = children.get(left..left + 2) else { return };
    let max = if let Node::Leaf(_) = a.node { LEAF_MAX } else { BRANCH_MAX };
    let (a, b) = (a.node.row_len(), b.node.row_len());
    if a.min(b) >= max / 4 || a + b > max / 4 * 3 {
        return;
    }
    let right = children.remove(left + 1).node;
    rows.lose(&right);
    let child = &mut children[left];
    match (&mut child.node, right) {
        (Node::Leaf(items), Node::Leaf(more)) => items.extend(more),
        (Node::Branch(children), Node::Branch(more)) => children.extend(more),
        (Node::Leaf(_), Node::Branch(_)) | (Node::Branch(_), Node::Leaf(_)) => {
            unreachable!("children of one branch are as high as each other")
        }
    }
    child.refresh();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(number: usize) -> Item {
        Item { score: number as f64, slot: number as u32 }
    }

    fn numbers(tree: &Tree) -> Vec<usize> {
        let mut numbers = Vec::new();
        tree.visit(0..tree.len(), Direction::Ascending, |item| numbers.push(item.slot as usize));
        numbers
    }

    /// Rows as they are, counted one by one; each is checked on the way.
    fn counted(node: &Node, is_root: bool) -> Rows {
        assert!(is_root || node.row_len() > 0, "an empty row");
        match node {
            Node::Leaf(items) => {
                assert_eq!(items.capacity(), LEAF_MAX);
                Rows { leaves: 1, branches: 0 }
            }
            Node::Branch(children) => {
                assert_eq!(children.capacity(), BRANCH_MAX);
                let mut rows = Rows { leaves: 0, branches: 1 };
                for child in children {
                    let below = counted(&child.node, false);
                    rows.leaves += below.leaves;
                    rows.branches += below.branches;
                }
                rows
            }
        }
    }

    fn check(tree: &Tree) {
        let rows = counted(&tree.root, true);
        assert_eq!((rows.leaves, rows.branches), (tree.rows.leaves, tree.rows.branches));
    }

    #[test]
    fn appended_items_fill_their_rows() {
        let mut tree = Tree::new();
        (0..64 * 100).for_each(|number| tree.insert(item(number), |_| true));
        check(&tree);
        assert_eq!(tree.rows.leaves, 100);
    }

    #[test]
    fn items_taken_out_bit_by_bit_leave_the_others_in_order() {
        for (step, from_end) in [(1, false), (7, false), (100, true), (1_000, false)] {
            let mut tree = Tree::new();
            let mut left: Vec<usize> = (0..20_000).collect();
            // From the middle outwards, so that rows are split in halves.
            for number in (0..20_000).map(|at| at * 7_919 % 20_000) {
                tree.insert(item(number), |other| other.slot < number as u32);
            }
            check(&tree);
            assert_eq!(numbers(&tree), left);
            while !left.is_empty() {
                let width = step.min(left.len());
                let start = if from_end { left.len() - width } else { (left.len() - width) / 3 };
                let mut gone = Vec::new();
                tree.drain(start..start + width, |item| gone.push(item.slot as usize));
                assert_eq!(gone, left.drain(start..start + width).collect::<Vec<_>>());
                if left.len() % 500 < step {
                    check(&tree);
                    assert_eq!(numbers(&tree), left);
                }
            }
            check(&tree);
        }
    }

    #[test]
    fn rows_that_shrink_are_joined() {
        let mut tree = Tree::new();
        (0..64 * 64).for_each(|number| tree.insert(item(number), |_| true));
        for rank in (0..64 * 64).rev().filter(|rank| rank % 16 != 0) {
            tree.drain(rank..rank + 1, |_| {});
        }
        check(&tree);
        assert_eq!(tree.len(), 256);
        assert!(tree.rows.leaves <= 16, "{} leaves for 256 items", tree.rows.leaves);
    }

    #[test]
    fn ranks_and_copies_agree_with_the_order() {
        let mut tree = Tree::new();
        (0..5_000).for_each(|number| tree.insert(item(number * 2), |_| true));
        let copy = tree.clone();
        check(&copy);
        for number in [0, 1, 2, 777, 4_000, 9_998, 9_999, 20_000] {
            let before = |item: &Item| (item.slot as usize) < number;
            assert_eq!(tree.rank(before), number.div_ceil(2).min(5_000));
            assert_eq!(copy.rank(before), tree.rank(before));
        }
        let mut seen = Vec::new();
        tree.visit(4_990..4_993, Direction::Descending, |item| seen.push(item.slot));
        assert_eq!(seen, [9_984, 9_982, 9_980]);
    }
}
