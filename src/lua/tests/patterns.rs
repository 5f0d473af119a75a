//! Patterns that Lua's own matcher would not end soon: the same results, and an end.

use std::sync::atomic::Ordering::Relaxed;

use mlua::{Function, Lua, MultiValue, Value};
use proptest::prelude::*;

use super::Bench;
use crate::lua::pattern::{Capture, Found, Unmatched, search};

/// What was found as Lua tells it, or the error.
fn shown(found: Result<Option<Found>, Unmatched<()>>, text: &[u8]) -> String {
    match found {
        Ok(None) => "nil".to_owned(),
        Ok(Some(found)) => {
            let captures = found.captures.iter().map(|capture| match capture {
                Capture::Text { start, end } => format!(" {}", text[*start..*end].escape_ascii()),
                Capture::Place(at) => format!(" @{}", at + 1),
            });
            format!("{} {}{}", found.start + 1, found.end, captures.collect::<String>())
        }
        Err(Unmatched::Malformed(what)) => what.to_owned(),
        Err(Unmatched::Stopped(())) => "stopped".to_owned(),
    }
}

/// The same of Lua's own `find`.
fn found_by_lua(find: &Function, (text, pattern): (&[u8], &[u8]), lua: &Lua) -> String {
    let text = lua.create_string(text).expect("it fits");
    let pattern = lua.create_string(pattern).expect("it fits");
    match find.call::<MultiValue>((text, pattern)) {
        Err(error) => {
            let error = error.to_string();
            let line = error.lines().next().unwrap_or_default();
            line.trim_start_matches("runtime error: ").to_owned()
        }
        Ok(values) if values.front().is_none_or(Value::is_nil) => "nil".to_owned(),
        Ok(values) => {
            let shown = values.iter().enumerate().map(|(number, value)| match value {
                Value::String(text) => text.as_bytes().escape_ascii().to_string(),
                Value::Integer(place) if number > 1 => format!("@{place}"),
                other => other.to_string().expect("a number"),
            });
            shown.collect::<Vec<_>>().join(" ")
        }
    }
}

/// Pieces of patterns, right ones and wrong ones.
fn pattern() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "a", "b", ".", "%a", "%D", "%w", "%s", "%%", "[ab]", "[^a]", "[a-c%d]", "[]]", "[", "]",
        "(", ")", "()", "*", "+", "-", "?", "^", "$", "%1", "%2", "%0", "%bab", "%b", "%f[%w]",
        "%f", "%", "\0", "%z", "1", "-",
    ]);
    prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn matches_as_luas_own_matcher(
        text in prop::collection::vec(prop::sample::select(b"aab1 ]-\0c".to_vec()), 0..10),
        pattern in pattern(),
    ) {
        let lua = Lua::new();
        let find: Function = lua.load("return string.find").eval().expect("it is there");
        let (rest, anchored) = match pattern.strip_prefix(b"^") {
            Some(rest) => (rest, true),
            None => (&pattern[..], false),
        };
        // Where there is nothing special Lua looks for the text as it stands, NUL and all.
        prop_assume!(!crate::lua::pattern::is_plain(&pattern));
        let found = search((&text, rest), (0, anchored), &mut || Ok::<(), ()>(()));
        prop_assert_eq!(shown(found, &text), found_by_lua(&find, (&text, &pattern), &lua));
    }
}

/// So many parts that repeat, of a letter that no text here has, make any pattern one that is not
/// left to Lua.
#[test]
fn whole_functions_answer_the_same_however_they_match() {
    let mut bench = Bench::new();
    let script = "
        local texts = { '', 'a', 'ab12 cd', '  x=1, yy=22  ', 'aaaa', 'THE (quick) fox' }
        local patterns = { '%w+', '(%w)(%w*)', '()', 'a*', '^%s*(.-)', '%((%a+)%)', '(%w+)=(%w+)',
            '%s', '^a', 'a', '[aeiou]' }
        local bys = { '<%0>', '%1', '', '%%', 'x', { a = 'A', quick = false, x = 7 },
            function(one, two) if one ~= 'a' then return (two or '') .. '!' end end }
        local function all(s, p)
            local t = {}
            for one, two in string.gmatch(s, p) do t[#t + 1] = tostring(one) .. tostring(two) end
            return table.concat(t, ',')
        end
        local function each(f, ...)
            local t = { pcall(f, ...) }
            for i = 1, 4 do t[i] = tostring(t[i]) end
            return table.concat(t, '|')
        end
        local wrong = {}
        for _, s in ipairs(texts) do for _, p in ipairs(patterns) do
            local q = p .. ('Q?'):rep(60)
            local function compare(name, one, other)
                if one ~= other then
                    wrong[#wrong + 1] = table.concat({ name, s, p, one, other }, '  ')
                end
            end
            for from = -3, 5 do
                compare('find', each(string.find, s, p, from), each(string.find, s, q, from))
                compare('match', each(string.match, s, p, from), each(string.match, s, q, from))
            end
            if p:sub(1, 1) ~= '^' then compare('gmatch', each(all, s, p), each(all, s, q)) end
            for _, by in ipairs(bys) do for most = -1, 3 do
                local short = each(string.gsub, s, p, by, most)
                compare('gsub', short, each(string.gsub, s, q, by, most))
            end
            compare('gsub', each(string.gsub, s, p, by), each(string.gsub, s, q, by)) end
        end end
        return table.concat(wrong, '; ')";
    assert_eq!(bench.eval(script), "$0\r\n\r\n");
}

#[test]
fn one_call_that_would_never_end_is_killed() {
    let mut bench = Bench::new();
    for text in [
        "return (('a'):rep(1e4):find(('.-'):rep(20) .. 'b'))",
        "return ('a'):rep(1e4):match(('a*'):rep(30) .. 'b')",
        "for _ in ('('):rep(1e6):gmatch('%b()') do end",
        "return (('a'):rep(1e4):gsub(('a-'):rep(20) .. 'b', ''))",
        "return pcall(string.find, ('a'):rep(1e4), ('a?'):rep(99) .. ('a*'):rep(50) .. 'b')",
    ] {
        bench.kill.store(true, Relaxed);
        let found = bench.eval(text);
        let expected = "-ERR Script killed by user with SCRIPT KILL... script: SHA";
        assert!(found.starts_with(expected), "{text}: {found}");
        bench.kill.store(false, Relaxed);
        assert_eq!(bench.eval("return 1"), ":1\r\n", "{text}");
    }
}

#[test]
fn text_that_almost_matches_everywhere_is_sought_quickly() {
    let mut bench = Bench::new();
    let script = "
        local text = ('a'):rep(2e6)
        return { tostring(text:find(('a'):rep(1e6) .. 'b', 1, true)),
            text:find(('a'):rep(1e6), 5, true) }";
    assert_eq!(bench.eval(script), "*3\r\n$3\r\nnil\r\n:5\r\n:1000004\r\n");
}
