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
//! [`Skin`] makes triangles of a mesh, and opens solids toward the camera. [`plot`] draws figures over axes, [`curves`] what was measured over time.
//!
//! A [`Model`] is a file of glTF, which other programs draw.
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
pub mod curves;
mod drawing;
mod exposure;
mod figure;
mod gltf;
mod legend;
mod palette;
mod picture;
mod pigment;
pub mod plot;
mod raster;
mod scene;
mod section;
mod shade;
mod shadow;
#[cfg(test)]
mod tests;
mod text;
mod vector;

pub use animation::Animation;
pub use camera::{Camera, Up};
pub use colormap::ColorMap;
pub use drawing::Drawing;
pub use exposure::{Exposure, render};
pub use gltf::{Key, Model};
pub use picture::{Picture, Size};
pub use scene::{Coloring, DISTINCT, Prop, Scene};
pub use section::{Mean, Section, Skin};
