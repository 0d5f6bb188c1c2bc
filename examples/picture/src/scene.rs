//! What is drawn: a mesh, where its colors come from, and things around it.

use super::colormap::ColorMap;

/// What is drawn in one picture. Coordinates are in any unit; those that are not finite are left out.
#[derive(Clone, Debug, Default)]
pub struct Scene<'a> {
    /// Coordinates, shape [points × 3]. Without triangles each point is a dot.
    pub points: &'a [[f64; 3]],
    /// Corners of the surface, shape [triangles × 3]: both sides are drawn.
    pub triangles: &'a [[u32; 3]],
    /// The same of the faces of a cut: they are lit so evenly that their colors are those of the bar.
    pub faces: &'a [[u32; 3]],
    /// Ends of lines, shape [edges × 2]: thin rods, or with triangles the wires of the surface.
    pub edges: &'a [[u32; 2]],
    /// The color of points, lines and triangles.
    pub coloring: Coloring<'a>,
    /// Things around the mesh.
    pub props: Vec<Prop>,
    /// A line of text at the bottom, such as `cloth  t = 1.25 s`; may be empty.
    pub caption: &'a str,
}

/// Where colors come from.
#[derive(Clone, Debug)]
pub enum Coloring<'a> {
    /// One sRGB color; the back of a surface gets a lighter one.
    Plain([u8; 3]),
    /// A number at every point, with a color bar.
    Scalar {
        /// Name and unit of the numbers, such as `temperature (K)`.
        label: &'a str,
        /// The numbers, shape `[points]`. What is not there or NaN is gray.
        values: &'a [f64],
        /// The numbers at the ends of the map: see [`ColorMap::range_of`]. Keep it over a run.
        range: [f64; 2],
        /// From numbers to colors.
        map: ColorMap,
    },
    /// A kind of every point, with a list of kinds. A triangle or line has at each place the color of its nearest corner.
    Kinds {
        /// The kind of each point, shape `[points]`. What is not there is gray.
        of: &'a [u32],
        /// Name and sRGB color of each kind; kinds without a name are not listed.
        kinds: &'a [(String, [u8; 3])],
    },
}

/// Colors that are easy to tell apart, also for most who are color-blind: Okabe and Ito, Color Universal Design, 2008, with
/// gray instead of black.
pub const DISTINCT: [[u8; 3]; 8] = [
    [0, 114, 178],
    [230, 159, 0],
    [0, 158, 115],
    [204, 121, 167],
    [86, 180, 233],
    [213, 94, 0],
    [240, 228, 66],
    [110, 110, 110],
];

/// A plain blue.
pub(super) const PLAIN: [u8; 3] = [76, 114, 176];

impl Default for Coloring<'_> {
    /// A plain blue.
    fn default() -> Self {
        Coloring::Plain(PLAIN)
    }
}

/// A thing that is no part of the mesh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Prop {
    /// A ball, in the coordinates of the points.
    Ball {
        /// Its center.
        center: [f64; 3],
        /// Its radius.
        radius: f64,
    },
    /// A level floor that fades into the background. The last one counts.
    Ground {
        /// Its coordinate along the up axis.
        height: f64,
    },
}
