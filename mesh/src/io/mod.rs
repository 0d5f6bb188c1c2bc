//! Reads and writes mesh files.
//!
//! | format | read | write |
//! |---|---|---|
//! | Wavefront OBJ, `.obj` | yes | yes |
//! | PLY, `.ply` | ASCII, binary | binary |
//! | STL, `.stl` | ASCII, binary | |
//! | Gmsh 2, 4.0 and 4.1, `.msh` | ASCII, binary | |
//! | TetGen, `.node` and `.ele` | yes | |
//! | legacy VTK, `.vtk` | ASCII, binary | |
//! | VTU, `.vtu` | ASCII, binary, compressed | raw |
//! | VTK's structured grids, `.vti`, `.vtr`, `.vts` | ASCII, binary, compressed | |
//! | index of VTU files, `.pvtu` | | yes |
//! | lists of edges, `.el` and `.wel` | yes | |
//! | Matrix Market, `.mtx` | coordinate | |
//! | METIS's graphs, `.graph` | yes | |
//!
//! **Reading** trusts no file. Counts set aside no more memory than the bytes behind them can fill; what needs no bytes, such as
//! the points of a uniform grid, may be about a million in any file, and a few for each of its bytes. Indices and
//! coordinates are checked, and whatever is wrong is one [`Error`] with the line, the byte or the element. Numbers
//! become `f64`; integers above 2^53 are rounded. Points that no cell uses are kept, and so are the orders of points
//! and cells; of cells of higher order the corners are read. Each format's file says what it leaves out; what a reader
//! finds and leaves out although it may matter is a note of [`read_with`].
//!
//! **Writing** goes to a temporary file in the same folder that replaces the target at the end, so that neither an error
//! nor a stopped program leaves half a file under the name asked for.

mod binary;
mod bounds;
mod content;
mod draft;
mod format;
mod gmsh;
mod graph;
mod obj;
mod ply;
mod source;
mod stl;
mod temporary;
#[cfg(test)]
mod testing;
mod tetgen;
mod text;
mod vtk;
mod vtk_cells;
mod vtu;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

use self::draft::Draft;
use self::format::known;
use crate::error::{Error, Place, Result};
use crate::mesh::Mesh;

pub use format::Format;
pub use temporary::{probe, replace, sweep};

/// Reads a mesh file in the format that its extension names, or, where it has none, in the one that its first bytes show: so what
/// another program writes to `/dev/stdin` or to `<(…)` of a shell can be read, too.
///
/// `.node` and `.ele` files find each other by their name. Cost: the file is held in memory beside the mesh.
///
/// # Errors
/// An unknown extension, a file that cannot be read, or one that does not hold what its format promises.
///
/// ```
/// use meshweft_mesh::io;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("triangle.obj");
/// std::fs::write(&path, "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")?;
/// assert_eq!(io::read(&path)?.triangles(), [[0, 1, 2]]);
///
/// std::fs::write(&path, "v 0 0 0\nv 1 0 zero\n")?;
/// let error = io::read(&path).unwrap_err().to_string();
/// assert!(error.ends_with("triangle.obj:2: \"zero\" is not a finite coordinate"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(path: &Path) -> Result<Mesh> {
    read_with(path, &mut |_| {})
}

/// Reads a mesh file as [`read`] does, and passes `say` what the user may want to know meanwhile, line by line: what is
/// in the file and left out, and that a pipe has been silent for a second.
///
/// Devices are refused but for `/dev/null`, which is empty; a pipe may give 1 GiB.
///
/// # Errors
/// As [`read`].
///
/// ```
/// use meshweft_mesh::io;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("cloud.ply");
/// let header = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n";
/// std::fs::write(&path, format!("{header}element camera 1\nproperty float zoom\nend_header\n0 0 0\n7\n"))?;
/// let mut notes = Vec::new();
/// io::read_with(&path, &mut |note| notes.push(note.to_owned()))?;
/// assert!(notes[0].ends_with("cloud.ply:11: elements \"camera\" (1) are left out"), "{notes:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_with(path: &Path, say: &mut dyn FnMut(&str)) -> Result<Mesh> {
    let named = match Format::from_path(path) {
        // Before anything is read, unless the name has no extension.
        Err(error) if path.extension().is_some() => return Err(error),
        named => named,
    };
    if !matches!(named, Ok(Format::TetGen)) {
        let bytes = source::load(path, say)?;
        let unknown = || {
            let message = format!("neither an extension nor the first bytes show the format: can {}", known());
            Error::file(path, Place::Whole, message)
        };
        let format = named.or_else(|_| content::format(&bytes).ok_or_else(unknown))?;
        return draft(format, path, &bytes)?.finish(path, say);
    }
    let sibling = |wanted: &str, case: &str| match path.extension().and_then(OsStr::to_str) {
        Some(extension) if extension.eq_ignore_ascii_case(wanted) => path.to_owned(),
        Some(extension) if extension.chars().all(char::is_uppercase) => path.with_extension(case),
        _ => path.with_extension(wanted),
    };
    let (nodes, elements) = (sibling("node", "NODE"), sibling("ele", "ELE"));
    let (node_bytes, element_bytes) = (source::load(&nodes, say)?, source::load(&elements, say)?);
    tetgen::parse((&nodes, &node_bytes), Some((&elements, &element_bytes)))?.finish(&nodes, say)
}

/// Reads a mesh from `bytes`, the content of a file; `name` is used in messages alone.
///
/// The `.node` bytes of TetGen give the points without cells; [`parse_tetgen`] gives both.
///
/// # Errors
/// Bytes that do not hold what the format promises.
///
/// ```
/// use meshweft_mesh::io::{Format, parse};
/// let mesh = parse(Format::Obj, "triangle".as_ref(), b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")?;
/// assert_eq!(mesh.cells().len(), 1);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn parse(format: Format, name: &Path, bytes: &[u8]) -> Result<Mesh> {
    draft(format, name, bytes)?.finish(name, &mut |_| {})
}

/// The content of a file, with what there is to say about it.
fn draft(format: Format, name: &Path, bytes: &[u8]) -> Result<Draft> {
    match format {
        Format::Obj => obj::parse(name, bytes),
        Format::Ply => ply::parse(name, bytes),
        Format::Stl => stl::parse(name, bytes),
        Format::Gmsh => gmsh::parse(name, bytes),
        Format::TetGen => match name.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("ele") => Err(tetgen::half(name)),
            _ => tetgen::parse((name, bytes), None),
        },
        Format::Vtk => vtk::parse(name, bytes),
        Format::Vtu | Format::VtkGrid => vtu::parse(name, bytes),
        Format::EdgeList => graph::parse_edge_list(name, bytes, false),
        Format::WeightedEdgeList => graph::parse_edge_list(name, bytes, true),
        Format::MatrixMarket => graph::parse_matrix_market(name, bytes),
        Format::Metis => graph::parse_metis(name, bytes),
    }
}

/// Reads a mesh from the names and contents of TetGen's two files: points and cells.
///
/// # Errors
/// Bytes that do not hold what the format promises.
pub fn parse_tetgen(nodes: (&Path, &[u8]), elements: (&Path, &[u8])) -> Result<Mesh> {
    tetgen::parse(nodes, Some(elements))?.finish(nodes.0, &mut |_| {})
}

/// Writes a mesh file in the format that the extension of `path` names, replacing a file of that name.
///
/// VTU keeps everything: cells of all kinds, fields over points and cells, and groups, each as a cell array
/// `group.<dimension>.<name>` of zeros and ones. PLY keeps surfaces, edges and point fields; OBJ surfaces, edges and
/// vertex cells. A [dual](Mesh::dual) is written as the [cells that its vertices stand for](Mesh::written). Coordinates and fields keep all their bits in each: VTU has those in 32 bits that 32 bits hold, in blocks that zlib has shrunk.
///
/// # Errors
/// A format that cannot be written or cannot hold the cells, or a file that cannot be written. The file is then as it
/// was before.
///
/// ```
/// use meshweft_mesh::{CellKind, Cells, Mesh, io};
/// let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
/// let mesh = Mesh::new(points, Cells::of(CellKind::Tet, vec![0, 1, 2, 3]))?;
/// let folder = tempfile::tempdir()?;
/// io::write(&folder.path().join("tet.vtu"), &mesh)?;
/// assert_eq!(io::read(&folder.path().join("tet.vtu"))?, mesh);
///
/// let error = io::write(&folder.path().join("tet.ply"), &mesh).unwrap_err().to_string();
/// assert!(error.contains("cannot hold tet cells"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write(path: &Path, mesh: &Mesh) -> Result<()> {
    let (format, written) = (Format::from_path(path)?, mesh.written());
    let mesh = &*written;
    check(format, mesh).map_err(|message| Error::file(path, Place::Whole, message))?;
    replace(path, |out| fill(format, mesh, vtu::Form::Packed, out))?;
    Ok(())
}

/// Writes to `out` what [`write()`] writes to a file of that format; but in VTU all numbers have 64 bits and nothing is compressed, as pieces
/// of one mesh must be of one kind.
///
/// # Errors
/// As [`write()`], and those of `out`.
///
/// ```
/// use meshweft_mesh::{generate, io};
/// let sheet = generate::sheet(3, 3)?;
/// let mut bytes = Vec::new();
/// io::encode(io::Format::Vtu, &sheet, &mut bytes)?;
/// assert_eq!(io::parse(io::Format::Vtu, "sheet".as_ref(), &bytes)?, sheet);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn encode(format: Format, mesh: &Mesh, out: &mut dyn Write) -> io::Result<()> {
    let written = mesh.written();
    let mesh = &*written;
    check(format, mesh).map_err(io::Error::other)?;
    fill(format, mesh, vtu::Form::Plain, out)
}

/// Writes the index of a mesh that lies in several VTU files, a `.pvtu`, replacing a file of that name.
///
/// `like`: a mesh, perhaps without points, with the fields and groups that each of the pieces has, in the same order. `pieces`: their
/// files, as the folder of the index sees them.
///
/// # Errors
/// A field whose name XML cannot hold, or a file that cannot be written. The file is then as it was before.
///
/// ```
/// use meshweft_mesh::{Mesh, io};
/// let folder = tempfile::tempdir()?;
/// let index = folder.path().join("bar.pvtu");
/// io::write_index(&index, &Mesh::default(), &["bar.1.vtu".into(), "bar.2.vtu".into()])?;
/// assert!(std::fs::read_to_string(&index)?.contains("<Piece Source=\"bar.2.vtu\"/>"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_index(path: &Path, like: &Mesh, pieces: &[String]) -> Result<()> {
    check(Format::Vtu, like).map_err(|message| Error::file(path, Place::Whole, message))?;
    replace(path, |mut out| vtu::write_index(&mut out, like, pieces))?;
    Ok(())
}

/// What a format cannot hold of a mesh.
fn check(format: Format, mesh: &Mesh) -> Result<(), String> {
    if !format.can_write() {
        return Err(format!("this format can only be read: can {}", known()));
    }
    let solid = mesh.cells().iter().map(|(kind, _)| kind).find(|kind| kind.dimension() == 3);
    if let Some(kind) = solid.filter(|_| format != Format::Vtu) {
        return Err(format!(
            "this format cannot hold {} cells: write .vtu, or the surface alone: `Mesh::skin`, `meshweft convert --surface`",
            kind.name()
        ));
    }
    if mesh.points().len() > i32::MAX as usize && format == Format::Ply {
        return Err(format!("this format cannot hold {} points: write .vtu", mesh.points().len()));
    }
    if format == Format::Vtu { vtu::check_names(mesh) } else { Ok(()) }
}

/// Writes a mesh that the format can hold.
fn fill(format: Format, mesh: &Mesh, form: vtu::Form, mut out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Obj => obj::write(&mut out, mesh),
        Format::Ply => ply::write(&mut out, mesh),
        _ => vtu::write(&mut out, mesh, form),
    }
}

#[cfg(test)]
mod tests {
    use super::testing::mixed_surface;
    use super::*;
    use crate::mesh::{Field, Group};

    #[test]
    fn what_is_written_is_known_again() {
        for written in Format::ALL.into_iter().filter(|format| format.can_write()) {
            let mut bytes = Vec::new();
            encode(written, &mixed_surface(), &mut bytes).unwrap();
            assert_eq!(content::format(&bytes), Some(written));
        }
    }

    #[test]
    fn a_file_without_points_is_a_mesh_without_points() {
        let header = "ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\nproperty float y\nproperty float z\n";
        let ply = format!("{header}end_header\n");
        for (format, text) in [(Format::Obj, ""), (Format::Ply, &ply), (Format::TetGen, "0 3\n")] {
            assert_eq!(parse(format, Path::new("a"), text.as_bytes()).unwrap(), Mesh::default(), "{format:?}");
        }
    }

    #[test]
    fn texts_may_start_with_a_byte_order_mark() {
        let ply = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n\
            end_header\n1 2 3\n";
        let vtk = "# vtk DataFile Version 2.0\nt\nASCII\nDATASET POLYDATA\nPOINTS 1 float\n1 2 3\n";
        let gmsh = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n1\n1 1 2 3\n$EndNodes\n$Elements\n0\n$EndElements\n";
        let node = "1 3\n1 1 2 3\n";
        for (format, text) in [
            (Format::Ply, ply),
            (Format::Vtk, vtk),
            (Format::Gmsh, gmsh),
            (Format::TetGen, node),
            (Format::Obj, "v 1 2 3"),
        ] {
            let marked = format!("\u{feff}{text}");
            let mesh = parse(format, Path::new("a"), marked.as_bytes()).unwrap();
            assert_eq!(mesh.points(), [[1.0, 2.0, 3.0]], "{format:?}");
        }
    }

    #[test]
    fn long_names_and_control_characters_are_not_repeated_in_messages() {
        let name = format!("\u{1b}[31m{}", "x".repeat(5000));
        let said = |text: &str| parse(Format::Vtk, Path::new("a"), text.as_bytes()).unwrap_err().to_string();
        let head = "# vtk DataFile Version 2.0\nt\nASCII\nDATASET POLYDATA\nPOINTS 1 float\n0 0 0\nPOINT_DATA 1\n";
        let mut mesh = mixed_surface();
        for message in [
            said(&format!("{head}FIELD a 1\n{name} 1 2 float\n0 0\n")),
            said(&format!("{head}SCALARS {name} float 0\n")),
            said(&format!("{head}{name}\n")),
            mesh.set_point_field(Field { name: name.clone(), components: 0, values: vec![] }).unwrap_err().to_string(),
            mesh.add_group(Group { name: name.clone(), dimension: 2, cells: vec![99] }).unwrap_err().to_string(),
        ] {
            assert!(message.to_lowercase().contains("\\u{1b}[31mx") && message.len() < 300, "{message}");
        }
        mesh.set_point_field(Field { name, components: 1, values: vec![0.0; 5] }).unwrap();
        let error = encode(Format::Vtu, &mesh, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("\\u{1b}[31mx") && error.len() < 300, "{error}");
        assert_eq!(read(Path::new("\u{1b}.b\u{1b}")).unwrap_err().to_string().matches("\\u{1b}").count(), 3);
    }

    #[test]
    fn missing_files_and_folders_are_clear() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.obj");
        let error = read(&path).unwrap_err();
        assert!(matches!(error, Error::Io { .. }) && error.to_string().starts_with(&path.display().to_string()));
        std::fs::create_dir(&path).unwrap();
        assert!(read(&path).unwrap_err().to_string().ends_with("a folder is no mesh file"));
        std::fs::create_dir(folder.path().join("b.node")).unwrap();
        assert!(read(&folder.path().join("b.node")).unwrap_err().to_string().ends_with("a folder is no mesh file"));
    }

    #[test]
    #[cfg(unix)]
    fn devices_are_refused_but_the_empty_one() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let link = |name: &str, target: &str| {
            let path = folder.path().join(name);
            symlink(target, &path).unwrap();
            path
        };
        let error = read(&link("zero.obj", "/dev/zero")).unwrap_err().to_string();
        assert!(error.ends_with("zero.obj: a device is no mesh file"), "{error}");
        assert_eq!(read(&link("null.obj", "/dev/null")).unwrap(), Mesh::default());
    }

    #[test]
    #[cfg(unix)]
    fn a_silent_pipe_is_noted() {
        use std::process::Command;
        const TRIANGLE: &str = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.obj");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let mut said = Vec::new();
        let mut writer = None;
        // The writer starts at the note.
        let mesh = read_with(&path, &mut |note| {
            said.push(note.to_owned());
            let path = path.clone();
            writer = Some(std::thread::spawn(move || std::fs::write(path, TRIANGLE).unwrap()));
        });
        assert_eq!(mesh.unwrap().points().len(), 3);
        writer.unwrap().join().unwrap();
        assert_eq!(said, [format!("{}: waiting for another program to write to this pipe", path.display())]);
    }

    #[test]
    fn failed_writes_leave_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let count = || std::fs::read_dir(folder.path()).unwrap().count();
        let path = folder.path().join("a.vtu");
        std::fs::create_dir_all(path.join("full")).unwrap();
        let error = write(&path, &mixed_surface()).unwrap_err().to_string();
        assert!(error.starts_with(&path.display().to_string()), "{error}");
        let error = replace(&folder.path().join("b.vtu"), |out| {
            out.write_all(&[0; 10])?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(matches!(error, Err(Error::Io { .. })));
        assert!(write(&folder.path().join("none/a.vtu"), &mixed_surface()).is_err());
        assert!(
            write(&folder.path().join("a.stl"), &mixed_surface()).unwrap_err().to_string().contains("only be read")
        );
        assert_eq!(count(), 1);
    }

    #[test]
    fn writes_replace_and_are_readable_by_others() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.vtu", "a.PLY", "a.obj"] {
            let path = folder.path().join(name);
            std::fs::write(&path, "old").unwrap();
            write(&path, &mixed_surface()).unwrap();
            assert_eq!(read(&path).unwrap().points(), mixed_surface().points());
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                let plain = folder.path().join("plain");
                std::fs::write(&plain, "").unwrap();
                let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
                assert_eq!(mode(&path), mode(&plain));
            }
        }
    }
}
