//! From the facts of a request to the rules that apply, whatever the number of rules.
//!
//! Rules are grouped by class, the set of dimensions that they constrain. A class is a tree with
//! a level for each of its dimensions: a level has exact values in a hash table, prefixes sorted
//! with each one's next shorter, and `*`. The search goes down the most specific way first and
//! turns back only where that ends; so the first leaf it comes to is the most specific rule.
//!
//! Invariants: the leaves of a class have different matchers. A leaf has at most one rule with
//! an `until` and one without; the first goes before while it lasts.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::time::Timestamp;

use super::facts::Facts;
use super::pattern::{Dimension, Pattern};
use super::rule::Rule;

/// The place of a rule in its tenant.
pub(super) type RuleAt = u32;

/// Places of the rules that apply, in the order of the document.
pub(super) type Found = SmallVec<[RuleAt; 4]>;

/// All rules of a tenant that can apply.
#[derive(Debug, Default)]
pub(super) struct Index {
    classes: Vec<Class>,
}

#[derive(Debug)]
struct Class {
    dimensions: Box<[Dimension]>,
    root: Node,
}

#[derive(Debug)]
enum Node {
    Branch(Box<Branch>),
    Leaf(Leaf),
}

#[derive(Debug, Default)]
struct Branch {
    exact: HashMap<Box<[u8]>, Node, FixedState>,
    /// Sorted by prefix.
    prefixes: Vec<PrefixNode>,
    any: Option<Node>,
}

#[derive(Debug)]
struct PrefixNode {
    prefix: Box<[u8]>,
    /// The place of the longest other prefix that this one begins with.
    shorter: Option<usize>,
    node: Node,
}

#[derive(Debug, Default)]
struct Leaf {
    temporary: Option<RuleAt>,
    permanent: Option<RuleAt>,
}

/// Two rules that match equally.
#[derive(Debug)]
pub(super) struct Tie {
    pub(super) earlier: RuleAt,
    pub(super) later: RuleAt,
}

/// A request on its way down a class.
struct Search<'a> {
    rules: &'a [Rule],
    now: Timestamp,
    /// The most specific rule, where it only looks on.
    looks_on: Option<RuleAt>,
    enforces: Option<RuleAt>,
}

impl Index {
    /// The number of sets of dimensions, and with it the work of a search.
    pub(super) fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Takes a rule that is not off; or tells which one it ties with.
    pub(super) fn insert(&mut self, rules: &[Rule], at: RuleAt) -> Result<(), Tie> {
        let rule = &rules[at as usize];
        let constraints = rule.matcher.constraints();
        let is_class = |class: &&mut Class| {
            let dimensions = constraints.iter().map(|(dimension, _)| dimension);
            class.dimensions.iter().eq(dimensions)
        };
        let class = if let Some(class) = self.classes.iter_mut().find(is_class) {
            class
        } else {
            let dimensions = constraints.iter().map(|(dimension, _)| dimension.clone()).collect();
            self.classes.push(Class { dimensions, root: Node::new(constraints.len()) });
            self.classes.last_mut().expect("it was pushed in the line above")
        };
        let leaf = class.root.leaf(constraints);
        let place = if rule.until.is_some() { &mut leaf.temporary } else { &mut leaf.permanent };
        if let Some(earlier) = place.replace(at) {
            return Err(Tie { earlier, later: at });
        }
        // One that looks on beside the enforced one would share its bucket.
        match *leaf {
            Leaf { temporary: Some(temporary), permanent: Some(permanent) }
                if !rules[temporary as usize].enforces() =>
            {
                Err(Tie { earlier: temporary.min(permanent), later: temporary.max(permanent) })
            }
            _ => Ok(()),
        }
    }

    /// Sorts the prefixes; to be called once, behind the last rule.
    pub(super) fn finish(&mut self) {
        for class in &mut self.classes {
            class.root.finish();
        }
        self.classes.shrink_to_fit();
    }

    pub(super) fn find(&self, rules: &[Rule], facts: &Facts<'_>, now: Timestamp) -> Found {
        let mut found = Found::new();
        for class in &self.classes {
            let values: Option<SmallVec<[&[u8]; 4]>> =
                class.dimensions.iter().map(|dimension| dimension.of(facts)).collect();
            let Some(values) = values else { continue };
            let mut search = Search { rules, now, looks_on: None, enforces: None };
            search.walk(&class.root, &values);
            found.extend(search.looks_on);
            found.extend(search.enforces);
        }
        found.sort_unstable();
        found
    }
}

impl Search<'_> {
    /// Whether the search is over: a rule was found that enforces.
    fn walk(&mut self, node: &Node, values: &[&[u8]]) -> bool {
        let branch = match node {
            Node::Leaf(leaf) => return self.take(leaf),
            Node::Branch(branch) => branch,
        };
        let Some((value, rest)) = values.split_first() else { return false };
        if branch.exact.get(*value).is_some_and(|node| self.walk(node, rest)) {
            return true;
        }
        let mut next = branch.longest_prefix(value);
        while let Some(prefix) = next {
            if self.walk(&prefix.node, rest) {
                return true;
            }
            next = prefix.shorter.map(|at| &branch.prefixes[at]);
        }
        branch.any.as_ref().is_some_and(|node| self.walk(node, rest))
    }

    fn take(&mut self, leaf: &Leaf) -> bool {
        for at in [leaf.temporary, leaf.permanent].into_iter().flatten() {
            let rule = &self.rules[at as usize];
            if !rule.lasts(self.now) {
                continue;
            }
            if rule.enforces() {
                self.enforces = Some(at);
                return true;
            }
            self.looks_on.get_or_insert(at);
        }
        false
    }
}

impl Node {
    fn new(levels: usize) -> Self {
        if levels == 0 { Self::Leaf(Leaf::default()) } else { Self::Branch(Box::default()) }
    }

    /// The leaf of a matcher, which is made where there is none. Has as many levels below it as
    /// there are constraints.
    fn leaf(&mut self, constraints: &[(Dimension, Pattern)]) -> &mut Leaf {
        match (self, constraints.split_first()) {
            (Self::Leaf(leaf), _) => leaf,
            (Self::Branch(branch), Some(((_, pattern), rest))) => {
                branch.below(pattern, rest.len()).leaf(rest)
            }
            (Self::Branch(_), None) => unreachable!("a class has a level for each constraint"),
        }
    }

    fn finish(&mut self) {
        let Self::Branch(branch) = self else { return };
        branch.exact.values_mut().for_each(Self::finish);
        branch.prefixes.iter_mut().for_each(|prefix| prefix.node.finish());
        branch.any.iter_mut().for_each(Self::finish);
        branch.link();
    }
}

impl Branch {
    fn below(&mut self, pattern: &Pattern, levels: usize) -> &mut Node {
        match pattern {
            Pattern::Exact(text) => {
                let made = self.exact.entry(text.as_bytes().into());
                made.or_insert_with(|| Node::new(levels))
            }
            Pattern::Prefix(text) => {
                let prefix = text.as_bytes();
                let at = match self.prefixes.binary_search_by(|known| (*known.prefix).cmp(prefix)) {
                    Ok(at) => at,
                    Err(at) => {
                        let node = Node::new(levels);
                        let prefix = PrefixNode { prefix: prefix.into(), shorter: None, node };
                        self.prefixes.insert(at, prefix);
                        at
                    }
                };
                &mut self.prefixes[at].node
            }
            Pattern::Any => self.any.get_or_insert_with(|| Node::new(levels)),
        }
    }

    /// Tells each prefix its next shorter one: sorted, what begins with another stands behind it.
    fn link(&mut self) {
        let mut open: Vec<usize> = Vec::new();
        for at in 0..self.prefixes.len() {
            let begins =
                |&other: &usize| self.prefixes[at].prefix.starts_with(&self.prefixes[other].prefix);
            while open.last().is_some_and(|other| !begins(other)) {
                open.pop();
            }
            self.prefixes[at].shorter = open.last().copied();
            open.push(at);
        }
        self.prefixes.shrink_to_fit();
    }

    /// The longest prefix of the value. Sorted, it is the last one not behind the value, or one
    /// that this begins with.
    fn longest_prefix(&self, value: &[u8]) -> Option<&PrefixNode> {
        let behind = self.prefixes.partition_point(|known| *known.prefix <= *value);
        let mut next = behind.checked_sub(1);
        while let Some(at) = next {
            let known = &self.prefixes[at];
            if value.starts_with(&known.prefix) {
                return Some(known);
            }
            next = known.shorter;
        }
        None
    }
}
