//! The file formats, and the extensions that name them.

use std::path::Path;

use crate::error::{Error, Place, Result};

/// The file formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Wavefront OBJ: surfaces and lines.
    Obj,
    /// PLY: surfaces, lines and point clouds, with fields.
    Ply,
    /// STL: triangles without connectivity.
    Stl,
    /// Gmsh's mesh file, versions 2 to 4.1.
    Gmsh,
    /// The pair of files of TetGen: points in `.node`, cells in `.ele`.
    TetGen,
    /// VTK's legacy file, versions 2 to 5.1.
    Vtk,
    /// VTK's XML file of an unstructured grid.
    Vtu,
    /// VTK's XML file of an image, a rectilinear grid or a structured grid.
    VtkGrid,
    /// A graph, an edge `from to` a line.
    EdgeList,
    /// The same with a weight behind each edge.
    WeightedEdgeList,
    /// Matrix Market's file of a sparse matrix, read as a graph.
    MatrixMarket,
    /// METIS's file of a graph.
    Metis,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 12] = [
        Format::Obj,
        Format::Ply,
        Format::Stl,
        Format::Gmsh,
        Format::TetGen,
        Format::Vtk,
        Format::Vtu,
        Format::VtkGrid,
        Format::EdgeList,
        Format::WeightedEdgeList,
        Format::MatrixMarket,
        Format::Metis,
    ];

    /// The format that the extension of `path` names, in upper or lower case.
    ///
    /// # Errors
    /// An extension that names none; the message lists those that do.
    pub fn from_path(path: &Path) -> Result<Format> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        Format::ALL.into_iter().find(|format| format.extensions().contains(&&*extension)).ok_or_else(|| {
            let message = match extension.is_empty() {
                true => "a file without an extension is no mesh file".to_owned(),
                false => {
                    let shown: String = extension.chars().take(20).flat_map(char::escape_debug).collect();
                    format!(".{shown} is no mesh file")
                }
            };
            Error::file(path, Place::Whole, format!("{message}: can {}", known()))
        })
    }

    /// The extensions of the format, in lower case and without the dot.
    pub const fn extensions(self) -> &'static [&'static str] {
        match self {
            Format::Obj => &["obj"],
            Format::Ply => &["ply"],
            Format::Stl => &["stl"],
            Format::Gmsh => &["msh"],
            Format::TetGen => &["node", "ele"],
            Format::Vtk => &["vtk"],
            Format::Vtu => &["vtu"],
            Format::VtkGrid => &["vti", "vtr", "vts"],
            Format::EdgeList => &["el"],
            Format::WeightedEdgeList => &["wel"],
            Format::MatrixMarket => &["mtx"],
            Format::Metis => &["graph"],
        }
    }

    /// Whether [`write()`](super::write) knows it; [`read`](super::read) knows all.
    pub const fn can_write(self) -> bool {
        matches!(self, Format::Obj | Format::Ply | Format::Vtu)
    }
}

/// What can be read and written, for messages.
pub(super) fn known() -> String {
    let list = |formats: &mut dyn Iterator<Item = Format>| {
        formats.flat_map(Format::extensions).map(|e| format!(".{e}")).collect::<Vec<_>>().join(" ")
    };
    format!(
        "read {}; write {}",
        list(&mut Format::ALL.into_iter()),
        list(&mut Format::ALL.into_iter().filter(|f| f.can_write()))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_name_formats() {
        assert_eq!(Format::from_path(Path::new("a/B.VTU")).unwrap(), Format::Vtu);
        for path in ["a.xyz", "a", "", ".vtu"] {
            let error = Format::from_path(Path::new(path)).unwrap_err().to_string();
            let end = "can read .obj .ply .stl .msh .node .ele .vtk .vtu .vti .vtr .vts .el .wel .mtx .graph; \
                write .obj .ply .vtu";
            assert!(error.ends_with(end), "{error}");
        }
    }
}
