//! What is handed out beside the sources: the launcher of an archive, on processors that are made up, and versions in files that no compiler
//! reads.

use super::tidy::root;
use std::fs;

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

#[cfg(target_os = "linux")]
mod launcher {
    use super::{fs, read};
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::process::{Command, Output};
    use tempfile::TempDir;

    const V2: &str = "cx16 lahf_lm pni popcnt sse4_1 sse4_2 ssse3";
    const V3: &str = "abm avx avx2 bmi1 bmi2 f16c fma movbe";
    const V4: &str = "avx512bw avx512cd avx512dq avx512f avx512vl";

    /// An archive whose builds say their level and arguments, and exit with 7.
    struct Archive {
        folder: TempDir,
        program: PathBuf,
    }

    impl Archive {
        fn new(levels: &[&str]) -> Archive {
            let folder = tempfile::tempdir().unwrap();
            let archive = Archive { program: folder.path().join("a b/bin/meshweft"), folder };
            let launcher = read("examples/release/launcher.sh");
            assert_eq!(launcher.matches(" </proc/cpuinfo").count(), 1);
            let told = archive.folder.path().join("cpuinfo");
            archive.executable("a b/bin/meshweft", &launcher.replace("/proc/cpuinfo", told.to_str().unwrap()));
            for level in levels {
                let build = format!("#!/bin/sh\nprintf '%s|' {level} \"$@\"\nexit 7\n");
                archive.executable(&format!("a b/lib/meshweft/{level}/meshweft"), &build);
            }
            archive
        }

        /// Written by another process: a file that is open for writing cannot be executed, and whatever other tests start has all files of this
        /// process open for a moment.
        fn executable(&self, name: &str, text: &str) {
            let draft = self.folder.path().join("draft");
            fs::write(&draft, text).unwrap();
            let mut install = Command::new("install");
            assert!(install.arg("-D").arg(draft).arg(self.folder.path().join(name)).status().unwrap().success());
        }

        /// Runs on a processor with these flags.
        fn on(&self, flags: &str) -> &Archive {
            let core = format!(
                "processor\t: 0\nmodel name\t: X: flags\nvmx flags\t: ept\nflags\t\t: fpu {flags}\nbugs\t\t: \n\n"
            );
            fs::write(self.folder.path().join("cpuinfo"), core.repeat(2)).unwrap();
            self
        }

        fn run(&self, arguments: &[&str]) -> Output {
            Command::new(&self.program).env_remove("MESHWEFT_LEVEL").args(arguments).output().unwrap()
        }

        fn asked_for(&self, level: &str) -> Output {
            Command::new(&self.program).env("MESHWEFT_LEVEL", level).output().unwrap()
        }
    }

    /// The build started, as it must be, and nothing else said.
    fn started(output: Output) -> String {
        assert_eq!((output.status.code(), &output.stderr[..]), (Some(7), &b""[..]), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The one line that is said when none is started.
    fn refused(output: Output) -> String {
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b""[..]), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
        said
    }

    #[test]
    fn the_best_level_that_a_processor_has_whole_is_started() {
        let all = [V2, V3, V4].join(" ");
        let without = |flag: &str| all.split(' ').filter(|&other| other != flag).collect::<Vec<_>>().join(" ");
        let archive = Archive::new(&["v2", "v3", "v4"]);
        assert_eq!(started(archive.run(&[])), "v2|", "nothing tells which it is");
        let level = |flags: &str| started(archive.on(flags).run(&[]));
        assert_eq!(level(&all), "v4|");
        assert_eq!(level(&[V2, V4].join(" ")), "v2|", "a level has those below it");
        V4.split(' ').for_each(|flag| assert_eq!(level(&without(flag)), "v3|", "{flag}"));
        V3.split(' ').for_each(|flag| assert_eq!(level(&without(flag)), "v2|", "{flag}"));
        for flag in V2.split(' ') {
            let said = refused(archive.on(&without(flag)).run(&[]));
            assert!(said.contains(&format!("lacks {flag}:")) && said.contains("from source"), "{said}");
        }
    }

    #[test]
    fn arguments_and_exit_code_pass_unchanged() {
        let archive = Archive::new(&["v2"]);
        let arguments = ["run", "a b", "", "*", "$HOME", "-n", "it's \"so\"", "\\n"];
        assert_eq!(started(archive.on(V2).run(&arguments)), format!("v2|{}|", arguments.join("|")));
    }

    #[test]
    fn it_is_found_by_a_link_and_on_the_path() {
        let archive = Archive::new(&["v2"]);
        let link = archive.folder.path().join("link");
        symlink(&archive.program, &link).unwrap();
        assert_eq!(started(Command::new(link).env_remove("MESHWEFT_LEVEL").output().unwrap()), "v2|");
        let path = format!("{}:{}", archive.program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec meshweft x"]).env("PATH", path).env_remove("MESHWEFT_LEVEL");
        assert_eq!(started(shell.output().unwrap()), "v2|x|");
    }

    #[test]
    fn a_level_may_be_asked_for_and_what_is_not_there_is_an_error() {
        let whole = Archive::new(&["v2", "v3", "v4"]);
        whole.on(&[V2, V3].join(" "));
        assert_eq!(started(whole.asked_for("v2")), "v2|");
        assert_eq!(started(whole.asked_for("")), "v3|");
        assert!(refused(whole.asked_for("v4")).contains("lacks avx512bw"));
        assert!(refused(whole.asked_for("v9")).contains("level v9"));
        let some = Archive::new(&["v3"]);
        assert_eq!(started(some.on(&[V2, V3, V4].join(" ")).run(&[])), "v3|");
        assert!(refused(some.on(V2).run(&[])).contains("lacks abm"));
        assert!(refused(Archive::new(&[]).on(V2).run(&[])).contains("belong beside each other"));
    }

    #[test]
    fn levels_are_those_of_archives_and_of_the_python_package() {
        let launcher = read("examples/release/launcher.sh");
        for (level, flags) in [("v2", V2), ("v3", V3), ("v4", V4)] {
            assert!(launcher.contains(&format!("\n{flags} ={level}")), "{level}");
        }
        assert!(read("examples/release/archive.sh").contains("${LEVELS:-v2 v3 v4}"));
        let python = read("runtime/python/meshweft/_levels.py");
        for flags in [V3, V4] {
            assert!(python.contains(&format!("{{\"{}\"}}", flags.replace(' ', "\", \""))), "{flags}");
        }
    }
}

#[test]
fn versions_in_files_that_no_compiler_reads_are_those_of_the_workspace() {
    let version = concat!("registry.example.org/meshweft:", env!("CARGO_PKG_VERSION"));
    for name in ["examples/release/Dockerfile", "docs/guide/run-on-a-lan.md"] {
        let text = read(name);
        assert!(text.contains(version), "{name} names no image {version}");
        assert_eq!(text.matches("registry.example.org/meshweft:").count(), text.matches(version).count(), "{name}");
    }
    let rust = concat!("rust:", env!("CARGO_PKG_RUST_VERSION"), "-");
    assert!(read("examples/release/Dockerfile").contains(rust), "the image is built with the oldest Rust that will do");
}
