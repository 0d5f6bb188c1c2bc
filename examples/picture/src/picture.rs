//! Pixels, and files of them.

use meshweft_mesh::io::replace;
use std::io::{self, Write};
use std::path::Path;

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
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) rgb: Vec<u8>,
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
    pub(super) fn cover(&mut self, x: i64, y: i64, color: [u8; 3], cover: f32) {
        if (0..i64::from(self.width)).contains(&x) && (0..i64::from(self.height)).contains(&y) {
            let at = 3 * (y as usize * self.width as usize + x as usize);
            for (old, new) in self.rgb[at..at + 3].iter_mut().zip(color) {
                *old = (f32::from(*old) + (f32::from(new) - f32::from(*old)) * cover.clamp(0.0, 1.0) + 0.5) as u8;
            }
        }
    }
}

/// Writes a picture in the PNG format.
pub(super) fn encode(picture: &Picture, compression: png::Compression, writer: impl Write) -> io::Result<()> {
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
pub(super) fn decode(png: &[u8]) -> io::Result<Vec<u8>> {
    let mut reader = png::Decoder::new(io::Cursor::new(png)).read_info()?;
    let mut rgb = vec![0; reader.output_buffer_size().unwrap_or(0)];
    reader.next_frame(&mut rgb)?;
    Ok(rgb)
}
