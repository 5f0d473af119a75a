//! Who is made of what: puts the rooms together to the program that was asked for.

mod server;
mod welcome;

pub(crate) use server::{Handle, Listener, serve, start};
