use super::super::Format;
use super::super::binary::Order;
use super::super::testing::{fails, fuzz, noted, parsed};
use crate::cell::CellKind;

const SAMPLE: &str = "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$PhysicalNames\n2\n2 3 \"the skin\"\n3 1 \"body\"\n\
    $EndPhysicalNames\n$Entities\n1 0 1 1\n7 0 0 0 1 9\n5 0 0 0 1 1 1 1 -3 0\n1 0 0 0 1 1 1 2 1 2 1 5\n\
    $EndEntities\n$Comments\nfree text\n$EndComments\n$Nodes\n2 5 1 50\n2 5 1 3\n1\n2\n3\n0 0 0 0.5 0.5\n\
    1 0 0 0 0\n0 1 0 0 0\n3 1 0 2\n4\n50\n0 0 1\n5 5 5\n$EndNodes\n$Elements\n3 3 1 3\n0 7 15 1\n1 1\n\
    2 5 2 1\n2 1 3 2\n3 1 4 1\n3 1 2 3 4\n$EndElements\n";

/// Writes binary numbers of one byte order.
struct Bytes {
    bytes: Vec<u8>,
    order: Order,
}

impl Bytes {
    fn new(order: Order, version: &str) -> Bytes {
        let mut bytes = Bytes { bytes: Vec::new(), order };
        bytes.text(&format!("$MeshFormat\n{version} 1 8\n"));
        bytes.ints(&[1]);
        bytes.text("\n$EndMeshFormat\n");
        bytes
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend(text.bytes());
    }

    fn put<const N: usize>(&mut self, mut number: [u8; N]) {
        if self.order == Order::Big {
            number.reverse();
        }
        self.bytes.extend(number);
    }

    fn ints(&mut self, all: &[i32]) {
        all.iter().for_each(|x| self.put(x.to_le_bytes()));
    }

    fn sizes(&mut self, all: &[u64]) {
        all.iter().for_each(|x| self.put(x.to_le_bytes()));
    }

    fn floats(&mut self, all: &[f64]) {
        all.iter().for_each(|x| self.put(x.to_le_bytes()));
    }
}

const NAMES: &str = "$PhysicalNames\n2\n2 3 \"the skin\"\n3 1 \"body\"\n$EndPhysicalNames\n";

/// The same mesh in binary, without the comment.
fn binary(order: Order) -> Vec<u8> {
    let mut bytes = Bytes::new(order, "4.1");
    bytes.text(NAMES);
    bytes.text("$Entities\n");
    bytes.sizes(&[1, 0, 1, 1]);
    bytes.ints(&[7]);
    bytes.floats(&[0.0; 3]);
    bytes.sizes(&[1]);
    bytes.ints(&[9, 5]);
    bytes.floats(&[0.0; 6]);
    bytes.sizes(&[1]);
    bytes.ints(&[-3]);
    bytes.sizes(&[0]);
    bytes.ints(&[1]);
    bytes.floats(&[0.0; 6]);
    bytes.sizes(&[2]);
    bytes.ints(&[1, 2]);
    bytes.sizes(&[1]);
    bytes.ints(&[5]);
    bytes.text("\n$EndEntities\n$Nodes\n");
    bytes.sizes(&[2, 5, 1, 50]);
    bytes.ints(&[2, 5, 1]);
    bytes.sizes(&[3, 1, 2, 3]);
    bytes.floats(&[0.0, 0.0, 0.0, 0.5, 0.5, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    bytes.ints(&[3, 1, 0]);
    bytes.sizes(&[2, 4, 50]);
    bytes.floats(&[0.0, 0.0, 1.0, 5.0, 5.0, 5.0]);
    bytes.text("\n$EndNodes\n$Elements\n");
    bytes.sizes(&[3, 3, 1, 3]);
    bytes.ints(&[0, 7, 15]);
    bytes.sizes(&[1, 1, 1]);
    bytes.ints(&[2, 5, 2]);
    bytes.sizes(&[1, 2, 1, 3, 2]);
    bytes.ints(&[3, 1, 4]);
    bytes.sizes(&[1, 3, 1, 2, 3, 4]);
    bytes.text("\n$EndElements\n");
    bytes.bytes
}

/// The same mesh in version 4.0, where blocks name the tag of the entity before its dimension.
const FOUR_ZERO: &str = "$MeshFormat\n4 0 8\n$EndMeshFormat\n$PhysicalNames\n2\n2 3 \"the skin\"\n3 1 \"body\"\n\
    $EndPhysicalNames\n$Entities\n1 0 1 1\n7 0 0 0 0 0 0 1 9\n5 0 0 0 1 1 1 1 -3 0\n1 0 0 0 1 1 1 2 1 2 1 5\n\
    $EndEntities\n$Nodes\n2 5\n5 2 1 3\n1 0 0 0 0.5 0.5\n2 1 0 0 0 0\n3 0 1 0 0 0\n1 3 1 2\n4 0 0 1\n50 5 5 5\n\
    $EndNodes\n$Elements\n3 3\n7 0 15 1\n1 1\n5 2 2 1\n2 1 3 2\n1 3 4 1\n3 1 2 3 4\n$EndElements\n";

fn four_zero_binary(order: Order) -> Vec<u8> {
    let mut bytes = Bytes::new(order, "4");
    bytes.text(NAMES);
    bytes.text("$PartitionedEntities\n");
    bytes.ints(&[2, 1, 8, 8]);
    bytes.sizes(&[1, 0, 1, 1]);
    for (tag, groups, boundaries) in [(7, &[9][..], None), (5, &[-3], Some(&[][..])), (1, &[1, 2], Some(&[5]))] {
        bytes.ints(&[tag, 0, 0, 1, 2]);
        bytes.floats(&[0.0; 6]);
        for tags in [Some(groups), boundaries].into_iter().flatten() {
            bytes.sizes(&[tags.len() as u64]);
            bytes.ints(tags);
        }
    }
    bytes.text("\n$EndPartitionedEntities\n$Nodes\n");
    bytes.sizes(&[2, 5]);
    bytes.ints(&[5, 2, 1]);
    bytes.sizes(&[3]);
    for (tag, point) in [(1, [0.0, 0.0, 0.0, 0.5, 0.5]), (2, [1.0, 0.0, 0.0, 0.0, 0.0]), (3, [0.0, 1.0, 0.0, 0.0, 0.0])]
    {
        bytes.ints(&[tag]);
        bytes.floats(&point);
    }
    bytes.ints(&[1, 3, 1]); // volumes have no parameters, whatever this says
    bytes.sizes(&[2]);
    for (tag, point) in [(4, [0.0, 0.0, 1.0]), (50, [5.0; 3])] {
        bytes.ints(&[tag]);
        bytes.floats(&point);
    }
    bytes.text("\n$EndNodes\n$Elements\n");
    bytes.sizes(&[3, 3]);
    bytes.ints(&[7, 0, 15]);
    bytes.sizes(&[1]);
    bytes.ints(&[1, 1, 5, 2, 2]);
    bytes.sizes(&[1]);
    bytes.ints(&[2, 1, 3, 2, 1, 3, 4]);
    bytes.sizes(&[1]);
    bytes.ints(&[3, 1, 2, 3, 4]);
    bytes.text("\n$EndElements\n");
    bytes.bytes
}

/// The same mesh in version 2, where every element names one physical group.
const TWO: &str = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n2\n2 3 \"the skin\"\n3 1 \"body\"\n\
    $EndPhysicalNames\n$Nodes\n5\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n50 5 5 5\n$EndNodes\n\
    $Elements\n3\n1 15 2 9 7 1\n2 2 4 3 5 1 8 1 3 2\n3 4 2 1 1 1 2 3 4\n$EndElements\n";

fn two_binary(order: Order) -> Vec<u8> {
    let mut bytes = Bytes::new(order, "2.2");
    bytes.text(NAMES);
    bytes.text("$Nodes\n5\n");
    let points = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [5.0; 3]];
    for (tag, point) in [1, 2, 3, 4, 50].into_iter().zip(points) {
        bytes.ints(&[tag]);
        bytes.floats(&point);
    }
    bytes.text("\n$EndNodes\n$Elements\n3\n");
    bytes.ints(&[15, 1, 2, 1, 9, 7, 1]);
    bytes.ints(&[2, 1, 4, 2, 3, 5, 1, 8, 1, 3, 2]);
    bytes.ints(&[4, 1, 2, 3, 1, 1, 1, 2, 3, 4]);
    bytes.text("\n$EndElements\n");
    bytes.bytes
}

const DATA: &str = "$NodeData\n1\n\"my heat\"\n1\n0.5\n4\n0\n1\n2\n0\n4 1.5\n50 2.5\n$EndNodeData\n\
    $ElementData\n2\n\"flow\"\n\"a scheme\"\n1\n0.5\n3\n0\n3\n1\n3 7 8 9\n$EndElementData\n";

fn data_binary(order: Order) -> Vec<u8> {
    let mut bytes = Bytes { bytes: two_binary(order), order };
    bytes.text("$NodeData\n1\n\"my heat\"\n1\n0.5\n4\n0\n1\n2\n0\n");
    for (tag, value) in [(4, 1.5), (50, 2.5)] {
        bytes.ints(&[tag]);
        bytes.floats(&[value]);
    }
    bytes.text("\n$EndNodeData\n$ElementData\n1\n\"flow\"\n1\n0.5\n3\n0\n3\n1\n");
    bytes.ints(&[3]);
    bytes.floats(&[7.0, 8.0, 9.0]);
    bytes.text("\n$EndElementData\n");
    bytes.bytes
}

#[test]
fn reads_cells_of_all_dimensions_and_groups() {
    let mesh = parsed(Format::Gmsh, SAMPLE);
    assert_eq!(mesh.points()[4], [5.0; 3]);
    let cells: Vec<_> = mesh.cells().iter().collect();
    let expected: [(CellKind, &[u32]); 3] =
        [(CellKind::Vertex, &[0]), (CellKind::Triangle, &[0, 2, 1]), (CellKind::Tet, &[0, 1, 2, 3])];
    assert_eq!(cells, expected);
    let groups: Vec<_> = mesh.groups().iter().map(|g| (&*g.name, g.dimension, &g.cells[..])).collect();
    let expected: [(&str, usize, &[u32]); 4] =
        [("9", 0, &[0]), ("the skin", 2, &[1]), ("body", 3, &[2]), ("2", 3, &[2])];
    assert_eq!(groups, expected);
}

#[test]
fn binary_of_both_orders_is_the_same() {
    for order in [Order::Little, Order::Big] {
        assert_eq!(parsed(Format::Gmsh, binary(order)), parsed(Format::Gmsh, SAMPLE), "{order:?}");
    }
}

#[test]
fn older_versions_are_the_same() {
    let mesh = parsed(Format::Gmsh, SAMPLE);
    assert_eq!(parsed(Format::Gmsh, FOUR_ZERO), mesh);
    // Version 2 cannot put an element into two groups, and knows no group without elements.
    let two = parsed(Format::Gmsh, TWO);
    assert_eq!((two.points(), two.cells(), two.groups()), (mesh.points(), mesh.cells(), &mesh.groups()[..3]));
    let old = TWO.replace("2.2 0 8", "2 0 8").replace("2 3 \"the", "3 \"the").replace("3 1 \"body", "1 \"body");
    assert_eq!(parsed(Format::Gmsh, old), two);
    for order in [Order::Little, Order::Big] {
        assert_eq!(parsed(Format::Gmsh, four_zero_binary(order)), mesh, "{order:?}");
        assert_eq!(parsed(Format::Gmsh, two_binary(order)), two, "{order:?}");
    }
}

#[test]
fn an_element_in_several_groups_is_one_cell() {
    let text = TWO.replace("$Elements\n3\n", "$Elements\n5\n");
    let text = text.replace("3 4 2 1 1 1 2 3 4\n", "3 4 2 1 1 1 2 3 4\n4 4 2 6 1 1 2 3 4\n5 4 2 6 1 1 2 3 4\n");
    let data = DATA.replace("3 7 8 9", "4 7 8 9");
    let mesh = parsed(Format::Gmsh, format!("{text}{data}"));
    // The last is there twice indeed.
    assert_eq!(mesh.cells().counts(), [(CellKind::Vertex, 1), (CellKind::Triangle, 1), (CellKind::Tet, 2)]);
    assert_eq!((&mesh.group("body").unwrap().cells[..], &mesh.group("6").unwrap().cells[..]), (&[2][..], &[2, 3][..]));
    assert_eq!(mesh.cell_fields()[0].values[6..9], [7.0, 8.0, 9.0]);
}

#[test]
fn data_of_nodes_and_elements_are_fields() {
    let files = [format!("{TWO}{DATA}").into_bytes(), data_binary(Order::Little), data_binary(Order::Big)];
    for (k, file) in files.iter().chain([&format!("{SAMPLE}{DATA}").into_bytes()]).enumerate() {
        let (mesh, notes) = noted(Format::Gmsh, file);
        let heat = &mesh.point_field("my heat").unwrap().values;
        assert_eq!((&heat[3..], heat[..3].iter().all(|x| x.is_nan())), (&[1.5, 2.5][..], true), "{k}");
        let flow = &mesh.cell_fields()[0];
        assert_eq!((&*flow.name, flow.components, &flow.values[6..]), ("flow", 3, &[7.0, 8.0, 9.0][..]), "{k}");
        assert_eq!(notes, [""; 0]);
    }
    let later = DATA.replace("1.5", "8.5");
    let (mesh, notes) = noted(Format::Gmsh, format!("{TWO}{DATA}{later}$ElementNodeData\n$EndElementNodeData\n"));
    assert_eq!(mesh.point_field("my heat").unwrap().values[3], 8.5);
    let expected = [
        "a: field \"my heat\" comes several times, as of time steps: the last is read",
        "a: field \"flow\" comes several times, as of time steps: the last is read",
        "a:73: section \"$ElementNodeData\" is left out",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn malformed_data_say_where() {
    let with = |from: &str, to: &str| format!("{TWO}{}", DATA.replace(from, to));
    fails(Format::Gmsh, with("50 2.5", "51 2.5"), "a:34: node 51 is not in $Nodes");
    fails(Format::Gmsh, with("3 7 8 9", "4 7 8 9"), "a:46: element 4 is not in $Elements");
    fails(Format::Gmsh, with("1\n2\n0", "1\n99999999\n0"), "a:32: 99999999 values do not fit");
    fails(Format::Gmsh, with("1\n2\n0", "10\n2\n0"), "a:32: 2 values of 10 components");
    fails(
        Format::Gmsh,
        format!("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n{DATA}"),
        "a:4: \"$NodeData\" comes twice or before",
    );
    // Many sections without values do not fill the memory.
    let empty = "$NodeData\n0\n0\n3\n0\n9\n0\n$EndNodeData\n";
    let nodes: String = (1..=10_000).map(|tag| format!("{tag} 0 0 0\n")).collect();
    let many = TWO.replace("5\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n50 5 5 5\n", &format!("10000\n{nodes}"));
    let many = many.replace("$EndElements\n", &format!("$EndElements\n{}", empty.repeat(400)));
    fails(
        Format::Gmsh,
        many.replace("50 5", "5 5"),
        "a:10384: field \"data\" has values for too few nodes: 90000 values are more",
    );
}

#[test]
fn elements_of_second_order_lose_the_nodes_between_their_corners() {
    let mut text = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n6\n".to_string();
    for tag in 1..=6 {
        text += &format!("{tag} {tag} 0 0\n");
    }
    text += "$EndNodes\n$Elements\n2\n1 9 2 4 1 1 3 5 2 4 6\n2 1 2 0 1 3 4\n$EndElements\n";
    text += "$NodeData\n1\n\"b\"\n0\n3\n0\n1\n2\n4 4\n5 5\n$EndNodeData\n";
    let (mesh, notes) = noted(Format::Gmsh, &text);
    assert_eq!(mesh.points().iter().map(|p| p[0]).collect::<Vec<_>>(), [1.0, 3.0, 4.0, 5.0]);
    assert_eq!(mesh.cells().all_corners(), [0, 1, 3, 1, 2]);
    assert_eq!(mesh.point_field("b").unwrap().values[2..], [4.0, 5.0]);
    assert_eq!(mesh.group("4").unwrap().cells, [0]);
    assert_eq!(notes, ["a: cells of higher order (1) are read by their corners; points between (2) are left out"]);
}

#[test]
fn partitioned_entities_give_groups() {
    let partitioned =
        "$PartitionedEntities\n2\n1\n9 1\n0 0 0 1\n1 3 1 1 2 0 0 0 1 1 1 1 4 0\n$EndPartitionedEntities\n";
    let text = SAMPLE.replace("$Comments\n", &format!("{partitioned}$Comments\n"));
    assert_eq!(parsed(Format::Gmsh, text).group("4").unwrap().cells, [2]);
}

#[test]
fn errors_say_where() {
    let with = |from: &str, to: &str| SAMPLE.replace(from, to);
    fails(
        Format::Gmsh,
        with("4.1 0 8", "3.0 0 8"),
        "a:2: version \"3.0\" is not supported, only 2, 4.0 and 4.1: convert with `gmsh ",
    );
    fails(Format::Gmsh, with("4.1 0 8", "4.1 1 4"), "a:2: file type 1 with numbers of 4 bytes");
    fails(Format::Gmsh, with("3 1 4 1", "3 1 29 1"), "a:39: element type 29 is not supported: only elements of first");
    fails(Format::Gmsh, with("3 1 4 1", "3 1 99 1"), "a:39: element type 99 is not supported");
    fails(Format::Gmsh, with("3 1 4 1", "3 1 4 9223372036854775808"), "a:39: 9223372036854775808 elements of");
    fails(Format::Gmsh, with("3 1 4 1", "3 1 4 -1"), "a:39: \"-1\" is not a number of elements of type tet");
    fails(Format::Gmsh, with("2 5 1 3\n", "2 5 1 2147483648\n"), "a:20: 2147483648 nodes do not fit");
    fails(Format::Gmsh, with("3 1 2 3 4\n", "3 1 2 3 5\n"), "a:40: element 3 has node 5, which is not in $Nodes");
    fails(Format::Gmsh, with("1 0 0 0 0\n", "1 nan 0 0 0\n"), "a:25: node 2 has the coordinate NaN");
    fails(Format::Gmsh, with("\n50\n", "\n3\n"), "a:31: node 3 comes twice");
    fails(Format::Gmsh, with("$EndNodes", "$EndNode"), "a:32: \"$EndNode\" found where `$EndNodes`");
    fails(Format::Gmsh, with("$EndComments", ""), "a:15: section \"Comments\" has no end");
    fails(Format::Gmsh, with("\"body\"", "body"), "a:7: \"body\" is no quoted name");
    fails(Format::Gmsh, &SAMPLE[..SAMPLE.len() - 60], "a:3");
    fails(Format::Gmsh, "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n", "a:4: the file ends without");
    fails(Format::Gmsh, "$Nodes\n", "a:1: a Gmsh file starts");
    let tags: String = (0..1000).map(|tag| format!("{tag} ")).collect();
    let many = with("1 1 1 2 1 2 1 5", &format!("1 1 1 1000 {tags} 1 5"));
    fails(Format::Gmsh, many, "a:42: the cells are in more than 64 physical groups each");
    let bytes = binary(Order::Little);
    fails(Format::Gmsh, &bytes[..bytes.len() - 30], "a: byte ");
    let mut lying = bytes.clone();
    lying[20] = 3;
    fails(Format::Gmsh, &lying, "a:3: the number that shows the byte order is 0x3");
}

#[test]
fn survives_mutations() {
    fuzz(Format::Gmsh, SAMPLE.as_bytes());
    fuzz(Format::Gmsh, &binary(Order::Little));
    fuzz(Format::Gmsh, &binary(Order::Big));
    fuzz(Format::Gmsh, FOUR_ZERO.as_bytes());
    fuzz(Format::Gmsh, &four_zero_binary(Order::Big));
    fuzz(Format::Gmsh, format!("{TWO}{DATA}").as_bytes());
    fuzz(Format::Gmsh, &data_binary(Order::Little));
}
