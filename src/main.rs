//! The `tollgate` program: everything it does is in `tollgate::cli`.

fn main() {}
