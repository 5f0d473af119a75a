//! Fields, each with a value: what hashes and sets are made of.
//!
//! A few short ones are [`Packed`], more or longer ones are a [`Table`], and stay one, as in
//! Redis; OBJECT ENCODING shows which. While packed, changes are taken back by a copy from
//! before the first of them, which is small; a table notes the inverse of each.
//!
//! Invariant: no field is there twice.

use super::packed::{Entries, Packed};
use super::table::{Element, Table};

#[derive(Clone, Debug)]
enum Form {
    Packed(Packed),
    Table(Box<Table>),
}

#[derive(Clone, Debug)]
pub(super) struct Fields {
    form: Form,
    /// What it was before the first change that may have to be taken back, if it was packed.
    before: Option<Box<Packed>>,
    seed: u64,
}

impl Fields {
    /// None yet; so many at most are packed.
    pub(super) fn new(seed: u64, packed_max: u32) -> Self {
        Self { form: Form::Packed(Packed::new(packed_max)), before: None, seed }
    }

    pub(super) fn len(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.len(),
            Form::Table(table) => table.len(),
        }
    }

    pub(super) fn is_packed(&self) -> bool {
        matches!(self.form, Form::Packed(_))
    }

    /// Where the field stands, until something changes.
    pub(super) fn find(&self, field: &[u8]) -> Option<usize> {
        match &self.form {
            Form::Packed(packed) => packed.find(field),
            Form::Table(table) => table.find(field),
        }
    }

    pub(super) fn value(&self, at: usize) -> &[u8] {
        match &self.form {
            Form::Packed(packed) => packed.value(at),
            Form::Table(table) => table.value(at),
        }
    }

    /// Adds a field that is not there yet.
    pub(super) fn push(&mut self, field: &[u8], value: &[u8]) {
        match &mut self.form {
            Form::Packed(packed) if Packed::takes(field, value) && !packed.is_full() => {
                packed.push(field, value);
            }
            Form::Packed(_) => self.make_table(|table| table.push(field, value)),
            Form::Table(table) => table.push(field, value),
        }
    }

    /// Changes the value of the field that stands here.
    pub(super) fn replace(&mut self, at: usize, value: &[u8]) {
        match &mut self.form {
            Form::Packed(packed) if Packed::takes(&[], value) => packed.replace(at, value),
            Form::Packed(packed) => {
                let place = packed.place(at);
                self.make_table(|table| table.replace(place, value));
            }
            Form::Table(table) => table.replace(at, value),
        }
    }

    pub(super) fn remove(&mut self, at: usize) {
        match &mut self.form {
            Form::Packed(packed) => packed.remove(at),
            Form::Table(table) => table.remove(at),
        }
    }

    /// Takes out the field in this place of [`Fields::iter`].
    pub(super) fn remove_place(&mut self, place: usize) {
        match &mut self.form {
            Form::Packed(packed) => packed.remove(packed.offset(place)),
            Form::Table(table) => table.remove(place),
        }
    }

    /// In the order in which they came, while packed.
    pub(super) fn iter(&self) -> Iter<'_> {
        match &self.form {
            Form::Packed(packed) => Iter::Packed(packed.iter()),
            Form::Table(table) => Iter::Table(table.elements().iter()),
        }
    }

    /// Those that a scan meets next, some `count` of them, and where it goes on; zero begins, and
    /// zero ends. What is packed is met at once.
    pub(super) fn scan(&self, cursor: u64, count: usize) -> (Iter<'_>, u64) {
        match &self.form {
            Form::Packed(_) => (self.iter(), 0),
            Form::Table(table) => {
                let (elements, next) = table.scan(cursor, count);
                (Iter::Table(elements.iter()), next)
            }
        }
    }

    /// A table from now on, with a change that needs one.
    fn make_table(&mut self, change: impl FnOnce(&mut Table)) {
        let mut table = Box::new(Table::new(self.seed));
        for (field, value) in self.iter() {
            table.push(field, value);
        }
        change(&mut table);
        self.form = Form::Table(table);
    }

    /// From here on every change can be taken back. False where that is so already.
    pub(super) fn begin_undo(&mut self) -> bool {
        if self.before.is_some() {
            return false;
        }
        match &mut self.form {
            Form::Packed(packed) => {
                self.before = Some(Box::new(packed.clone()));
                true
            }
            Form::Table(table) => table.begin_undo(),
        }
    }

    /// What is kept to take changes back.
    pub(super) fn undo_bytes(&self) -> usize {
        let before = self.before.as_ref().map_or(0, |packed| packed.heap_bytes());
        match &self.form {
            Form::Packed(_) => before,
            Form::Table(table) => before + table.undo_bytes(),
        }
    }

    pub(super) fn forget_undo(&mut self) {
        self.before = None;
        if let Form::Table(table) = &mut self.form {
            table.forget_undo();
        }
    }

    pub(super) fn roll_back(&mut self) {
        match (self.before.take(), &mut self.form) {
            (Some(packed), form) => *form = Form::Packed(*packed),
            (None, Form::Table(table)) => table.roll_back(),
            (None, Form::Packed(_)) => {}
        }
    }

    /// What is owned besides the structure itself.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.heap_bytes(),
            Form::Table(table) => table.heap_bytes(),
        }
    }

    pub(super) fn prefetch(&self) -> u64 {
        match &self.form {
            Form::Packed(packed) => packed.prefetch(),
            Form::Table(table) => table.len() as u64,
        }
    }
}

/// Fields and values, one after another.
#[derive(Clone, Debug)]
pub(super) enum Iter<'f> {
    Packed(Entries<'f>),
    Table(std::slice::Iter<'f, Element>),
}

impl<'f> Iterator for Iter<'f> {
    type Item = (&'f [u8], &'f [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Packed(entries) => entries.next(),
            Self::Table(elements) => elements.next().map(Element::parts),
        }
    }

    /// Goes to an element of a table at once.
    fn nth(&mut self, places: usize) -> Option<Self::Item> {
        match self {
            Self::Packed(entries) => entries.nth(places),
            Self::Table(elements) => elements.nth(places).map(Element::parts),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Packed(entries) => entries.size_hint(),
            Self::Table(elements) => elements.size_hint(),
        }
    }
}

impl ExactSizeIterator for Iter<'_> {}
