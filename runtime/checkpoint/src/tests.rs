use super::simulated::{Chance, Simulated};
use super::*;
use std::fs;

/// The bytes of a shard of a checkpoint.
fn bytes(number: u64, shard: u64) -> Vec<u8> {
    (0..700 + 400 * shard).map(|i| (i * 31 + number * 7 + shard) as u8).collect()
}

/// Writes the `number`-th checkpoint.
fn write_on(disk: &dyn Disk, root: &Path, number: u64) -> Result<Committed> {
    let draft = Draft::on(disk, root)?;
    let shards = (0..3).map(|shard| draft.shard(shard, |out| out.write_all(&bytes(number, shard))));
    let shards = shards.collect::<Result<Vec<_>>>()?;
    draft.commit(vec![("number".into(), number.to_string())], shards)
}

/// The number of the newest checkpoint, if there is one that can be read; checks its bytes.
fn newest_on(disk: &dyn Disk, root: &Path) -> Option<u64> {
    let found = Checkpoint::on(disk, root).ok()?;
    let number = found.fact("number").unwrap().parse().unwrap();
    for shard in 0..3 {
        assert_eq!(found.read_on(disk, shard as usize).ok()?, bytes(number, shard), "shard {shard} of {number}");
    }
    Some(number)
}

#[test]
fn a_crash_at_any_call_leaves_the_newest_checkpoint_that_was_done() {
    let root = Path::new("run");
    let mut crashes = 0;
    for call in 1.. {
        let mut was_reached = false;
        for seed in 0..40 {
            let disk = Simulated::new(Some((call, true)));
            let mut done = None;
            for number in 0..5 {
                match write_on(&disk, root, number) {
                    Ok(_) => done = Some(number),
                    Err(_) => break,
                }
            }
            was_reached |= disk.calls() >= call;
            let disk = disk.after_crash(&mut Chance(1000 * call + seed));
            let found = newest_on(&disk, root);
            // One that is whole counts, whether its writer has heard of it or not.
            assert!(found >= done, "call {call}, seed {seed}: {found:?} after {done:?}");
            crashes += 1;
            // And the run goes on.
            write_on(&disk, root, 9).unwrap();
            assert_eq!(newest_on(&disk, root), Some(9));
            let again = disk.after_crash(&mut Chance(seed));
            assert_eq!(newest_on(&again, root), Some(9));
        }
        if !was_reached {
            break;
        }
    }
    assert!(crashes > 1000, "{crashes}");
}

#[test]
fn a_call_that_fails_fails_one_checkpoint_and_no_other() {
    let root = Path::new("run");
    for call in 1.. {
        let disk = Simulated::new(Some((call, false)));
        let mut done = None;
        for number in 0..4 {
            let before = disk.calls();
            let written = write_on(&disk, root, number);
            let is_hit = (before + 1..=disk.calls()).contains(&call);
            assert!(is_hit || written.is_ok(), "call {call}: {written:?}");
            if written.is_ok() {
                done = Some(number);
            }
            // The fault may be met by reading, too: ask again then.
            let found = newest_on(&disk, root).max(newest_on(&disk, root));
            assert!(found >= done && found <= Some(number), "call {call}: {found:?} after {done:?}");
        }
        if disk.calls() < call {
            break;
        }
    }
}

/// A folder with two checkpoints.
fn two() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("checkpoint");
    for number in 0..2 {
        write_on(&System, &root, number).unwrap();
    }
    assert_eq!(newest_on(&System, &root), Some(1));
    (folder, root)
}

/// Checks that the newer of two checkpoints is passed over.
fn check_passed_over(root: &Path, what: &str) {
    let found = Checkpoint::newest(root).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!((found.epoch(), found.passed_over().len()), (0, 1), "{what}: {:?}", found.passed_over());
    assert!(found.passed_over()[0].contains(&name(1)), "{what}: {:?}", found.passed_over());
}

#[test]
fn a_checkpoint_of_which_any_bit_or_byte_is_gone_is_passed_over() {
    let (_folder, root) = two();
    let newest = root.join(name(1));
    for file in [file(0), MANIFEST.to_string()] {
        let path = newest.join(&file);
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            check_passed_over(&root, &format!("{length} bytes of {file}"));
        }
        for bit in 0..8 * whole.len() {
            let mut other = whole.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, other).unwrap();
            check_passed_over(&root, &format!("bit {bit} of {file}"));
        }
        fs::write(&path, [&whole[..], b"\0"].concat()).unwrap();
        check_passed_over(&root, &format!("a byte more in {file}"));
        fs::write(&path, vec![0; whole.len()]).unwrap();
        check_passed_over(&root, &format!("zeros in {file}"));
        fs::write(&path, whole).unwrap();
    }
    assert_eq!(newest_on(&System, &root), Some(1));
}

#[test]
fn shards_of_other_checkpoints_and_what_is_no_plain_file_are_passed_over() {
    let (folder, root) = two();
    let [old, newest] = [0, 1].map(|epoch| root.join(name(epoch)));
    let check = |what: &str, spoil: &dyn Fn(&Path)| {
        let path = newest.join(file(1));
        let whole = fs::read(&path).unwrap();
        spoil(&path);
        check_passed_over(&root, what);
        let is_folder = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        let removed = if is_folder { fs::remove_dir(&path) } else { fs::remove_file(&path) };
        drop(removed); // it may be what is missing
        fs::write(&path, whole).unwrap();
        assert_eq!(newest_on(&System, &root), Some(1), "{what}");
    };
    check("a shard of another epoch", &|path| fs::copy(old.join(file(1)), path).map(drop).unwrap());
    check("a shard twice", &|path| fs::copy(newest.join(file(0)), path).map(drop).unwrap());
    check("no shard", &|path| fs::remove_file(path).unwrap());
    check("a folder", &|path| fs::remove_file(path).and_then(|()| fs::create_dir(path)).unwrap());
    check("ten gigabytes of nothing", &|path| {
        fs::File::options().write(true).open(path).unwrap().set_len(10 << 30).unwrap()
    });
    #[cfg(unix)]
    check("a link to the same bytes", &|path| {
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(elsewhere, path).unwrap();
    });
    #[cfg(unix)]
    check("a pipe, which nobody fills", &|path| {
        fs::remove_file(path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    });
    // The manifest of another epoch, with its shards.
    let manifest = fs::read(newest.join(MANIFEST)).unwrap();
    for name in [MANIFEST.to_string(), file(0), file(1), file(2)] {
        fs::copy(old.join(&name), newest.join(&name)).unwrap();
    }
    check_passed_over(&root, "the manifest of another epoch");
    fs::write(newest.join(MANIFEST), manifest).unwrap();
    check_passed_over(&root, "the shards of another epoch");
}

#[cfg(unix)]
#[test]
fn a_link_is_no_checkpoint_and_nothing_behind_one_is_touched() {
    let (folder, root) = two();
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("kept"), "kept").unwrap();
    for epoch in ["epoch-00000000000000000099".to_string(), format!("{}{PARTIAL}", name(98))] {
        std::os::unix::fs::symlink(&elsewhere, root.join(epoch)).unwrap();
    }
    // A draft at which a link waits where it wants to write.
    std::os::unix::fs::symlink(elsewhere.join("new"), root.join("shard-000000")).unwrap();
    for number in 2..6 {
        write_on(&System, &root, number).unwrap();
    }
    assert_eq!(newest_on(&System, &root), Some(5));
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
    let draft = Draft::begin(&root).unwrap();
    std::os::unix::fs::symlink(elsewhere.join("new"), draft.folder().join(file(0))).unwrap();
    assert!(matches!(draft.shard(0, |out| out.write_all(b"x")), Err(Error::Write { .. })));
    drop(draft);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
}

#[test]
fn three_checkpoints_are_kept_and_what_others_left_is_not_ours() {
    let (_folder, root) = two();
    fs::create_dir_all(root.join("epoch-7")).unwrap();
    fs::create_dir_all(root.join(name(5) + PARTIAL)).unwrap();
    fs::write(root.join("notes"), "").unwrap();
    let epochs: Vec<u64> = (2..6).map(|number| write_on(&System, &root, number).unwrap().epoch).collect();
    assert_eq!(epochs, [6, 7, 8, 9], "a number that was begun is never given again");
    let mut names: Vec<_> =
        fs::read_dir(&root).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, [name(7), name(8), name(9), "epoch-7".into(), "notes".into()]);
}

#[test]
fn facts_that_nobody_would_read_fail_the_checkpoint_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    write_on(&System, folder.path(), 1).unwrap();
    let facts = vec![("note".to_string(), "x".repeat(manifest::MOST as usize))];
    let error = write(folder.path(), facts, 1, |_, out| out.write_all(&[1])).unwrap_err().to_string();
    assert!(error.contains("a manifest of 167773"), "{error}");
    assert_eq!(newest_on(&System, folder.path()), Some(1));
}

#[test]
fn a_draft_that_is_dropped_or_of_which_a_shard_is_too_large_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let draft = Draft::begin(folder.path()).unwrap();
    draft.shard(0, |out| out.write_all(b"x")).unwrap();
    drop(draft);
    let failed = write(folder.path(), Vec::new(), 3, |shard, _| match shard {
        1 => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    });
    let said = failed.unwrap_err().to_string();
    assert!(said.contains("shard-000001: no storage space"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let said = Checkpoint::newest(folder.path()).unwrap_err().to_string();
    assert!(said.ends_with("holds no checkpoint to go on from"), "{said}");
}
