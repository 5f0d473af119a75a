//! Stands here until the tests of the room come with its branch.
