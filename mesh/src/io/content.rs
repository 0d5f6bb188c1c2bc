//! The format of bytes without a file name, such as those of a pipe.

use super::format::Format;
use super::text::BYTE_ORDER_MARK;
use super::{obj, stl};

/// The format that the first bytes of a file show; none if they are numbers, which mean something else in each format.
pub(super) fn format(bytes: &[u8]) -> Option<Format> {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).trim_ascii_start();
    let starts = |word: &[u8]| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let marks: [(&[u8], Format); 7] = [
        (b"ply", Format::Ply),
        (b"$MeshFormat", Format::Gmsh),
        (b"# vtk DataFile", Format::Vtk),
        (b"<?xml", Format::Vtu),
        (b"<VTKFile", Format::Vtu),
        (b"%%MatrixMarket", Format::MatrixMarket),
        (b"solid", Format::Stl),
    ];
    match marks.into_iter().find(|(mark, _)| starts(mark)) {
        // Some binary ones start with that word, too, and the reader sees to that.
        Some((_, format)) => Some(format),
        None if stl::fits(bytes) => Some(Format::Stl),
        None => {
            let mut lines = text.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
            let line = lines.find(|line| !line.is_empty() && line[0] != b'#')?;
            let word = line.split(u8::is_ascii_whitespace).next()?;
            obj::is_keyword(word).then_some(Format::Obj)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_show_the_format() {
        let stl = [&[b' '; 80][..], &1u32.to_le_bytes(), &[0; 50]].concat();
        let cases: [(&[u8], Option<Format>); 14] = [
            (b"\xef\xbb\xbf# by hand\n\n  v 0 0 0\n", Some(Format::Obj)),
            (b"mtllib a.mtl\r\n", Some(Format::Obj)),
            (b"vx 0 0 0\n", None),
            (b"solid a\nfacet", Some(Format::Stl)),
            (&stl, Some(Format::Stl)),
            (&stl[..133], None),
            (b"$MeshFormat\n4.1 0 8\n", Some(Format::Gmsh)),
            (b"# vtk DataFile Version 2.0\n", Some(Format::Vtk)),
            (b"<VTKFile type=\"ImageData\">", Some(Format::Vtu)),
            (b"%%matrixmarket matrix", Some(Format::MatrixMarket)),
            (b"4 3 0 0\n", None),
            (b"# only a comment", None),
            (b"\xff\xfe\x00", None),
            (b"", None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(format(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
