//! What a scene shows but for the colors of its field.
//!
//! What hides what, and how it is lit, costs nearly all of a picture and depends on the points alone. So a film of a mesh that stands
//! still looks for it once, and colors it for each frame.

use meshweft_mesh::parallel;

use super::camera::{Camera, View};
use super::figure::Figure;
use super::picture::{Picture, Size};
use super::pigment::Pigments;
use super::raster::{Band, Bands, GRID, LANES, NOTHING, SAMPLES, Sample};
use super::scene::Scene;
use super::shade::{self, Part, Tint, Workbench};
use super::vector::{Vector, add, mul};
use super::{colormap, legend};

/// Rows of a band of pixels, an even number: its samples fit into the cache of a core, and there are enough bands for many cores.
const BAND: usize = 8;

/// A scene before a camera, to be colored again and again.
///
/// ```
/// use meshweft_picture::{Camera, ColorMap, Coloring, Exposure, Scene, Size, Up, render};
/// let (points, camera) = ([[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.5]], Camera::framing([[0.0; 3], [1.0, 1.0, 0.5]], Up::Z));
/// let size = Size { width: 160, height: 120 };
/// let scene = |values| Scene {
///     points: &points,
///     triangles: &[[0, 1, 2]],
///     coloring: Coloring::Scalar { label: "height (m)", values, range: [0.0, 1.0], map: ColorMap::Viridis },
///     ..Scene::default()
/// };
/// let exposure = Exposure::new(&scene(&[0.0; 3]), &camera, size);
/// let later = scene(&[1.0, 0.5, 0.0]);
/// assert_eq!(exposure.develop(&later), render(&later, &camera, size));
/// ```
pub struct Exposure {
    size: Size,
    bands: Vec<Light>,
}

/// The light from some pixels.
struct Light {
    /// For each pixel that of known color, and where its tints end.
    pixels: Vec<(Vector, u32)>,
    tints: Vec<Tint>,
}

impl Exposure {
    /// Exposes a scene, of whose coloring only the kind counts, and a plain color. A size of 0 counts as 1.
    ///
    /// Cost: 16 bytes a pixel, 36 more for each triangle, line or dot that it shows, and while it is made 100 bytes a triangle; time
    /// as for [`render`].
    pub fn new(scene: &Scene, camera: &Camera, size: Size) -> Exposure {
        let stage = Stage::new(scene, camera, size);
        let bands = parallel::map_with(stage.bands(), Vec::new, |samples, b| stage.expose(b, samples));
        Exposure { size: stage.size, bands }
    }

    /// The picture of a scene that differs from the exposed one in its numbers, their colors and the caption alone. Cost: some
    /// milliseconds for 300,000 pixels.
    pub fn develop(&self, scene: &Scene) -> Picture {
        let pigments = Pigments::new(&scene.coloring);
        picture(scene, self.size, |b, pixels| self.bands[b].develop(&pigments, pixels))
    }
}

/// Draws a scene. A size of 0 counts as 1. Cost: about 3 bytes a pixel and 100 bytes a triangle of memory; time grows with the
/// pixels that show something, and for meshes finer than these with the triangles.
pub fn render(scene: &Scene, camera: &Camera, size: Size) -> Picture {
    let stage = Stage::new(scene, camera, size);
    let pigments = Pigments::new(&scene.coloring);
    picture(scene, stage.size, |b, pixels| stage.expose(b, &mut Vec::new()).develop(&pigments, pixels))
}

/// A picture whose bands of pixels `draw` makes, with its legend.
fn picture(scene: &Scene, size: Size, draw: impl Fn(usize, &mut [u8]) + Sync) -> Picture {
    let mut rgb = vec![0; 3 * size.width as usize * size.height as usize];
    let bands = rgb.chunks_mut(3 * size.width as usize * BAND).enumerate();
    parallel::each(bands, |(b, pixels)| draw(b, pixels));
    let mut picture = Picture { width: size.width, height: size.height, rgb };
    legend::draw(scene, &mut picture);
    picture
}

impl Light {
    /// The sRGB pixels in the colors of a field.
    fn develop(&self, pigments: &Pigments, rgb: &mut [u8]) {
        let mut first = 0;
        for (&(light, end), out) in self.pixels.iter().zip(rgb.as_chunks_mut::<3>().0) {
            let tints = &self.tints[first..end as usize];
            let tinted = |sum, tint: &Tint| add(sum, mul(pigments.mix(&tint.corners, &tint.weights), tint.times));
            *out = colormap::to_bytes(tints.iter().fold(light, tinted));
            first = end as usize;
        }
    }
}

/// A figure in its picture, and where each of its primitives is.
struct Stage {
    size: Size,
    figure: Figure,
    /// Samples of a row.
    across: usize,
    primitives: Bands,
}

impl Stage {
    fn new(scene: &Scene, camera: &Camera, size: Size) -> Stage {
        let size = Size { width: size.width.max(1), height: size.height.max(1) };
        let (width, height) = (size.width as usize, size.height as usize);
        let frame = legend::frame(scene, size).map(|x| x * GRID as f32);
        let view = View::new(camera, height * GRID, frame);
        let figure = Figure::new(scene, view, GRID as f32, (width * height) as f32, legend::unit_of(size).max(0.9));
        let across = (width * GRID).next_multiple_of(LANES);
        let extent = |id| figure.extent(id, across as f32);
        let primitives = Bands::sort(height * GRID, BAND * GRID, figure.primitives(), extent);
        Stage { size, figure, across, primitives }
    }

    /// Number of bands.
    fn bands(&self) -> usize {
        (self.size.height as usize).div_ceil(BAND)
    }

    /// The light of a band. `samples` is room to work in.
    fn expose(&self, b: usize, samples: &mut Vec<Sample>) -> Light {
        let (width, height) = (self.size.width as usize, self.size.height as usize);
        let rows = b * BAND..height.min((b + 1) * BAND);
        let pixels = rows.len() * width;
        samples.clear();
        samples.resize(self.across * rows.len() * GRID, Sample::default());
        let mut band = Band { width: self.across, rows: rows.start * GRID..rows.end * GRID, samples };
        self.primitives.primitives(b).iter().for_each(|&id| self.figure.paint(id, &mut band));
        let mut light = Light { pixels: Vec::with_capacity(pixels), tints: Vec::new() };
        let mut bench = Workbench::new(width);
        for y in rows {
            bench.turn_to(y);
            let behind = shade::background(y as f32 / height as f32);
            for x in 0..width {
                let behind = behind(x as f32 / width as f32);
                find_parts(&self.figure, &band, [x, y], &mut bench.parts);
                let own = match bench.parts[..] {
                    [] => behind,
                    _ => self.figure.pixel_light(&mut bench, [x, y], behind, &mut light.tints),
                };
                light.pixels.push((own, light.tints.len() as u32));
            }
        }
        light
    }
}

/// Finds out what the samples of a pixel show; nothing is no part where there is no ground either.
#[inline]
fn find_parts(figure: &Figure, band: &Band, [x, y]: [usize; 2], parts: &mut Vec<Part>) {
    parts.clear();
    let first = (y * GRID - band.rows.start) * band.width + x * GRID;
    let mut ids = [NOTHING; SAMPLES];
    for (j, ids) in ids.as_chunks_mut::<GRID>().0.iter_mut().enumerate() {
        let row: &[Sample] = &band.samples[first + j * band.width..][..GRID];
        (0..GRID).for_each(|i| ids[i] = row[i].id());
        if let Some(height) = figure.ground {
            for i in (0..GRID).filter(|&i| row[i].id() != NOTHING) {
                let ground = figure.view.plane_inverse_depth(height, place(x, y, j * GRID + i));
                if ground > row[i].near() {
                    ids[i] = NOTHING;
                }
            }
        }
    }
    if ids.iter().fold(0, |differ, id| differ | (id ^ ids[0])) == 0 {
        if ids[0] != NOTHING || figure.ground.is_some() {
            let sum = place(x, y, SAMPLES / 2).map(|x| x * SAMPLES as f32);
            parts.push(Part { id: ids[0], samples: SAMPLES as f32, sum });
        }
        return;
    }
    for (s, id) in ids.into_iter().enumerate() {
        let at = place(x, y, s);
        match parts.iter_mut().find(|part| part.id == id) {
            Some(part) => part.add(at),
            None => parts.push(Part { id, samples: 1.0, sum: at }),
        }
    }
}

/// Where sample `s` of a pixel is, in samples.
#[inline]
fn place(x: usize, y: usize, s: usize) -> [f32; 2] {
    [(x * GRID + s % GRID) as f32 + 0.5, (y * GRID + s / GRID) as f32 + 0.5]
}
