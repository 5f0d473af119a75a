//! What is known of one request: its endpoint, its caller, and named attributes.
//!
//! `endpoint` and `caller` are attributes with a place of their own, whichever way they come.

use smallvec::SmallVec;

/// The facts that rules are matched against; bytes, borrowed from the request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts<'a> {
    pub(crate) endpoint: Option<&'a [u8]>,
    pub(crate) caller: Option<&'a [u8]>,
    pub(crate) attributes: SmallVec<[(&'a [u8], &'a [u8]); 4]>,
}

impl<'a> Facts<'a> {
    /// Takes a named fact; false where that name has a value already.
    pub(crate) fn note(&mut self, name: &'a [u8], value: &'a [u8]) -> bool {
        let place = match name {
            b"endpoint" => &mut self.endpoint,
            b"caller" => &mut self.caller,
            _ => {
                let is_new = self.attribute(name).is_none();
                if is_new {
                    self.attributes.push((name, value));
                }
                return is_new;
            }
        };
        let is_new = place.is_none();
        place.get_or_insert(value);
        is_new
    }

    /// The value of an attribute other than endpoint and caller.
    pub(super) fn attribute(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|&(_, value)| value)
    }
}
