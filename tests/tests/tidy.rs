//! Rules that the sources keep, checked by reading them.

use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the project").to_owned()
}

/// Source files below a folder, or one by itself, with their text.
pub fn sources(place: &str) -> Vec<(String, String)> {
    files(place, "rs")
}

/// Files of an extension, likewise; none that are hidden, or in a folder of what was built.
fn files(place: &str, extension: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut places = vec![root().join(place)];
    while let Some(path) = places.pop() {
        if path.is_dir() {
            let is_left_out = |name: &str| name.starts_with('.') || name == "target";
            let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap());
            let entries = entries.filter(|entry| !is_left_out(&entry.file_name().to_string_lossy()));
            places.extend(entries.map(|entry| entry.path()));
        } else if path.extension().is_some_and(|e| e == extension) {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            found.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(!found.is_empty(), "{place} has .{extension} files");
    found
}

#[test]
fn unsafe_code_lives_where_it_is_justified() {
    for folder in ["mesh", "shaders", "runtime", "examples"] {
        for (name, text) in sources(folder) {
            let code = text.lines().filter(|l| !l.trim_start().starts_with("//"));
            let found = code.filter(|l| l.contains("unsafe {") || l.contains("unsafe impl") || l.contains("unsafe fn"));
            // State that threads write at once, and those who promise that they take turns at it; machine code; and vector loads.
            let cpu = [
                "memory/mod",
                "memory/cells",
                "mod",
                "native",
                "walk",
                "measures",
                "relaxation/search",
                "relaxation/taker",
            ];
            let allowed = cpu.map(|file| format!("runtime/src/engine/cpu/{file}.rs"));
            let others = ["runtime/src/engine/native/mod.rs", "runtime/src/number/lanes.rs"];
            assert!(found.count() == 0 || allowed.contains(&name) || others.contains(&&*name), "{name}");
        }
    }
}

#[test]
fn nothing_in_results_depends_on_hashing_fusing_or_parallel_sums() {
    for folder in [
        "mesh",
        "runtime",
        "examples/src/heat",
        "examples/src/wave",
        "examples/src/shallow_water",
        "examples/src/airfoil",
        "examples/src/spring",
        "examples/src/cloth",
        "examples/src/softbody",
        "examples/src/xpbd",
    ] {
        // Readers look tags of a file up by hash; they never go through them in that order.
        for (name, text) in sources(folder).into_iter().filter(|(name, _)| !name.starts_with("mesh/src/io/")) {
            for word in ["HashMap", "HashSet", ".mul_add(", "par_iter().sum", "RandomState"] {
                assert!(!text.contains(word), "{name} has {word}");
            }
        }
    }
}

#[test]
fn layers_do_not_know_what_is_above_them() {
    let absent = [
        ("mesh/src", &["meshweft::", "wgpu", "tokio"][..]),
        ("runtime/src/number", &["crate::engine", "crate::simulation", "crate::layout", "crate::program"]),
        ("runtime/src/program", &["crate::engine", "crate::simulation", "crate::layout", "crate::trace"]),
        ("runtime/schedule/src", &["Instant", "available_parallelism", "std::thread", "std::net"]),
        ("runtime/src/engine", &["std::fs", "std::net", "wgpu"]),
        ("runtime/model/src", &["Instant", "std::fs", "std::net"]),
        ("runtime/src/step.rs", &["crate::engine", "crate::layout", "crate::program", "Instant"]),
        ("runtime/net/src", &["meshweft::", "meshweft_mesh", "meshweft_shaders", "wgpu"]),
        ("runtime/src/trace", &["crate::engine", "crate::layout", "crate::gpu", "wgpu"]),
        ("runtime/src/gpu/plan", &["wgpu"]),
        ("shaders/src", &["wgpu", "meshweft_mesh", "meshweft::"]),
        ("runtime/physics/src", &["Simulation", "std::fs", "Stages", "kernels!"]),
        ("examples/picture/src", &["meshweft::", "meshweft_command"]),
        ("examples/view/src", &["meshweft::", "meshweft_command"]),
        ("examples/command/src", &["meshweft_examples", "heat", "cloth", "softbody", "xpbd", "pagerank", "sssp"]),
    ];
    for (folder, words) in absent {
        for (name, text) in sources(folder) {
            for word in words {
                assert!(!text.contains(word), "{name} has {word}");
            }
        }
    }
}

#[test]
fn every_claim_names_tests_that_exist() {
    let claims = fs::read_to_string(root().join("docs/claims.md")).unwrap();
    let tests: String =
        ["tests", "mesh/src", "runtime", "examples"].iter().flat_map(|f| sources(f)).map(|s| s.1).collect();
    let mut cited = 0;
    for name in claims.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("fn ")) {
        assert!(tests.contains(&format!("fn {name}(")), "docs/claims.md cites the test {name}, which does not exist");
        cited += 1;
    }
    assert!(cited >= 6, "docs/claims.md cites its tests as `fn name`");
}

#[test]
fn links_and_pictures_of_documents_lead_somewhere() {
    let mut links = 0;
    for (name, text) in files("", "md") {
        let document = root().join(&name);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next()) {
            let path = link.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains(':') {
                continue;
            }
            links += 1;
            assert!(document.with_file_name(path).exists(), "{name}: {link} leads nowhere");
        }
    }
    assert!(links > 100, "{links} links");
}

#[test]
fn the_top_level_holds_what_it_should() {
    let mut names: Vec<String> = fs::read_dir(root())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| !n.starts_with('.') && !["target", "out"].contains(&n.as_str()) && !n.starts_with("LICENSE"))
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["Cargo.lock", "Cargo.toml", "README.md", "docs", "examples", "mesh", "runtime", "shaders", "tests"]
    );
}
