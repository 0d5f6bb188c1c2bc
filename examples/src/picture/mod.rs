//! Pictures of meshes, drawn without a graphics card: a PNG of one state, an animated GIF of a run.
//!
//! [`render`] goes through these steps:
//!
//! 1. [`Camera`] places the box of the whole run in the frame; points move to *scene space*, a unit ball with z up.
//! 2. `figure` computes normals, and `shadow` maps of two lights: a lamp on the left and the sky right above.
//! 3. `raster` finds the nearest primitive of each of 3 × 3 samples a pixel, a band of rows at a time.
//! 4. `shade` colors each primitive of a pixel once, under lights that are looked for once where the primitives are parts of one
//!    surface; the samples are averaged in linear light.
//! 5. `legend` adds the color bar and the caption.
//!
//! [`Skin`] makes triangles of a mesh, and opens solids toward the camera.
//!
//! A picture depends on its scene, camera and size alone, not on the number of threads. Triangles with a corner behind
//! the camera are left out as a whole: a camera outside of its box never meets one.
//!
//! ```
//! use meshweft_examples::picture::{Camera, Coloring, Scene, Size, Up, render};
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

mod animation;
mod camera;
mod colormap;
mod figure;
mod legend;
mod palette;
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
use rayon::prelude::*;

pub use animation::Animation;
pub use camera::{Camera, Up};
pub use colormap::ColorMap;
pub use section::{Mean, Section, Skin};

use camera::View;
use figure::Figure;
use raster::{Band, Bands, LANES, NOTHING, Sample};
use shade::Part;
use vector::Vector;

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

/// Rows of a band of pixels: its samples fit into the cache of a core, and there are enough bands for many cores.
const BAND: usize = 8;

/// Draws a scene. A size of 0 counts as 1. Cost: about 3 bytes a pixel and 100 bytes a triangle of memory; time grows with the
/// pixels that show something, and for meshes finer than these with the triangles.
pub fn render(scene: &Scene, camera: &Camera, size: Size) -> Picture {
    let size = Size { width: size.width.max(1), height: size.height.max(1) };
    let (width, height) = (size.width as usize, size.height as usize);
    let frame = legend::frame(scene, size).map(|x| x * GRID as f32);
    let view = View::new(camera, height * GRID, frame);
    let figure = Figure::new(scene, view, GRID as f32, (width * height) as f32, legend::unit_of(size).max(0.9));
    let across = (width * GRID).next_multiple_of(LANES);
    let extent = |id| figure.extent(id, across as f32);
    let bands = Bands::sort(height * GRID, BAND * GRID, figure.primitives(), extent);

    let mut rgb = vec![0; 3 * width * height];
    rgb.par_chunks_mut(3 * width * BAND).enumerate().for_each(|(b, pixels)| {
        let rows = b * BAND * GRID..(b * BAND + pixels.len() / (3 * width)) * GRID;
        let mut samples = vec![Sample::default(); across * rows.len()];
        let mut band = Band { width: across, rows, samples: &mut samples };
        bands.primitives(b).iter().for_each(|&id| figure.paint(id, &mut band));
        for (i, out) in pixels.chunks_exact_mut(3).enumerate() {
            let (x, y) = (i % width, b * BAND + i / width);
            let behind = shade::background(x as f32 / width as f32, y as f32 / height as f32);
            out.copy_from_slice(&colormap::to_bytes(pixel(&figure, &band, [x, y], behind)));
        }
    });
    let mut picture = Picture { width: size.width, height: size.height, rgb };
    legend::draw(scene, &mut picture);
    picture
}

/// Color of a pixel in front of the background `behind`: its samples, put together by what they show.
fn pixel(figure: &Figure, band: &Band, [x, y]: [usize; 2], behind: Vector) -> Vector {
    let first = (y * GRID - band.rows.start) * band.width + x * GRID;
    let id_of = |s: usize| {
        let sample = band.samples[first + s / GRID * band.width + s % GRID];
        let buried = |height| figure.view.plane_inverse_depth(height, place(x, y, s)) > sample.near();
        match sample.id() {
            NOTHING => NOTHING,
            _ if figure.ground.is_some_and(buried) => NOTHING,
            id => id,
        }
    };
    let ids: [u32; SAMPLES] = std::array::from_fn(id_of);
    let (mut parts, mut count) = ([Part::default(); SAMPLES], 0);
    if ids == [ids[0]; SAMPLES] {
        if ids[0] == NOTHING && figure.ground.is_none() {
            return behind;
        }
        let sum = place(x, y, SAMPLES / 2).map(|x| x * SAMPLES as f32);
        (parts[0], count) = (Part { id: ids[0], samples: SAMPLES as f32, sum }, 1);
    } else {
        for (s, &id) in ids.iter().enumerate() {
            let slot = parts[..count].iter().position(|part| part.id == id).unwrap_or(count);
            count = count.max(slot + 1);
            let (part, at) = (&mut parts[slot], place(x, y, s));
            *part = Part { id, samples: part.samples + 1.0, sum: [part.sum[0] + at[0], part.sum[1] + at[1]] };
        }
    }
    figure.pixel_color(&parts[..count], [x, y], behind)
}

/// Where sample `s` of a pixel is, in samples.
fn place(x: usize, y: usize, s: usize) -> [f32; 2] {
    [(x * GRID + s % GRID) as f32 + 0.5, (y * GRID + s / GRID) as f32 + 0.5]
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
