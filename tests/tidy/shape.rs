//! Rules about the shape of a file: its first sentence, and how long things may be.

use super::tree::{File, Tree};
use super::{Finding, Rule};

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 60;
const LINE_COLUMNS_MAX: usize = 100;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "a file begins with its sentence",
        check: first_sentence,
        beside: &[],
        bad: &[("src/server/a.rs", "use b::C;\n"), ("fuzz/fuzz_targets/a.rs", "\n//! A.\n")],
    },
    Rule {
        name: "a file has an end",
        check: file_length,
        beside: &[],
        bad: &[("src/server/a.rs", LONG_FILE)],
    },
    Rule {
        name: "a function fits a screen",
        check: function_length,
        beside: &[],
        bad: &[("src/server/a.rs", LONG_FUNCTION), ("tests/it/a.rs", LONG_FUNCTION)],
    },
    Rule {
        name: "a line fits",
        check: line_length,
        beside: &[],
        bad: &[("src/server/a.rs", LONG_LINE)],
    },
];

const LONG_FILE: &str = match str::from_utf8(&[b'\n'; FILE_LINES_MAX + 1]) {
    Ok(text) => text,
    Err(_) => panic!("line feeds are UTF-8"),
};

const LONG_FUNCTION: &str = "impl A {\n    pub(crate) const fn b() {\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\
    \n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\
    \n\n\n\n\n\n    }\n}\n";

const LONG_LINE: &str = "//! 4567890123456789012345678901234567890123456789012345678901234567890\
    1234567890123456789012345678901\n";

fn first_sentence(tree: &Tree) -> Vec<Finding> {
    let silent = |file: &&File| !file.lines.first().is_some_and(|line| line.starts_with("//! "));
    let text = "no sentence at the top; say what the file is, and why: `//! ...`";
    tree.rust().filter(silent).map(|file| file.finding(1, text)).collect()
}

fn file_length(tree: &Tree) -> Vec<Finding> {
    let long = tree.rust().filter(|file| file.lines.len() > FILE_LINES_MAX);
    long.map(|file| {
        let lines = file.lines.len();
        let text =
            format!("{lines} lines, at most {FILE_LINES_MAX}; split it where it has two parts");
        file.finding(FILE_LINES_MAX + 1, &text)
    })
    .collect()
}

/// A function begins with its `fn` line and ends with the next `}` as far to the left.
fn function_length(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let mut open: Option<(usize, usize)> = None;
        for (number, line) in file.code() {
            let indent = line.len() - line.trim_start().len();
            match open {
                None if begins_function(line) => open = Some((number, indent)),
                Some((start, its_indent)) if indent == its_indent && line.trim() == "}" => {
                    open = None;
                    let lines = number - start + 1;
                    if lines > FUNCTION_LINES_MAX {
                        let text = format!(
                            "a function of {lines} lines, at most {FUNCTION_LINES_MAX}; keep the \
                             branches, move the leaves out"
                        );
                        findings.push(file.finding(start, &text));
                    }
                }
                None | Some(_) => {}
            }
        }
    }
    findings
}

fn begins_function(line: &str) -> bool {
    let mut words = line.trim_start();
    for word in ["pub(crate) ", "pub(super) ", "pub ", "const ", "async ", "extern \"C\" "] {
        words = words.strip_prefix(word).unwrap_or(words);
    }
    let whole = line.trim_end().ends_with(';') || line.trim_end().ends_with('}');
    words.starts_with("fn ") && !whole
}

fn line_length(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let measured = tree.files.iter().filter(|file| file.ends_in(".rs") || file.ends_in(".yaml"));
    for file in measured {
        for (index, line) in file.lines.iter().enumerate() {
            let columns = line.chars().count();
            if columns > LINE_COLUMNS_MAX {
                let text = format!("{columns} columns, at most {LINE_COLUMNS_MAX}; break the line");
                findings.push(file.finding(index + 1, &text));
            }
        }
    }
    findings
}
