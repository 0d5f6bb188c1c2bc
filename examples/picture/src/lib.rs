//! Pictures of meshes, drawn without a graphics card: a PNG of one state, an animated GIF of a run.
//!
//! [`render`] goes through these steps:
//!
//! 1. [`Camera`] places the box of the whole run in the frame; points move to *scene space*, a unit ball with z up.
//! 2. `figure` computes normals, and `shadow` maps of two lights: a lamp on the left and the sky right above.
//! 3. `raster` finds the nearest primitive of each of 3 × 3 samples a pixel, a band of rows at a time.
//! 4. `shade` lights each primitive of a pixel once, under lights that are looked for once where the primitives are parts of one
//!    surface.
//! 5. `pigment` mixes the colors of the field, and the samples are averaged in linear light.
//! 6. `legend` adds the color bar and the caption.
//!
//! An [`Exposure`] is what comes out of the first four, for a mesh that stands still.
//!
//! [`Skin`] makes triangles of a mesh, and opens solids toward the camera. [`plot`] draws figures over axes.
//!
//! A picture depends on its scene, camera and size alone, not on the number of threads. Triangles with a corner behind
//! the camera are left out as a whole: a camera outside of its box never meets one.
//!
//! ```
//! use meshweft_picture::{Camera, Coloring, Scene, Size, Up, render};
//! let scene = Scene {
//!     points: &[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.5]],
//!     triangles: &[[0, 1, 2]],
//!     coloring: Coloring::Plain([70, 110, 180]),
//!     caption: "one triangle",
//!     ..Scene::default()
//! };
//! let camera = Camera::framing([[0.0; 3], [1.0, 1.0, 0.5]], Up::Z);
//! let picture = render(&scene, &camera, Size { width: 160, height: 120 });
//! assert_eq!(picture.rgb().len(), 3 * 160 * 120);
//! ```

#![forbid(unsafe_code)]

mod animation;
mod camera;
mod colormap;
mod drawing;
mod exposure;
mod figure;
mod legend;
mod palette;
mod pigment;
pub mod plot;
mod raster;
mod section;
mod shade;
mod shadow;
#[cfg(test)]
mod tests;
mod text;
mod vector;

use std::io::{self, Write};
use std::path::Path;

use meshweft_mesh::io::replace;

pub use animation::Animation;
pub use camera::{Camera, Up};
pub use colormap::ColorMap;
pub use drawing::Drawing;
pub use exposure::{Exposure, render};
pub use section::{Mean, Section, Skin};

/// Samples along the side of a pixel.
const GRID: usize = 3;
/// Samples of a pixel.
const SAMPLES: usize = GRID * GRID;

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

impl Default for Coloring<'_> {
    /// A plain blue.
    fn default() -> Self {
        Coloring::Plain([76, 114, 176])
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

/// Columns and rows of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns, in pixels.
    pub width: u32,
    /// Rows, in pixels.
    pub height: u32,
}

/// An image of sRGB pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl Picture {
    /// Columns.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The pixels from the upper left, row after row: shape [height × width × 3], sRGB.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// Writes the picture as a PNG to `path`, which is replaced when the file is whole.
    ///
    /// # Errors
    /// What the file system reports; the message names the path.
    pub fn write_png(&self, path: &Path) -> meshweft_mesh::Result<()> {
        replace(path, |writer| encode(self, png::Compression::Balanced, writer))?;
        Ok(())
    }

    /// Mixes a color into a pixel; nothing happens outside of the picture.
    fn cover(&mut self, x: i64, y: i64, color: [u8; 3], cover: f32) {
        if (0..i64::from(self.width)).contains(&x) && (0..i64::from(self.height)).contains(&y) {
            let at = 3 * (y as usize * self.width as usize + x as usize);
            for (old, new) in self.rgb[at..at + 3].iter_mut().zip(color) {
                *old = (f32::from(*old) + (f32::from(new) - f32::from(*old)) * cover.clamp(0.0, 1.0) + 0.5) as u8;
            }
        }
    }
}

/// Writes a picture in the PNG format.
fn encode(picture: &Picture, compression: png::Compression, writer: impl Write) -> io::Result<()> {
    let mut encoder = png::Encoder::new(writer, picture.width, picture.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(compression);
    encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&picture.rgb)?;
    Ok(writer.finish()?)
}

/// The pixels of a picture that [`encode`] wrote.
fn decode(png: &[u8]) -> io::Result<Vec<u8>> {
    let mut reader = png::Decoder::new(io::Cursor::new(png)).read_info()?;
    let mut rgb = vec![0; reader.output_buffer_size().unwrap_or(0)];
    reader.next_frame(&mut rgb)?;
    Ok(rgb)
}
