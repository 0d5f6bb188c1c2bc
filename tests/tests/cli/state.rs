//! Runs that start from a state of an earlier one.

use super::*;

#[test]
fn a_run_goes_on_from_the_fields_of_a_state() {
    let folder = tempfile::tempdir().unwrap();
    for (example, spec) in
        [("heat", "torus:24x14"), ("wave", "disk:10"), ("shallow-water", "quads:31x13"), ("spring", "box:6")]
    {
        let run = |folder: &Path, more: &[&str]| {
            let out = folder.to_str().unwrap();
            let words = ["run", example, "--mesh", spec, "--no-pictures", "--json", "--quiet", "--out", out];
            json(&[&words, more].concat())["digest"].clone()
        };
        let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
        let whole = run(&first, &["--steps", "4", "--every", "2", "--fields", "all"]);
        let state = first.join(format!("{example}_000002.vtu"));
        let state = state.to_str().unwrap();
        assert_eq!(run(&second, &["--steps", "2", "--from", state, "--verify"]), whole, "{example}");
        assert_ne!(run(&second, &["--steps", "2"]), whole, "{example}");
    }
}

#[test]
fn a_run_says_what_it_takes_of_a_state_and_what_it_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let run = |example: &str, more: &[&str]| {
        meshweft(&[&["run", example, "--steps", "1", "--no-pictures", "--quiet", "--out", out], more].concat())
    };
    assert_eq!(run("cloth", &["--mesh", "sheet:8", "--fields", "velocity"]).code, 0);
    let state = folder.path().join("cloth_000001.vtu");
    let kept = folder.path().join("kept.vtu");
    std::fs::rename(&state, &kept).unwrap();
    let kept = kept.to_str().unwrap();
    let ended = run("cloth", &["--mesh", "sheet:8", "--from", kept]);
    assert!(ended.code == 0 && ended.err.contains("starting from position, velocity of "), "{}", ended.err);
    assert!(ended.err.contains("; as at every start: "), "{}", ended.err);
    // What a reader of graphs has numbered itself is no state.
    let graph =
        write(&folder, "ring.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n2 1 1\n3 2 1\n3 1 1\n");
    let ended = run("sssp", &["--mesh", &graph]);
    assert!(ended.code == 0 && !ended.err.contains("is a state"), "{}", ended.err);
    let ended = run("cloth", &["--mesh", kept]);
    assert!(
        ended.code == 0 && ended.err.contains("is a state, with velocity: the run starts anew on its shape"),
        "{}",
        ended.err
    );
    bad(&["run", "heat", "--mesh", "sheet:8", "--copies", "3", "--out", out, "--from", kept], "--from is of one run");
    for (example, spec, says) in [
        ("cloth", "sheet:9", "it has 64 points, and the run 81: give the --mesh and the settings"),
        ("heat", "sheet:8", "it has no field of this run, which are temperature"),
        ("cloth", "sheet:8", "no such file"),
    ] {
        let from = if says == "no such file" { "missing.vtu" } else { kept };
        let ended = run(example, &["--mesh", spec, "--from", from]);
        let is_said = ended.err.to_lowercase().contains(&says.to_lowercase());
        assert!(ended.code != 0 && ended.err.contains("cannot start from") && is_said, "{}", ended.err);
    }
}
