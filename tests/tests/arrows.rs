//! Which file takes names from which: no circle of files, and no arrow that runs back up, in any crate.
//!
//! A file and the module that it lies in may know each other, and tests may know all. Below the root of a crate each module is a room
//! with all that lies in it; rooms form no circle either, so they can be drawn as floors, with all arrows down.

use super::tidy::{root, sources};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;

/// The path of a module in its crate: none of its root.
type Module = Vec<String>;
type Arrows = BTreeMap<Module, BTreeSet<Module>>;

/// One file.
#[derive(Default)]
struct File {
    /// Paths that it names, as they stand.
    named: Vec<Vec<String>>,
    /// Those of them that it passes on, by the last name of each.
    passed_on: BTreeMap<String, Vec<String>>,
    /// Its modules that are there for tests alone.
    tests: BTreeSet<String>,
}

/// The paths at the start of a text such as `a::{b, c::d}`.
fn paths(text: &mut &str) -> Vec<Vec<String>> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    *text = rest;
    let under = |below: Vec<Vec<String>>| -> Vec<Vec<String>> {
        let name = (!name.is_empty()).then(|| name.to_owned());
        below.into_iter().map(|path| name.iter().cloned().chain(path).collect()).collect()
    };
    if let Some(rest) = text.strip_prefix("::").filter(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '{'))
    {
        *text = rest;
        return under(paths(text));
    }
    if !name.is_empty() || !text.starts_with('{') {
        return under(vec![Vec::new()]);
    }
    let mut all = Vec::new();
    loop {
        *text = text[1..].trim_start();
        all.extend(paths(text));
        // What comes after ` as ` names nothing else.
        let Some(next) = text.find([',', '}']) else { return all };
        *text = &text[next..];
        if text.starts_with('}') || text[1..].trim_start().starts_with('}') {
            *text = &text[text.find('}').unwrap_or(0) + 1..];
            return all;
        }
    }
}

fn read(text: &str) -> File {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut file = File::default();
    let mut before = "";
    for line in code.lines() {
        let module = line.trim_end_matches([';', '{', ' ']).rsplit_once("mod ").map(|(_, name)| name);
        if let Some(name) = module.filter(|_| before.starts_with("#[cfg(") && before.contains("test")) {
            file.tests.insert(name.to_owned());
        }
        before = line;
    }
    // Tests stand at the end of a file.
    let end = file.tests.iter().filter_map(|name| code.find(&format!("mod {name} {{"))).min();
    let code = &code[..end.unwrap_or(code.len())];
    for (at, _) in code.match_indices("use ").filter(|(at, _)| code[..*at].ends_with(['\n', ' ', ')']) || *at == 0) {
        let line = code[..at].rsplit('\n').next().unwrap_or_default().trim_start();
        if line.is_empty() || line.starts_with("pub") {
            let found = paths(&mut &code[at + 4..]);
            if line.starts_with("pub") {
                let named = found.iter().filter_map(|path| Some((path.last()?.clone(), path.clone())));
                file.passed_on.extend(named);
            } else {
                file.named.extend(found);
            }
        }
    }
    for word in ["crate::", "super::", "self::"] {
        let starts = code.match_indices(word).map(|(at, _)| at);
        let starts = starts.filter(|&at| !code[..at].ends_with(|c: char| c.is_alphanumeric() || "_:$".contains(c)));
        file.named.extend(starts.flat_map(|at| paths(&mut &code[at..])));
    }
    file
}

/// The module that a path named in `from` leads to, through what modules pass on.
fn lead(files: &BTreeMap<Module, File>, from: &Module, path: &[String], depth: usize) -> Option<Module> {
    let mut at = from.clone();
    let mut rest = path;
    match rest.first()?.as_str() {
        "crate" => at.clear(),
        "self" => {}
        "super" => {}
        name if files.contains_key(&[&at[..], &[name.to_owned()]].concat()) => {}
        _ => return None,
    }
    while let Some(name) = rest.first() {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => _ = at.pop(),
            name => {
                let below = [&at[..], &[name.to_owned()]].concat();
                if !files.contains_key(&below) {
                    let passed_on = files.get(&at).and_then(|file| file.passed_on.get(name)).filter(|_| depth < 8);
                    return passed_on.and_then(|path| lead(files, &at, path, depth + 1)).or(Some(at));
                }
                at = below;
            }
        }
        rest = &rest[1..];
    }
    Some(at)
}

/// Which file takes names from which, by the names of the files below `src` and their text.
fn arrows<'a>(sources: impl IntoIterator<Item = (&'a str, &'a str)>) -> Arrows {
    let module = |name: &str| -> Module {
        let path: Vec<&str> = name.trim_end_matches(".rs").split('/').collect();
        let is_above = path.last().is_some_and(|last| ["mod", "lib", "main"].contains(last));
        path[..path.len() - usize::from(is_above)].iter().map(|&name| name.to_owned()).collect()
    };
    let files: BTreeMap<Module, File> = sources.into_iter().map(|(name, text)| (module(name), read(text))).collect();
    let is_test = |module: &Module| {
        (0..module.len()).any(|i| files.get(&module[..i]).is_some_and(|file| file.tests.contains(&module[i])))
    };
    let mut arrows = Arrows::new();
    for (from, file) in files.iter().filter(|(from, _)| !is_test(from)) {
        let led = file.named.iter().filter_map(|path| lead(&files, from, path, 0));
        let to = led.filter(|to| !to.starts_with(from) && !from.starts_with(to) && !is_test(to)).collect();
        arrows.insert(from.clone(), to);
    }
    arrows
}

/// A shortest way round, if there is one.
fn circle(arrows: &Arrows) -> Option<String> {
    for start in arrows.keys() {
        let (mut before, mut queue) = (BTreeMap::new(), VecDeque::from([start]));
        while let Some(at) = queue.pop_front() {
            for to in arrows.get(at).into_iter().flatten() {
                if to == start {
                    let mut way = vec![to, at];
                    while let Some(&from) = before.get(way[way.len() - 1]) {
                        way.push(from);
                    }
                    way.reverse();
                    return Some(way.iter().map(|module| module.join("/")).collect::<Vec<_>>().join(" -> "));
                }
                if !before.contains_key(to) && to != start {
                    before.insert(to, at);
                    queue.push_back(to);
                }
            }
        }
    }
    None
}

/// The same between the modules below the root.
fn rooms(arrows: &Arrows) -> Arrows {
    let room = |module: &Module| module.first().map(|name| vec![name.clone()]);
    let mut rooms = Arrows::new();
    for (from, to) in arrows.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to))) {
        if let (Some(from), Some(to)) = (room(from), room(to))
            && from != to
        {
            rooms.entry(from).or_default().insert(to);
        }
    }
    rooms
}

#[test]
fn no_crate_has_a_circle_of_files_or_an_arrow_that_runs_back_up() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.lines().find_map(|line| line.strip_prefix("members = [")).unwrap();
    let mut count = 0;
    for member in members.split('"').skip(1).step_by(2) {
        let src = format!("{member}/src");
        let found = sources(&src);
        let arrows = arrows(found.iter().map(|(name, text)| (&name[src.len() + 1..], text.as_str())));
        count += arrows.values().map(BTreeSet::len).sum::<usize>();
        assert_eq!(circle(&arrows), None, "{src} has a circle of files");
        assert_eq!(circle(&rooms(&arrows)), None, "{src} has a circle of modules");
    }
    assert!(count > 500, "{count} arrows are too few: something is not read");
}

#[test]
fn circles_are_found_through_all_that_rust_writes() {
    let around = |lib: &str, a: &str, b: &str| circle(&arrows([("lib.rs", lib), ("a/mod.rs", a), ("b.rs", b)]));
    let both = "mod a;\nmod b;\n";
    for (a, b) in [
        ("use crate::b::B;", "use crate::a::A;"),
        ("use crate::{b::B, c};", "fn f(a: super::a::A) {}"),
        ("use crate::{\n    c,\n    b,\n};", "use super::a::{A as C, D};"),
    ] {
        assert_eq!(around(both, a, b).as_deref(), Some("a -> b -> a"), "{a} {b}");
        assert_eq!(around(both, a, "use crate::B;"), None);
    }
    // Through what the root passes on.
    let passing = "mod a;\nmod b;\npub use b::B;\npub(crate) use {a::{A, C}};\n";
    assert_eq!(around(passing, "use crate::B;", "use crate::C;").as_deref(), Some("a -> b -> a"));
    // Comments, tests, macros of other crates, and what a module has inside are none.
    assert_eq!(around(both, "// use crate::b::B;", "use crate::a::A;"), None);
    assert_eq!(around(both, "use crate::b::B;", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}"), None);
    assert_eq!(around(both, "$crate::b::B", "use crate::a::A;"), None);
    assert_eq!(around("mod a;\n#[cfg(test)]\nmod b;\n", "use crate::b::B;", "use crate::a::A;"), None);
    let inside = [("a/mod.rs", "mod c;\nuse c::C;"), ("a/c.rs", "use super::A;")];
    assert_eq!(circle(&arrows(inside)), None);
    let floors = ["a/mod.rs", "a/w.rs", "b/mod.rs", "b/y.rs"].map(|name| (name, ""));
    let crossed = arrows(floors.into_iter().chain([("a/x.rs", "use crate::b::y;"), ("b/z.rs", "use crate::a::w;")]));
    assert_eq!(circle(&crossed), None);
    assert_eq!(circle(&rooms(&crossed)).as_deref(), Some("a -> b -> a"));
}
