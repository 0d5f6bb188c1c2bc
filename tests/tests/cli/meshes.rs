//! Meshes that commands read, describe and convert.

use super::*;

#[test]
fn info_describes_mesh_and_graph() {
    let report = json(&["info", "box:4", "--json"]);
    assert_eq!((report["vertices"].as_u64(), report["cells"]["tet"].as_u64()), (Some(64), Some(162)));
    assert_eq!((report["components"].as_u64(), report["boundary_vertices"].as_u64()), (Some(1), Some(56)));
    let cut = |curve: &str, parts: &str| report["curves"][curve]["cut_share"][parts].as_f64().unwrap();
    assert!(cut("hilbert", "2") < cut("hilbert", "64"));
    assert!(cut("morton", "2") > 0.0);
    let text = good(&["info", "bar:3"]);
    assert!(text.contains("left (2D") && text.contains("tets") && text.contains("reach, hilbert"), "{text}");
}

#[cfg(unix)]
#[test]
fn meshes_come_through_pipes_without_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    good(&["convert", "box:3", &path("a.vtu")]);
    let pipe = path("63");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let info = |bytes: Vec<u8>| {
        let pipe = pipe.clone();
        let writer = std::thread::spawn(move || std::fs::write(pipe, bytes));
        let ended = meshweft(&["info", &path("63")]);
        writer.join().unwrap().unwrap();
        ended.out + &ended.err
    };
    let told = info(std::fs::read(path("a.vtu")).unwrap());
    assert!(told.contains("48 tets"), "{told}");
    let told = info(b"1 2\n".to_vec());
    assert!(told.contains("neither an extension nor the first bytes"), "{told}");
}

#[test]
fn convert_writes_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let to = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    assert!(good(&["convert", "box:3", &to("a.vtu")]).contains("27 points, 48 tets"));
    let (a, b) = (io::read(Path::new(&to("a.vtu"))).unwrap(), meshweft_mesh::generate::generate("box:3", 1).unwrap());
    assert_eq!(a, b);
    assert!(good(&["convert", "sheet:3", &to("a.ply")]).contains("8 triangles"));
    assert!(good(&["convert", &to("a.ply"), &to("a.obj")]).contains("9 points"));
    assert_eq!(names(folder.path()), ["a.obj", "a.ply", "a.vtu"]);

    bad(&["convert", &to("a.vtu"), &to("b.ply")], "`meshweft convert --surface`");
    assert!(good(&["convert", &to("a.vtu"), &to("b.ply"), "--surface"]).contains("26 points, 48 triangles"));
    assert_eq!(io::read(Path::new(&to("b.ply"))).unwrap(), b.skin());
    bad(&["convert", "chain:5", &to("c.ply"), "--surface"], "chain:5 has no surface");
}

#[test]
fn a_mesh_in_millimeters_is_noticed_and_scaled() {
    let folder = tempfile::tempdir().unwrap();
    let to = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    good(&["convert", "sheet:4", &to("part.obj"), "--scale", "1000"]);
    let run = |mesh: &str| {
        let ended =
            meshweft(&["run", "heat", "--mesh", mesh, "--steps", "1", "--no-pictures", "--quiet", "--out", &to("out")]);
        assert_eq!(ended.code, 0, "{}", ended.err);
        ended.err
    };
    let said = run(&to("part.obj"));
    let wanted = format!("convert {} {} --scale 0.001`", to("part.obj"), to("part.m.vtu"));
    assert!(said.contains("the mesh is 1000 m wide; if it is in mm") && said.contains(&wanted), "{said}");
    good(&["convert", &to("part.obj"), &to("part.m.vtu"), "--scale", "0.001"]);
    assert_eq!(io::read(Path::new(&to("part.m.vtu"))).unwrap().bounds(), [[0.0; 3], [1.0, 1.0, 0.0]]);
    assert!(!run(&to("part.m.vtu")).contains("wide"));
    // What is generated is as large as it says.
    assert!(!run("sheet:4").contains("wide"));
    bad(&["convert", "sheet:4", &to("a.vtu"), "--scale", "0"], "take a number above 0");
    bad(&["convert", "sheet:4", &to("a.glb"), "--scale", "2"], "--scale is for files of meshes");
}

#[test]
fn states_have_the_fields_that_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let run =
        [&["run", "wave", "--mesh", "disk:6", "--steps", "2", "--no-pictures", "--quiet", "--out", out][..]].concat();
    let left = |file: &str| {
        let mesh = io::read(&folder.path().join(file)).unwrap();
        mesh.point_fields().iter().map(|field| field.name.clone()).collect::<Vec<_>>()
    };
    let fields = |more: &[&str]| {
        good(&[&run[..], more].concat());
        left("wave_000002.vtu")
    };
    assert_eq!(fields(&["--fields", "velocity,displacement"]), ["displacement", "velocity"]);
    assert!(fields(&[]).len() > 2);
    // A program may choose, and the user has all the same.
    let solve =
        ["run", "elasticity", "--mesh", "bar:5x3x3", "--set", "degree=1", "--no-pictures", "--quiet", "--out", out];
    good(&solve);
    assert_eq!(left("elasticity_000001.vtu"), ["displacement", "stress", "von_mises"]);
    good(&[&solve[..], &["--fields", "all"]].concat());
    let all = left("elasticity_000001.vtu");
    assert!(
        all.len() > 3 && ["displacement", "missing"].iter().all(|name| all.contains(&(*name).to_string())),
        "{all:?}"
    );
    let wrong = |more: &[&str], message: &str| bad(&[&run[..], more].concat(), message);
    wrong(&["--fields", "speed"], "unknown field \"speed\": there are displacement, velocity");
    wrong(&["--fields", "velocity", "--pieces"], "cannot be used with");
    wrong(&["--fields", "velocity", "--copies", "2"], "cannot be used with");
}

#[test]
fn models_have_the_states_of_a_run_and_its_colors() {
    let folder = tempfile::tempdir().unwrap();
    let to = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let head = |name: &str| -> serde_json::Value {
        let bytes = std::fs::read(to(name)).unwrap();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!((&bytes[..4], word(8)), (&b"glTF"[..], bytes.len()));
        serde_json::from_slice(&bytes[20..20 + word(12)]).unwrap()
    };
    let run = |example: &str| {
        let words = ["--mesh", "sheet:5", "--steps", "6", "--every", "2", "--quiet", "--out", &to("a b")];
        good(&[&["run", example][..], &words].concat())
    };
    let (told, gif, mp4) = (run("cloth"), to("a b/cloth.gif"), to("a b/cloth.mp4"));
    assert!(told.contains(&format!("ffmpeg -i '{gif}'")) && told.contains(&format!("'{mp4}'")), "{told}");
    run("heat");
    let (cloth, heat) = (to("a b/cloth.pvd"), to("a b/heat.pvd"));
    let told = good(&["convert", &cloth, &to("cloth.glb")]);
    assert!(told.contains("25 points, 32 triangles, 4 of 4 states in 5.00 s"), "{told}");
    assert_eq!(head("cloth.glb")["meshes"][0]["primitives"][0]["targets"].as_array().unwrap().len(), 3);
    assert!(good(&["convert", &heat, &to("h.glb")]).contains("one state alone, as nothing moves: --color FIELD"));
    assert!(good(&["convert", &heat, &to("h.glb"), "--colour", "temperature"]).contains("4 of 4 states"));
    assert!(head("h.glb")["meshes"][0]["primitives"][0]["targets"][2]["COLOR_0"].is_u64());
    assert!(good(&["convert", "box:3", &to("box.GLB")]).contains("26 points, 48 triangles\n"));
    bad(&["convert", &heat, &to("x.glb"), "--color", "cold"], "no field \"cold\" to color by: one of temperature");
    bad(&["convert", &heat, &to("x.vtu")], "a series of states goes into a .glb");
    bad(&["convert", "box:3", &to("x.vtu"), "--color", "a"], "--color is for a .glb");
}

#[test]
fn what_a_file_loses_is_said_and_a_file_without_points_refused() {
    let folder = tempfile::tempdir().unwrap();
    let header = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n\
        element face 1\nproperty list uchar int vertex_indices\nelement camera 1\nproperty float zoom\nend_header\n";
    let ply = write(&folder, "a.ply", &format!("{header}0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n7\n"));
    let obj = folder.path().join("a.obj");
    for arguments in [&["info", &*ply][..], &["convert", &ply, obj.to_str().unwrap()]] {
        let ended = meshweft(arguments);
        assert_eq!(ended.err, format!("note: {ply}:16: elements \"camera\" (1) are left out\n"));
        assert_eq!(ended.code, 0);
    }
    let empty = write(&folder, "empty.obj", "");
    let says = format!("{empty} holds no points");
    bad(&["info", &empty], &says);
    bad(&["run", "heat", "--mesh", &empty], &says);
    bad(&["bench", "heat", "--mesh", &empty], &says);
    bad(&["convert", &empty, obj.to_str().unwrap()], &says);
}

#[test]
fn names_in_a_file_do_not_reach_the_terminal_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("\u{1b}[31m{}", "x".repeat(5000));
    let header = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n";
    let ply = write(&folder, "a.ply", &format!("{header}property float {name}\nend_header\n0 0 0 1\n"));
    let text = good(&["info", &ply]);
    let line = text.lines().find(|line| line.starts_with("point fields")).unwrap();
    assert!(line.contains("\\u{1b}[31mxxx") && line.len() < 120 && !text.contains('\u{1b}'), "{line:?}");
    let ply = write(&folder, "b.ply", &format!("{header}property {name} a\nend_header\n0 0 0 1\n"));
    let ended = meshweft(&["info", &ply]);
    assert!(ended.err.contains("\\u{1b}[31mxxx") && ended.err.len() < 300, "{:?}", ended.err);
}

#[test]
#[cfg(target_os = "linux")]
fn a_mesh_may_have_a_name_that_is_not_utf_8() {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let [obj, vtu] = [&b"\xff.obj"[..], b"\xfe.vtu"].map(|name| folder.path().join(OsStr::from_bytes(name)));
    std::fs::write(&obj, "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n").unwrap();
    let out = folder.path().join("out");
    let run = |words: &[&OsStr]| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let arguments = [OsString::from("meshweft")].into_iter().chain(words.iter().map(OsString::from));
        let code = cli::run(&PROGRAMS, arguments, &mut Console::new(&mut out, &mut err));
        assert_eq!(code, 0, "{}", String::from_utf8_lossy(&err));
    };
    run(&["info".as_ref(), obj.as_os_str()]);
    run(&["convert".as_ref(), obj.as_os_str(), vtu.as_os_str()]);
    let words = ["run", "heat", "--no-pictures", "--quiet", "--steps", "1", "--mesh"].map(OsStr::new);
    run(&[&words[..], &[vtu.as_os_str(), "--out".as_ref(), out.as_os_str()]].concat());
}
