//! The files that the rules look at, with what is code in them told apart from what is not.

use std::fs;
use std::ops::Range;
use std::path::Path;

pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

pub(crate) struct File {
    /// From the top of the tree, with `/`.
    pub(crate) path: String,
    /// The lines as they stand.
    pub(crate) lines: Vec<String>,
    /// For Rust: the same lines with comments and the insides of literals blanked; columns stay.
    pub(crate) code: Vec<String>,
    /// The first line, counted from 0, that only tests see.
    pub(crate) tests_from: usize,
}

/// Folders and files at the top that are ours to read.
const ROOTS: [&str; 17] = [
    "src",
    "tests",
    "benches",
    "examples",
    "fuzz",
    "config",
    "scripts",
    "docker",
    "docs",
    ".ci",
    "Makefile",
    "Cargo.toml",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "clippy.toml",
];

impl Tree {
    pub(crate) fn read(top: &str) -> Self {
        let mut tree = Self { files: Vec::new() };
        for root in ROOTS {
            tree.collect(Path::new(top), &Path::new(top).join(root));
        }
        tree.mark_test_files();
        tree
    }

    pub(crate) fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let files = files.into_iter().map(|(path, text)| File::new(path.to_owned(), text));
        let mut tree = Self { files: files.collect() };
        tree.mark_test_files();
        tree
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.ends_in(".rs"))
    }

    /// The Rust files of the crate itself.
    pub(crate) fn src(&self) -> impl Iterator<Item = &File> {
        self.rust().filter(|file| file.path.starts_with("src/"))
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether `src/room/inner` is a file or folder, so that `room::inner` is a module.
    pub(crate) fn is_inner_module(&self, room: &str, inner: &str) -> bool {
        let path = format!("src/{room}/{inner}");
        self.src().any(|file| {
            file.path.strip_prefix(&path).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        })
    }

    fn collect(&mut self, top: &Path, at: &Path) {
        if let Ok(folder) = fs::read_dir(at) {
            let mut paths: Vec<_> = folder.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            for path in paths {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                // What tools leave behind is not ours.
                if !["target", "corpus", "artifacts", "node_modules"].contains(&name.as_str()) {
                    self.collect(top, &path);
                }
            }
        } else if let Ok(text) = fs::read_to_string(at) {
            let path = at.strip_prefix(top).unwrap_or(at).to_string_lossy().replace('\\', "/");
            self.files.push(File::new(path, &text));
        }
    }

    /// A file whose `mod` line only tests see is all tests.
    fn mark_test_files(&mut self) {
        let mut test_paths = Vec::new();
        for file in self.src() {
            let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            for (attribute, item) in file.code.iter().zip(file.code.iter().skip(1)) {
                let name = item.trim().trim_start_matches("pub(super) ").strip_prefix("mod ");
                let Some(name) = name.and_then(|rest| rest.strip_suffix(';')) else { continue };
                if is_test_gate(attribute) {
                    test_paths.push(format!("{folder}/{name}.rs"));
                    test_paths.push(format!("{folder}/{name}/"));
                }
            }
        }
        for file in &mut self.files {
            if test_paths.iter().any(|path| file.path.starts_with(path)) {
                file.tests_from = 0;
            }
        }
    }
}

impl File {
    fn new(path: String, text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let code: Vec<String> = blank(text).lines().map(str::to_owned).collect();
        let gate = code.iter().zip(code.iter().skip(1)).position(|(attribute, item)| {
            is_test_gate(attribute) && item.starts_with("mod ") && item.ends_with('{')
        });
        let tests_from = if path.starts_with("src/") { gate.unwrap_or(usize::MAX) } else { 0 };
        Self { path, lines, code, tests_from }
    }

    /// The room that a file of `src` belongs to.
    pub(crate) fn room(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("src/")?;
        Some(inside.split_once('/').map_or(inside, |(room, _)| room).trim_end_matches(".rs"))
    }

    /// Numbered lines of code, from 1.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.iter().enumerate().map(|(index, line)| (index + 1, line.as_str()))
    }

    /// Numbered lines of code that not only tests see.
    pub(crate) fn shipped(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code().take_while(|(number, _)| *number <= self.tests_from)
    }

    /// Whether only tests see the line.
    pub(crate) fn is_test(&self, number: usize) -> bool {
        number > self.tests_from
    }

    /// Whether the file's name ends so, as `.rs`.
    pub(crate) fn ends_in(&self, extension: &str) -> bool {
        self.path.ends_with(extension)
    }

    pub(crate) fn finding(&self, number: usize, text: &str) -> String {
        format!("{}:{number}: {text}", self.path)
    }
}

fn is_test_gate(line: &str) -> bool {
    line.contains("#[cfg(test)]") || line.contains("#[cfg(all(test,")
}

/// Blanks comments and the insides of string and character literals, so that words in them are
/// not taken for code.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        // What to blank, and behind it what to step over: a literal's closing quote stays.
        let (inside, closing) = match rest {
            [b'/', b'/', ..] => (0..until(rest, b"\n"), 0),
            [b'/', b'*', ..] => (0..block_comment(rest), 0),
            [b'"', ..] => (1..string(rest), 1),
            [b'r', b'"' | b'#', ..] if !is_word(bytes, at) => raw_string(rest),
            [b'\'', b'\\', ..] => (1..3 + until(rest.get(3..).unwrap_or_default(), b"'"), 1),
            [b'\'', _, b'\'', ..] => (1..2, 1),
            _ => (1..1, 0),
        };
        let end = (at + inside.end).min(bytes.len());
        for byte in &mut out[(at + inside.start).min(end)..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end + closing;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Whether the byte before `at` makes what stands there the end of a name.
fn is_word(bytes: &[u8], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| {
        bytes[before].is_ascii_alphanumeric() && bytes[before] != b'b' || bytes[before] == b'_'
    })
}

/// Bytes before the first `end`, or all.
fn until(bytes: &[u8], end: &[u8]) -> usize {
    bytes.windows(end.len()).position(|window| window == end).unwrap_or(bytes.len())
}

/// Bytes of a block comment; those within it count.
fn block_comment(bytes: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth.saturating_sub(1), at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Bytes of a string literal before its closing quote.
fn string(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}

/// The inside of a raw string, and the bytes that close it.
fn raw_string(bytes: &[u8]) -> (Range<usize>, usize) {
    let hashes = bytes[1..].iter().take_while(|byte| **byte == b'#').count();
    let opening = hashes + 2;
    if bytes.get(opening - 1) != Some(&b'"') {
        return (1..1, 0); // r#name
    }
    let end = [b"\"".as_slice(), "#".repeat(hashes).as_bytes()].concat();
    (opening..opening + until(&bytes[opening..], &end), end.len())
}

#[test]
fn literals_and_comments_are_no_code() {
    let code =
        "let a = \"\" + \"x\\\"tokio\"; // tokio\nb('\\'', 'c', r#\"to\"kio\"#) /* tokio */ + 'l";
    let blanked = blank(code);
    assert!(!blanked.contains("tokio") && !blanked.contains("kio"), "{blanked}");
    assert!(blanked.contains("let a = \"") && blanked.ends_with("+ 'l"), "{blanked}");
    assert_eq!(blanked.len(), code.len());
}

#[test]
fn tests_begin_at_their_gate() {
    let text = "//! A.\nfn a() {}\n#[cfg(test)]\nmod tests {\n}\n";
    let tree = Tree::of([
        ("src/engine/mod.rs", "//! A.\n#[cfg(test)]\nmod oracle;\nfn a() {}\n"),
        ("src/engine/oracle.rs", "//! B.\n"),
        ("src/engine/slab.rs", text),
    ]);
    let shipped: Vec<usize> = tree.files.iter().map(|file| file.shipped().count()).collect();
    assert_eq!(shipped, [4, 0, 2]);
}
