//! Workers that are started over ssh.
//!
//! Nothing is copied. Every host is asked first which version of the program it has, all at once, so that whatever is missing is
//! said in one go and before anything else is done. Then the worker is started by a second connection: the token goes through its
//! standard input, and that input ends when this process does, in whatever way, and the worker with it. The host `localhost` is this
//! machine, which takes no ssh.

use anyhow::{Result, bail};
use meshweft::Gathering;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Hosts by the names that ssh knows, and how to get there.
pub(super) struct Hosts {
    names: Vec<String>,
    ssh: Vec<String>,
    /// The program there.
    program: String,
}

/// This machine.
const HERE: &str = "localhost";

/// What the program of the same version answers to `--version`.
const VERSION: &str = concat!("meshweft ", env!("CARGO_PKG_VERSION"));

/// What is asked of ssh: to ask nothing back, and to give up on a host that is silent. Options before these win.
const OPTIONS: [&str; 8] =
    ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"];

impl Hosts {
    /// Reads names with commas between, and a command with its options. `program`: where it is on every host; left out, as this
    /// one was called.
    ///
    /// # Errors
    /// A name that is none, or that ssh or a shell would take for something else.
    pub(super) fn parse(names: &str, ssh: &str, program: Option<&str>) -> Result<Hosts> {
        let names: Vec<String> = names.split(',').map(|name| name.trim().to_string()).collect();
        if let Some(wrong) = names.iter().find(|name| !is_host(name)) {
            bail!(
                "--hosts: {wrong:?} is no host: write HOST or USER@HOST with commas between, or a name of ~/.ssh/config"
            );
        }
        let ssh: Vec<String> = ssh.split_whitespace().map(str::to_string).collect();
        if ssh.is_empty() {
            bail!("--ssh is empty: write a command such as ssh or \"ssh -p 2222\"");
        }
        let program = program.map_or_else(own_program, str::to_string);
        if program.is_empty() || program.contains(char::is_control) {
            bail!("--remote-program {program:?} is no path");
        }
        Ok(Hosts { names, ssh, program })
    }

    /// How many workers there will be.
    pub(super) fn count(&self) -> u32 {
        self.names.len() as u32
    }

    /// Asks all hosts at once whether they can take part.
    ///
    /// # Errors
    /// One line for each that cannot, with what it lacks.
    pub(super) fn check(&self) -> Result<()> {
        let mut names: Vec<&str> = self.names.iter().map(String::as_str).filter(|&name| name != HERE).collect();
        names.sort_unstable();
        names.dedup();
        let lacks: Vec<String> = std::thread::scope(|scope| {
            let ask = |&name| (name, scope.spawn(move || self.lack(name)));
            let asked: Vec<_> = names.iter().map(ask).collect();
            let lack = |(name, answer): (&str, std::thread::ScopedJoinHandle<Option<String>>)| {
                let lack = answer.join().unwrap_or_else(|_| Some("could not be asked".into()))?;
                Some(format!("\n  {name}: {lack}"))
            };
            asked.into_iter().filter_map(lack).collect()
        });
        if lacks.is_empty() {
            return Ok(());
        }
        bail!("{} of {} hosts cannot take part:{}", lacks.len(), names.len(), lacks.concat())
    }

    /// Starts a worker on every host.
    ///
    /// # Errors
    /// ssh, or this program, cannot be started.
    pub(super) fn start(&self, gathering: &mut Gathering) -> Result<()> {
        let work = ["worker", "--join", "-", "--until-eof"];
        for name in &self.names {
            let command = if name == HERE {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(work);
                command
            } else {
                self.command(name, &work.join(" "))
            };
            gathering.start(name, command)?;
        }
        Ok(())
    }

    /// Runs the program on a host. ssh gives the words to a shell there, which must not see more in the path than a path.
    fn command(&self, host: &str, arguments: &str) -> Command {
        let mut command = Command::new(&self.ssh[0]);
        command.args(&self.ssh[1..]).args(OPTIONS).arg(host).arg(format!("{} {arguments}", quote(&self.program)));
        command
    }

    /// What a host lacks.
    fn lack(&self, host: &str) -> Option<String> {
        match self.command(host, "--version").stdin(Stdio::null()).output() {
            Ok(output) => lack(&output, &self.program),
            Err(error) => Some(format!("{} cannot be started here: {error}", self.ssh[0])),
        }
    }
}

/// What a host lacks by its answer to `--version`.
fn lack(output: &Output, program: &str) -> Option<String> {
    let last = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it says nothing");
        line.chars().filter(|letter| !letter.is_control()).take(300).collect::<String>()
    };
    // A shell there may greet before.
    let is_right = String::from_utf8_lossy(&output.stdout).lines().any(|line| line.trim() == VERSION);
    match output.status.code() {
        Some(0) if is_right => None,
        Some(0) => {
            let found = last(&output.stdout);
            Some(format!("another version there, {found}, and {VERSION} here: copy this program there"))
        }
        Some(255) => Some(format!("cannot be reached: {}", last(&output.stderr))),
        Some(126 | 127) => {
            Some(format!("no program {program} there: copy this one there, or say with --remote-program where it is"))
        }
        _ => Some(format!("{program} --version fails there with {}: {}", output.status, last(&output.stderr))),
    }
}

/// The name of this program, as it was called.
pub(super) fn own_name() -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    Path::new(&called).file_name().map_or("meshweft".into(), |name| name.to_string_lossy().into_owned())
}

/// How this program was called: by its whole path, or else by its name alone.
fn own_program() -> String {
    let (called, name) = (std::env::args_os().next().unwrap_or_default(), own_name());
    if Path::new(&called).components().count() < 2 {
        return name;
    }
    let Ok(program) = std::env::current_exe() else { return name };
    let Some(launcher) = launcher(&program) else { return program.to_string_lossy().into_owned() };
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_found = std::env::split_paths(&folders).any(|folder| folder.join("meshweft") == launcher);
    if is_found { name } else { launcher.to_string_lossy().into_owned() }
}

/// What started this program, where an archive has it once for each level of processor (`examples/release`): another host may need
/// another level.
fn launcher(program: &Path) -> Option<PathBuf> {
    let prefix = program.ancestors().nth(4)?;
    let launcher = prefix.join("bin/meshweft");
    (program.starts_with(prefix.join("lib/meshweft")) && launcher.is_file()).then_some(launcher)
}

/// Whether ssh takes a word for a host and nothing else: not for an option, nor as words of a shell in its configuration.
fn is_host(word: &str) -> bool {
    let host = word.rsplit('@').next().unwrap_or_default();
    let is_plain = |letter: char| letter.is_alphanumeric() || "@.-_:[]%/".contains(letter);
    !word.starts_with('-') && !host.is_empty() && !host.starts_with('-') && word.chars().all(is_plain)
}

/// A word for a shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_and_nothing_else() {
        for right in ["a", "a,b", "me@a.example.org,me@a.example.org", "10.0.0.2", "me@fe80::1%eth0", "ssh://me@a:2222"]
        {
            assert!(Hosts::parse(right, "ssh", None).is_ok(), "{right}");
        }
        for wrong in
            ["", "a,,b", "-oProxyCommand=touch${IFS}x", "me@-oProxyCommand=x", "a;b", "a b", "$(x)", "a`x`", "me@"]
        {
            let error = Hosts::parse(wrong, "ssh", None).err().expect(wrong).to_string();
            assert!(error.contains("is no host"), "{error}");
        }
        assert!(Hosts::parse("a", "  ", None).is_err());
        assert!(Hosts::parse("a", "ssh", Some("")).is_err());
    }

    #[test]
    fn the_launcher_of_an_archive_is_what_other_hosts_start() {
        let prefix = tempfile::tempdir().unwrap();
        let folder = prefix.path().join("bin");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("meshweft"), "").unwrap();
        let found = |program: &str| launcher(&prefix.path().join(program));
        assert_eq!(found("lib/meshweft/v3/meshweft"), Some(folder.join("meshweft")));
        assert_eq!(found("target/release/deps/meshweft"), None);
        assert_eq!(launcher(&folder.join("meshweft")), None);
        assert_eq!(launcher(Path::new("/lib/meshweft/v3/meshweft")), None, "there is no launcher");
    }

    #[test]
    fn a_program_stays_one_word_for_the_shell_of_a_host() {
        let hosts = Hosts::parse("me@a", "ssh -p 2222", Some("/opt/it's here/$(x)")).unwrap();
        let command = hosts.command("me@a", "--version");
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(
            (&words[..2], &words[10..]),
            (
                &["-p".to_string(), "2222".to_string()][..],
                &["me@a".to_string(), r"'/opt/it'\''s here/$(x)' --version".to_string()][..]
            )
        );
        let told =
            Command::new("sh").args(["-c", &format!("printf %s {}", quote("it's $(x) `y` \\"))]).output().unwrap();
        assert_eq!(String::from_utf8(told.stdout).unwrap(), "it's $(x) `y` \\");
    }
}
