use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::super::binary::Order;
use super::super::testing::{fails, fuzz, mixed_surface, noted, parsed};
use super::super::{Format, parse};
use super::outline::{Array, Compressor, Encoding, Storage};
use super::*;
use crate::cell::{CellKind, Cells};
use crate::mesh::{Field, Group, Mesh};

const ASCII: &str = r#"<?xml version="1.0"?>
<VTKFile type="UnstructuredGrid" version="0.1" byte_order="LittleEndian">
<UnstructuredGrid>
<FieldData><Array type="String" Name="s" format="ascii">104 0</Array><DataArray type="Int8" Name="t">7</DataArray></FieldData>
<Piece NumberOfPoints="4" NumberOfCells="2">
<PointData Scalars="a &lt; b"><DataArray type="Float32" Name="a &lt; b" format="ascii">
0.5 1 2
3
<InformationKey name="L2"><Value index="0">4</Value></InformationKey></DataArray></PointData>
<CellData><DataArray type="Int32" Name="id" NumberOfComponents="2" format="ascii">1 2 3 4</DataArray></CellData>
<Points><DataArray type="Float64" NumberOfComponents="3" format="ascii">0 0 0 1 0 0 0 1 0 0 0 1</DataArray></Points>
<Cells>
<DataArray type="Int64" Name="connectivity" format="ascii">0 1 2 3 0 1 2</DataArray>
<DataArray type="Int64" Name="offsets" format="ascii">4 7</DataArray>
<DataArray type="UInt8" Name="types" format="ascii">10 5</DataArray>
</Cells>
</Piece>
</UnstructuredGrid>
</VTKFile>
"#;

/// How a test file stores its arrays.
#[derive(Clone, Copy, Debug)]
struct Way {
    appended: bool,
    encoding: Encoding,
    compressor: Option<Compressor>,
    is_wide: bool,
    order: Order,
    /// Whether the header is encoded on its own, so that padding follows it.
    splits: bool,
}

impl Way {
    fn number(self, value: u64, size: usize) -> Vec<u8> {
        match self.order {
            Order::Little => value.to_le_bytes()[..size].to_vec(),
            Order::Big => value.to_be_bytes()[8 - size..].to_vec(),
        }
    }

    /// One array as it lies in the file; small blocks, so that there are several.
    fn packed(self, bytes: &[u8]) -> Vec<u8> {
        const BLOCK: usize = 32;
        let size = if self.is_wide { 8 } else { 4 };
        let (mut header, mut body) = (Vec::new(), Vec::new());
        match self.compressor {
            None => {
                header.extend(self.number(bytes.len() as u64, size));
                body.extend(bytes);
            }
            Some(compressor) => {
                let blocks: Vec<Vec<u8>> = bytes.chunks(BLOCK).map(|block| pack(compressor, block)).collect();
                let last = (bytes.len() % BLOCK) as u64;
                header.extend([blocks.len() as u64, BLOCK as u64, last].iter().flat_map(|&n| self.number(n, size)));
                header.extend(blocks.iter().flat_map(|b| self.number(b.len() as u64, size)));
                body = blocks.concat();
            }
        }
        match (self.encoding, self.splits) {
            (Encoding::Raw, _) => [header, body].concat(),
            (Encoding::Base64, true) => [STANDARD.encode(header), STANDARD.encode(body)].concat().into_bytes(),
            (Encoding::Base64, false) => STANDARD.encode([header, body].concat()).into_bytes(),
        }
    }

    fn file(self) -> Vec<u8> {
        let floats = |values: &[f64]| values.iter().flat_map(|x| self.number(x.to_bits(), 8)).collect::<Vec<_>>();
        let integers = |values: &[u64], size| values.iter().flat_map(|&x| self.number(x, size)).collect::<Vec<_>>();
        let arrays = [
            ("PointData", "Float64", "a", 1, floats(&[0.5, 1.0, 2.0, 3.0])),
            ("Points", "Float64", "Points", 3, floats(&[0., 0., 0., 1., 0., 0., 0., 1., 0., 0., 0., 1.])),
            ("Cells", "UInt32", "connectivity", 1, integers(&[0, 1, 2, 3, 0, 1, 2], 4)),
            ("Cells", "Int64", "offsets", 1, integers(&[4, 7], 8)),
            ("Cells", "UInt8", "types", 1, vec![10, 5]),
        ];
        let order = if self.order == Order::Big { "BigEndian" } else { "LittleEndian" };
        let header = if self.is_wide { "UInt64" } else { "UInt32" };
        let compressor = match self.compressor {
            None => "",
            Some(Compressor::Zlib) => r#" compressor="vtkZLibDataCompressor""#,
            Some(Compressor::Lz4) => r#" compressor="vtkLZ4DataCompressor""#,
        };
        let mut xml = format!(
            "<VTKFile type=\"UnstructuredGrid\" byte_order=\"{order}\" header_type=\"{header}\"{compressor}>\n\
             <UnstructuredGrid><Piece NumberOfPoints=\"4\" NumberOfCells=\"2\">\n"
        );
        let mut data = Vec::new();
        for (section, kind, name, components, bytes) in arrays {
            let tag =
                format!("<{section}><DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{components}\"");
            let packed = self.packed(&bytes);
            let body = match self.appended {
                true => format!(" format=\"appended\" offset=\"{}\"/>", data.len()),
                false => format!(" format=\"binary\">\n {}\n</DataArray>", String::from_utf8(packed.clone()).unwrap()),
            };
            data.extend(packed);
            xml += &format!("{tag}{body}</{section}>\n");
        }
        xml += "</Piece></UnstructuredGrid>\n";
        let mut file = xml.into_bytes();
        if self.appended {
            let encoding = if self.encoding == Encoding::Raw { "raw" } else { "base64" };
            file.extend(format!("<AppendedData encoding=\"{encoding}\">\n  _").bytes());
            file.extend(data);
            file.extend(b"\n</AppendedData>");
        }
        file.extend(b"</VTKFile>");
        file
    }
}

fn pack(compressor: Compressor, block: &[u8]) -> Vec<u8> {
    match compressor {
        Compressor::Zlib => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(block).unwrap();
            encoder.finish().unwrap()
        }
        Compressor::Lz4 => lz4_flex::block::compress(block),
    }
}

fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for (appended, encoding) in [(false, Encoding::Base64), (true, Encoding::Base64), (true, Encoding::Raw)] {
        for compressor in [None, Some(Compressor::Zlib), Some(Compressor::Lz4)] {
            for (is_wide, order) in [(false, Order::Little), (true, Order::Little), (true, Order::Big)] {
                for splits in [false, true] {
                    ways.push(Way { appended, encoding, compressor, is_wide, order, splits });
                }
            }
        }
    }
    ways
}

#[test]
fn reads_ascii() {
    let mesh = parsed(Format::Vtu, ASCII);
    assert_eq!(mesh.points()[3], [0.0, 0.0, 1.0]);
    assert_eq!(mesh.cells().counts(), [(CellKind::Triangle, 1), (CellKind::Tet, 1)]);
    assert_eq!(mesh.point_field("a < b").unwrap().values, [0.5, 1.0, 2.0, 3.0]);
    assert_eq!(mesh.cell_field("id").unwrap().values, [1.0, 2.0, 3.0, 4.0]);
    assert_eq!((mesh.point_fields().len(), mesh.cell_fields().len()), (1, 1));
}

#[test]
fn strings_are_left_out_with_a_note() {
    let strings = "<PointData><Array type=\"String\" Name=\"s\" format=\"ascii\">104 0</Array></PointData>\n<Cells>";
    let (mesh, notes) = noted(Format::Vtu, ASCII.replace("<Cells>", strings));
    assert_eq!(mesh, parsed(Format::Vtu, ASCII));
    assert_eq!(notes, ["a:12: array \"s\" holds strings or bits and is left out"]);
}

#[test]
fn reads_every_encoding() {
    for way in ways() {
        let mesh = parse(Format::Vtu, Path::new("a"), &way.file()).unwrap_or_else(|error| panic!("{way:?}: {error}"));
        assert_eq!(mesh.points(), [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "{way:?}");
        assert_eq!(mesh.cells().corners(1), [0, 1, 2], "{way:?}");
        assert_eq!(mesh.point_field("a").unwrap().values, [0.5, 1.0, 2.0, 3.0], "{way:?}");
    }
}

#[test]
fn joins_pieces() {
    let start = ASCII.find("<Piece").unwrap();
    let end = ASCII.find("</UnstructuredGrid").unwrap();
    let file = [&ASCII[..end], &ASCII[start..end], &ASCII[end..]].concat();
    let mesh = parsed(Format::Vtu, &file);
    assert_eq!(mesh.cells().corners(2), [4, 5, 6, 7]);
    assert_eq!(mesh.cell_field("id").unwrap().values, [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    let (first, last) = file.split_at(end);
    fails(Format::Vtu, format!("{first}{}", last.replace("Name=\"id\"", "Name=\"other\"")), "a: field \"id\" has 4");
    let wide =
        last.replace("Int32\" Name=\"id\" NumberOfComponents=\"2\"", "Int32\" Name=\"id\" NumberOfComponents=\"1\"");
    fails(Format::Vtu, format!("{first}{}", wide.replace(">1 2 3 4<", ">1 2<")), "a:23: array \"id\" had another");
}

/// What is written, which must be read as it was.
fn written(mesh: &Mesh, form: Form) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, mesh, form).unwrap();
    let read = parsed(Format::Vtu, &bytes);
    let bits = |mesh: &Mesh| -> Vec<u64> {
        let fields = mesh.point_fields().iter().chain(mesh.cell_fields()).flat_map(|field| &field.values);
        mesh.points().as_flattened().iter().chain(fields).map(|x| x.to_bits()).collect()
    };
    assert_eq!(bits(&read), bits(mesh));
    assert_eq!((read.cells(), read.groups()), (mesh.cells(), mesh.groups()));
    bytes
}

#[test]
fn writes_what_it_reads() {
    let mut mesh = mixed_surface();
    mesh.add_group(Group { name: "a.b <&> \"c\"".into(), dimension: 2, cells: vec![0, 1] }).unwrap();
    let mut cells = Cells::new();
    for kind in CellKind::ALL {
        cells.push(kind, &(0..kind.corners() as u32).collect::<Vec<_>>());
    }
    let of_all_kinds = Mesh::new((0..8).map(|k| [f64::from(k), 0.5, 0.25]).collect(), cells).unwrap();
    for mesh in [mesh, of_all_kinds, Mesh::default()] {
        for form in [Form::Plain, Form::Packed] {
            written(&mesh, form);
        }
    }
}

#[test]
fn numbers_take_as_few_bits_as_hold_them_and_blocks_shrink() {
    let mut mesh = crate::generate::generate("sheet:160", 1).unwrap();
    let plain = written(&mesh, Form::Plain).len();
    let with = |mesh: &mut Mesh, values: &dyn Fn(usize) -> f64| {
        let values = (0..mesh.points().len()).map(values).collect();
        mesh.set_point_field(Field { name: "heat".into(), components: 1, values }).unwrap();
        let bytes = written(mesh, Form::Packed);
        (String::from_utf8_lossy(&bytes).into_owned(), bytes.len())
    };
    // What 32 bits hold, infinite and negative zero, too; a third; what is no number, whose bits some readers tell apart.
    let is = |(text, _): &(String, usize), kind: &str| {
        assert!(text.contains(&format!("type=\"{kind}\" Name=\"heat\"")), "{kind}")
    };
    is(&with(&mut mesh, &|i| [0.5, -0.0, f64::INFINITY, f64::from(1e38f32)][i % 4]), "Float32");
    is(&with(&mut mesh, &|i| if i == 77 { 1.0 / 3.0 } else { 0.5 }), "Float64");
    is(&with(&mut mesh, &|i| if i == 77 { f64::from_bits(0x7ff8_0000_0000_0001) } else { 0.5 }), "Float64");
    let (packed, len) = with(&mut mesh, &|i| f64::from((i as f32 * 0.37).sin()));
    assert!(packed.contains("Int32\" Name=\"connectivity\"") && packed.contains("vtkZLibDataCompressor"));
    assert!(len < plain / 2, "{len} of {plain} bytes");
    // Points in one place shrink to nothing, which no reader would believe.
    let heap = Mesh::new(vec![[0.0; 3]; 1 << 17], Cells::new()).unwrap();
    assert!(!String::from_utf8_lossy(&written(&heap, Form::Packed)).contains("compressor"));
}

#[test]
fn names_that_xml_cannot_hold_are_refused() {
    let mut mesh = mixed_surface();
    mesh.set_point_field(Field { name: "a\u{1}".into(), components: 1, values: vec![0.0; 5] }).unwrap();
    assert!(check_names(&mesh).unwrap_err().contains("character that XML cannot hold"));
}

#[test]
fn errors_say_where() {
    let with = |from: &str, to: &str| ASCII.replace(from, to);
    fails(Format::Vtu, with("UnstructuredGrid\" v", "PolyData\" v"), "a:2: type \"PolyData\" is not supported");
    fails(Format::Vtu, with("LittleEndian", "Middle"), "a:2: byte_order \"Middle\" is not supported");
    fails(
        Format::Vtu,
        with("byte_order", "compressor=\"vtkLZMADataCompressor\" byte_order"),
        "a:2: compressor \"vtkLZMADataCompressor\" is not supported: save with zlib",
    );
    fails(Format::Vtu, with("Points=\"4\"", "Points=\"-1\""), "a:5: \"-1\" is no value of NumberOfPoints");
    fails(
        Format::Vtu,
        with("Points=\"4\"", "Points=\"2147483648\""),
        "a:11: array \"\" has 12 numbers and not 6442450944",
    );
    fails(
        Format::Vtu,
        with("Points=\"4\"", "Points=\"9223372036854775808\""),
        "a:11: array \"\" has 12 numbers and not 1844",
    );
    fails(Format::Vtu, with("Points=\"4\"", "Points=\"5\""), "a:11: array \"\" has 12 numbers and not 15");
    fails(Format::Vtu, with("Points=\"4\"", "Points=\"3\""), "a:11: array \"\" has more than its 9 numbers");
    fails(Format::Vtu, with("0 0 0 1 0 0 0", "0 0 0 1 0 0 nan"), "a:11: point 2 has a coordinate that is not finite");
    fails(Format::Vtu, with("0 1 2 3 0 1 2<", "0 1 2 4 0 1 2<"), "a:13: cell 0: there is no point 4 among 4");
    fails(Format::Vtu, with("0 1 2 3 0 1 2<", "0 1 2 -3 0 1 2<"), "a:13: cell 0: there is no point -3");
    fails(Format::Vtu, with(">4 7<", ">5 7<"), "a:13: cell 0: a tet (type 10) has 5 corners");
    fails(Format::Vtu, with(">4 7<", ">9 7<"), "a:13: cell 0: offsets 0 to 9 do not fit in 7 corners");
    fails(Format::Vtu, with(">4 7<", ">4 -7<"), "a:13: array \"connectivity\" has 7 numbers and not 1844");
    fails(Format::Vtu, with(">10 5<", ">42 5<"), "a:13: cell 0: cell type 42 is not supported");
    fails(Format::Vtu, with("\"types\"", "\"kinds\""), "a:5: the piece lacks the array \"types\"");
    fails(Format::Vtu, with("<?xml version=\"1.0\"?>", "<!DOCTYPE a [<!ENTITY b \"c\">]>"), "a:1: document types");
    fails(Format::Vtu, with("0.5 1 2", "0.5 &b; 2"), "a:7: the numbers of an array must be one plain text");
    fails(Format::Vtu, with("</Points>", "</Point>"), "a:11: broken XML");
    fails(Format::Vtu, with("Name=\"id\"", "Name=\"&id;\""), "a:10: broken XML");
    fails(Format::Vtu, &ASCII[..700], "a:11: broken XML: syntax error: tag not closed");
    fails(Format::Vtu, "<html>", "a:1: VTK's XML starts with");
    fails(Format::Vtu, "", "a:1: the file ends within its tags");
}

#[test]
fn deep_nesting_and_many_attributes_are_harmless() {
    let deep = format!("<VTKFile type=\"UnstructuredGrid\">{}", "<a>".repeat(200_000));
    fails(Format::Vtu, deep, "a:1: the file ends within its tags");
    let many: String = (0..100_000).map(|k| format!(" a{k}=\"\"")).collect();
    fails(Format::Vtu, format!("<VTKFile{many} type=\"UnstructuredGrid\"></VTKFile>"), "a:1: the file has no <Piece>");
}

const RAW: Way = Way {
    appended: true,
    encoding: Encoding::Raw,
    compressor: None,
    is_wide: true,
    order: Order::Little,
    splits: false,
};

#[test]
fn lying_binary_arrays_say_where() {
    let bytes = RAW.file();
    let with = |from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
        [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()
    };
    let data = bytes.windows(2).position(|w| w == b"_ ").unwrap() + 1;
    fails(Format::Vtu, &bytes[..data + 60], &format!("a: byte {}: array \"Points\": 96 bytes do not fit", data + 40));
    for (said, shown) in [(1u64 << 31, "2147483648"), (1 << 63, "9223372036854775807"), (31, "31")] {
        let mut lying = bytes.clone();
        lying[data..data + 8].copy_from_slice(&said.to_le_bytes());
        // The first array of the data is of the points' field.
        let start = format!("a: byte {data}: array \"a\": its header says {shown} bytes, but the mesh needs 32");
        fails(Format::Vtu, &lying, &start);
    }
    let text = with("offset=\"0\"", "offset=\"99999\"");
    fails(Format::Vtu, text, "a:3: array \"a\": offset 99999 lies behind the end");
    let text = with("Points=\"4\"", "Points=\"3000000000\"");
    fails(Format::Vtu, text, "a:4: array \"Points\": 9000000000 numbers are more than a file of this size");
    let inline = Way { appended: false, encoding: Encoding::Base64, ..RAW }.file();
    let text = String::from_utf8(inline).unwrap().replacen("\n IA", "\n I*", 1);
    fails(Format::Vtu, text, "a:3: array \"a\": broken base64");
}

#[test]
fn bombs_do_not_go_off() {
    // 1 GiB of zeros in 1 MiB: as plausible as its header says, but too much for a file of its size.
    let zeros = vec![0; 1 << 20];
    let block = pack(Compressor::Zlib, &zeros);
    for (count, last) in [(1024u64, 0u64), (1, 1 << 30), (u64::MAX, 0), (1 << 31, 1 << 63)] {
        let header = [count, 1 << 20, last];
        let mut data: Vec<u8> = header.iter().flat_map(|n| n.to_le_bytes()).collect();
        (0..count.min(1024)).for_each(|_| data.extend((block.len() as u64).to_le_bytes()));
        (0..count.min(1024)).for_each(|_| data.extend(&block));
        let points = (1u64 << 30) / 24;
        let mut file = format!(
            "<VTKFile type=\"UnstructuredGrid\" header_type=\"UInt64\" compressor=\"vtkZLibDataCompressor\">\
             <UnstructuredGrid><Piece NumberOfPoints=\"{points}\" NumberOfCells=\"0\"><Points><DataArray type=\"Float64\" \
             NumberOfComponents=\"3\" format=\"appended\" offset=\"0\"/></Points></Piece></UnstructuredGrid>\
             <AppendedData encoding=\"raw\">_"
        )
        .into_bytes();
        file.extend(data);
        let error = parse(Format::Vtu, Path::new("a"), &file).unwrap_err().to_string();
        assert!(error.contains("can plausibly hold") || error.contains("blocks"), "{error}");
    }
    // A block that becomes more than it says.
    let way = Way { compressor: Some(Compressor::Zlib), ..RAW };
    let honest = way.packed(&[7; 32]);
    let mut lying = honest.clone();
    lying[16] = 16; // the last block, and thus the array, now has 16 bytes
    let appended = Some((Encoding::Raw, 0));
    let storage = Storage { order: Order::Little, header: Scalar::U64, compressor: way.compressor, appended };
    let mut store = Store::new(Path::new("a"), &lying, storage);
    let data = Data::Appended(0);
    let array = Array { section: Section::Points, name: "b".into(), scalar: Scalar::U8, components: 1, at: 0, data };
    let error = store.bytes(&array, 16).unwrap_err().to_string();
    assert_eq!(error, "a: byte 0: array \"b\": block 0 does not become its 16 bytes");
}

#[test]
fn points_and_cells_grow_less_than_fields() {
    // Zeros, 1000 times as long as what holds them: as a field they pass, as points they do not.
    let file = |points: u64, field: &str| {
        let zeros = vec![0; 1 << 20];
        let block = pack(Compressor::Zlib, &zeros);
        let packed = |blocks: u64| {
            let mut data: Vec<u8> = [blocks, 1 << 20, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
            (0..blocks).for_each(|_| data.extend((block.len() as u64).to_le_bytes()));
            (0..blocks).for_each(|_| data.extend(&block));
            data
        };
        let mut file = format!(
            "<VTKFile type=\"UnstructuredGrid\" header_type=\"UInt64\" compressor=\"vtkZLibDataCompressor\">\
             <UnstructuredGrid><Piece NumberOfPoints=\"{points}\" NumberOfCells=\"0\"><Points><DataArray type=\"Float64\" \
             NumberOfComponents=\"3\" format=\"appended\" offset=\"0\"/></Points>{field}</Piece></UnstructuredGrid>\
             <AppendedData encoding=\"raw\">_"
        )
        .into_bytes();
        file.extend(packed((points * 24) >> 20));
        file.resize(100_000, 0);
        file
    };
    let error = parse(Format::Vtu, Path::new("a"), &file(1 << 18, "")).unwrap_err().to_string();
    assert!(error.starts_with("a:1: array \"\": 786432 numbers are more than a file of this size"), "{error}");
    let fields = |count: usize| {
        let field = |k| {
            format!(
                "<DataArray type=\"Float64\" NumberOfComponents=\"3\" Name=\"{k}\" format=\"appended\" offset=\"0\"/>"
            )
        };
        format!("<PointData>{}</PointData>", (0..count).map(field).collect::<String>())
    };
    let mesh = parsed(Format::Vtu, file(1 << 17, &fields(3)));
    assert_eq!((mesh.points().len(), mesh.point_fields().len()), (1 << 17, 3));
    let error = parse(Format::Vtu, Path::new("a"), &file(1 << 17, &fields(11))).unwrap_err().to_string();
    assert!(error.starts_with("a:1: array \"9\": 393216 numbers are more than a file of this size"), "{error}");
}

/// A grid of 3 by 2 by `nz` points with a field over each.
fn grid(kind: &str, attributes: &str, nz: u64, more: &str) -> String {
    let (points, cells) = (6 * nz, 2 * (nz - 1).max(1));
    let list = |n: u64| (0..n).map(|k| k.to_string()).collect::<Vec<_>>().join(" ");
    let top = nz + 3;
    format!(
        "<VTKFile type=\"{kind}\"><{kind} WholeExtent=\"0 2 0 1 4 {top}\" {attributes}>\n\
         <Piece Extent=\"0 2 0 1 4 {top}\">\n<PointData><DataArray type=\"Float32\" Name=\"a\">{}</DataArray></PointData>\n\
         <CellData><DataArray type=\"Int8\" Name=\"c\">{}</DataArray></CellData>\n{more}\n</Piece></{kind}></VTKFile>",
        list(points),
        list(cells)
    )
}

#[test]
fn reads_images() {
    let attributes = "Origin=\"10 20 30\" Spacing=\"0.5 2 1\"";
    let mesh = parsed(Format::VtkGrid, grid("ImageData", attributes, 2, ""));
    assert_eq!((mesh.points()[0], mesh.points()[11]), ([10.0, 20.0, 34.0], [11.0, 22.0, 35.0]));
    assert_eq!(mesh.cells().counts(), [(CellKind::Hex, 2)]);
    assert_eq!(mesh.cells().corners(1), [1, 2, 5, 4, 7, 8, 11, 10]);
    assert_eq!((mesh.point_fields()[0].values[11], &mesh.cell_field("c").unwrap().values[..]), (11.0, &[0.0, 1.0][..]));
    // Turned about the third axis by a quarter.
    let turned = format!("{attributes} Direction=\"0 -1 0 1 0 0 0 0 1\"");
    let mesh = parsed(Format::VtkGrid, grid("ImageData", &turned, 1, ""));
    assert_eq!(mesh.points()[5], [8.0, 21.0, 34.0]);
    assert_eq!((mesh.cells().counts(), mesh.cells().corners(1)), (vec![(CellKind::Quad, 2)], &[1, 2, 5, 4][..]));
}

#[test]
fn reads_rectilinear_and_structured_grids() {
    let axis = |text: &str| format!("<DataArray type=\"Float64\" Name=\"x\">{text}</DataArray>");
    let axes = |z: &str| format!("<Coordinates>{}{}{}</Coordinates>", axis("0 1 4"), axis("-1 7"), axis(z));
    let mesh = parsed(Format::VtkGrid, grid("RectilinearGrid", "", 2, &axes("2 3")));
    assert_eq!((mesh.points()[0], mesh.points()[11]), ([0.0, -1.0, 2.0], [4.0, 7.0, 3.0]));
    assert_eq!(mesh.cells().counts(), [(CellKind::Hex, 2)]);
    let text = grid("RectilinearGrid", "", 2, &axes("2"));
    fails(Format::VtkGrid, text, "a:5: array \"x\" has 1 numbers and not 2");
    fails(Format::VtkGrid, grid("RectilinearGrid", "", 2, ""), "a:2: the piece has 0 arrays of coordinates, not 3");

    let points = "0 0 0 1 0 0 2 0 0 0 1 9 1 1 9 2 1 9";
    let points = format!("<Points><DataArray type=\"Float64\" NumberOfComponents=\"3\">{points}</DataArray></Points>");
    let mesh = parsed(Format::VtkGrid, grid("StructuredGrid", "", 1, &points));
    assert_eq!((mesh.points()[5], mesh.cells().corners(0)), ([2.0, 1.0, 9.0], &[0, 1, 4, 3][..]));
}

#[test]
fn grids_of_one_axis_are_edges_and_wrong_extents_say_where() {
    let text = grid("ImageData", "", 1, "");
    let with = |extent: &str| text.replace("Piece Extent=\"0 2 0 1 4 4\"", &format!("Piece Extent=\"{extent}\""));
    let bare = |extent: &str| {
        let text = with(extent);
        [&text[..text.find("<PointData").unwrap()], "</Piece></ImageData></VTKFile>"].concat()
    };
    assert_eq!(parsed(Format::VtkGrid, bare("0 0 3 5 0 0")).cells().corners(1), [1, 2]);
    assert_eq!(parsed(Format::VtkGrid, bare("0 0 0 0 0 0")).cells().counts(), [(CellKind::Vertex, 1)]);
    assert_eq!(parsed(Format::VtkGrid, bare("0 -1 0 5 0 5")).points().len(), 0);
    // An axis without points leaves none on the others, however long these are.
    for last in [i64::MAX - 1, i64::from(i32::MAX), (1 << 28) - 1] {
        let long = format!("0 {last}");
        for extent in [format!("{long} 0 -1 0 0"), format!("0 -1 0 0 {long}"), format!("{long} {long} 0 -1")] {
            assert_eq!(parsed(Format::VtkGrid, bare(&extent)), Mesh::default(), "{extent}");
            let text = format!("<VTKFile type=\"RectilinearGrid\"><Piece Extent=\"{extent}\"></Piece></VTKFile>");
            assert_eq!(parsed(Format::VtkGrid, text), Mesh::default(), "{extent}");
        }
    }
    fails(Format::VtkGrid, bare("0 2 0 1"), "a:2: \"0 2 0 1\" is no value of Extent: it must be 6 numbers");
    fails(Format::VtkGrid, bare("0 9 9 0 0 1"), "a:2: the piece lacks its Extent");
    fails(Format::VtkGrid, bare("-9223372036854775808 9223372036854775807 0 1 0 1"), "a:2: the piece lacks its Extent");
    fails(
        Format::VtkGrid,
        bare("0 999 0 999 0 999"),
        "a:2: 1000000000 points of a grid are more than a file of this size",
    );
    let text = grid("ImageData", "Spacing=\"1e308 1 inf\"", 1, "");
    fails(Format::VtkGrid, text, "a:2: point 0 has a coordinate that is not finite");
    let twice = grid("ImageData", "", 1, "</Piece><Piece Extent=\"0 1 0 1 0 1\">");
    fails(Format::VtkGrid, twice, "a:5: a grid of several pieces is not supported");
}

#[test]
fn a_byte_order_mark_is_skipped_and_long_names_are_cut() {
    assert_eq!(parsed(Format::Vtu, format!("\u{feff}{ASCII}")), parsed(Format::Vtu, ASCII));
    let name = format!("\u{1b}[31m{}", "x".repeat(5000));
    let text = ASCII.replace("Name=\"id\"", &format!("Name=\"{name}\"")).replace("1 2 3 4</", "1 2 3</");
    let error = parse(Format::Vtu, Path::new("a"), text.as_bytes()).unwrap_err().to_string();
    let start = "a:10: array \"\\u{1b}[31mxxxx";
    assert!(error.starts_with(start) && error.len() < 200, "{error}");
}

#[test]
fn survives_mutations() {
    fuzz(Format::VtkGrid, grid("ImageData", "Origin=\"1 2 3\" Spacing=\"1 2 3\"", 2, "").as_bytes());
    let axis = |text: &str| format!("<DataArray type=\"Float64\">{text}</DataArray>");
    let axes = format!("<Coordinates>{}{}{}</Coordinates>", axis("0 1 4"), axis("-1 7"), axis("2"));
    fuzz(Format::VtkGrid, grid("RectilinearGrid", "", 1, &axes).as_bytes());

    fuzz(Format::Vtu, ASCII.as_bytes());
    fuzz(Format::Vtu, &RAW.file());
    for compressor in [Compressor::Zlib, Compressor::Lz4] {
        fuzz(Format::Vtu, &Way { compressor: Some(compressor), is_wide: false, ..RAW }.file());
    }
    fuzz(Format::Vtu, &Way { appended: false, encoding: Encoding::Base64, splits: true, ..RAW }.file());
}
