//! Settings that are changed while a run goes on, of every example that has such.

use meshweft::conformance::gpu_or_skip;
use meshweft::{Backend, Cluster, Order};
use meshweft_command::{Entry, Kind, Options, Run, Settings};
use meshweft_mesh::generate::generate;
use meshweft_tests::example;

/// Settings by name.
type Set = &'static [(&'static str, &'static str)];

/// Examples with settings that choose another of their programs, and a mesh.
const CASES: [(&str, &str, Set); 11] = [
    ("heat", "torus:24x14", &[]),
    ("heat", "box:6", &[("method", "cg")]),
    ("heat", "box:6", &[("method", "explicit"), ("dt", "10")]),
    ("shallow-water", "sheet:14x9", &[]),
    ("airfoil", "airfoil:24x12", &[("rounds", "2")]),
    ("wave", "disk:10", &[]),
    ("spring", "box:7", &[]),
    ("cloth", "sheet:12", &[("wind", "3")]),
    ("softbody", "bar:9x3x3", &[("scene", "squeeze")]),
    ("xpbd", "bar:9x3x3", &[("scene", "squeeze")]),
    ("xpbd", "sheet:12", &[]),
];

/// An example, and its settings before and after a change of all that can be changed.
fn case(name: &str, set: Set, live: &[&str]) -> (&'static Entry, [Settings; 2]) {
    let entry = example(name);
    let mut before = Settings::new(entry.info.settings);
    set.iter().for_each(|(name, value)| before.set(entry.info.settings, name, value).unwrap());
    let mut after = before.clone();
    for setting in entry.info.settings.iter().filter(|setting| live.contains(&setting.name)) {
        let Kind::Number { range: [_, high], .. } = setting.kind else { panic!("{} is no number", setting.name) };
        let now = before.number(setting.name);
        let value = if now > 0.0 { 0.75 * now } else { (0.3_f64).min(high) };
        // What is not to be 0 takes what suits it, also after a change.
        if setting.name != "dt" || now > 0.0 {
            after.set(entry.info.settings, setting.name, &value.to_string()).unwrap();
        }
    }
    (entry, [before, after])
}

fn digest(run: &mut Run, steps: usize) -> String {
    (0..steps).for_each(|_| run.step().unwrap());
    run.digest().unwrap()
}

#[test]
fn a_run_that_is_changed_is_one_that_began_so_and_has_the_same_bits_everywhere() {
    for (name, spec, set) in CASES {
        let mesh = generate(spec, 3).unwrap();
        let options = |backend| Options { backend, order: Order::blocked(16), ..Options::default() };
        let (entry, [plain, _]) = case(name, set, &[]);
        let live = entry.start(mesh.clone(), &plain, &options(Backend::Serial)).unwrap().live();
        assert!(!live.is_empty(), "{name}");
        let (entry, [before, after]) = case(name, set, live);
        let start = |settings, backend| entry.start(mesh.clone(), settings, &options(backend)).unwrap();

        // All but the state is what it would have been.
        let mut changed = start(&before, Backend::Serial);
        changed.change(&after).unwrap();
        let begun = digest(&mut start(&after, Backend::Serial), 6);
        assert_eq!(digest(&mut changed, 6), begun, "{name} {set:?}");
        assert_ne!(begun, digest(&mut start(&before, Backend::Serial), 6), "{name} {set:?}: nothing was changed");

        let between = |mut run: Run| {
            digest(&mut run, 4);
            run.change(&after).unwrap();
            digest(&mut run, 4);
            run.change(&before).unwrap();
            digest(&mut run, 3)
        };
        let serial = between(start(&before, Backend::Serial));
        assert_eq!(between(start(&before, Backend::Cpu { threads: 3 })), serial, "{name} {set:?}");
        // The oracle beside it is changed too; on a GPU it judges each step.
        let mut backends = vec![Backend::Cpu { threads: 2 }];
        // Elements that move their corners do so on cores of this machine alone.
        if name != "xpbd" {
            let hosts = Backend::Cluster(Cluster::inside(2).unwrap());
            assert_eq!(between(start(&before, hosts)), serial, "{name} {set:?}, on hosts");
            backends.extend(gpu_or_skip());
        }
        for backend in backends {
            let verified = Options { verify: true, ..options(backend) };
            between(entry.start(mesh.clone(), &before, &verified).unwrap());
        }
    }
}

#[test]
fn what_changes_the_neighbors_is_refused() {
    let (entry, [before, mut after]) = case("cloth", &[], &[]);
    let mut run = entry.start(generate("sheet:5", 1).unwrap(), &before, &Options::default()).unwrap();
    after.set(entry.info.settings, "bend", "0").unwrap();
    assert!(run.change(&after).unwrap_err().to_string().contains("other neighbors"));
    assert_eq!(
        digest(&mut run, 3),
        digest(&mut entry.start(generate("sheet:5", 1).unwrap(), &before, &Options::default()).unwrap(), 3)
    );
}
