//! How handlers reach collections: by kind, with the wrong kind as the error that Redis answers.
//!
//! A collection that an edit leaves empty is removed with its deadline, here as in Redis.

use super::key::KeyRef;
use super::shard::{Expires, Kept};
use super::value::{Collection, Value};
use super::view::View;
use crate::protocol::Error;

impl View<'_> {
    /// The collection under a key, for a reader: counts a hit or a miss, and the key as used.
    pub(crate) fn read_collection<C: Collection>(
        &mut self,
        key: KeyRef<'_>,
    ) -> Result<Option<&C>, Error> {
        self.read(key).map(|found| of_kind(found.value)).transpose()
    }

    /// The collections under several keys, for a reader; the first key of another type is an
    /// error. They are all there together, so that they can be compared.
    pub(crate) fn read_collections<C: Collection>(
        &mut self,
        keys: &[KeyRef<'_>],
    ) -> Result<Vec<Option<&C>>, Error> {
        let values = self.read_all(keys).into_iter();
        values.map(|value| value.map(of_kind).transpose()).collect()
    }

    /// The collection under a key, without leaving a trace.
    pub(crate) fn look_at_collection<C: Collection>(
        &mut self,
        key: KeyRef<'_>,
    ) -> Result<Option<&C>, Error> {
        self.look(key).map(|found| of_kind(found.value)).transpose()
    }

    /// Changes the collection under a key, or a new one where nothing stands there. `change`
    /// returns whether it changed anything besides its result; where it fails it has not.
    pub(crate) fn change<C: Collection, R>(
        &mut self,
        key: KeyRef<'_>,
        change: impl FnOnce(&mut C) -> Result<(R, bool), Error>,
    ) -> Result<R, Error> {
        self.update(
            key,
            |_| C::new(key.hash()).into(),
            |value, _| change(value.as_collection_mut().ok_or(Error::WrongType)?).map(kept),
        )
    }

    /// Changes the collection under a key; nothing where none stands there.
    pub(crate) fn change_existing<C: Collection, R>(
        &mut self,
        key: KeyRef<'_>,
        change: impl FnOnce(&mut C) -> Result<(R, bool), Error>,
    ) -> Result<Option<R>, Error> {
        self.edit(key, |value, _| {
            change(value.as_collection_mut().ok_or(Error::WrongType)?).map(kept)
        })
    }

    /// Puts a collection under a key, whatever was there; an empty one removes the key.
    pub(crate) fn put_collection<C: Collection>(&mut self, key: KeyRef<'_>, collection: C) {
        if collection.is_empty() {
            self.remove(key);
        } else {
            self.insert(key, collection.into(), crate::time::Timestamp::MAX);
        }
    }
}

fn of_kind<C: Collection>(value: &Value) -> Result<&C, Error> {
    value.as_collection().ok_or(Error::WrongType)
}

fn kept<R>((result, changed): (R, bool)) -> (R, Kept) {
    let kept = if changed { Kept::Changed { expires: Expires::Keep } } else { Kept::Unchanged };
    (result, kept)
}
