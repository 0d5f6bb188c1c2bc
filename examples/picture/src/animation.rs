//! Pictures one after the other, written as an animated GIF.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU8;

use meshweft_mesh::parallel;

use super::palette::{Census, Palette, TRANSPARENT};
use super::picture::{Picture, decode, encode};
use meshweft_mesh::io::replace;

/// Frames that are quantized together: enough for many cores, few enough to hold uncompressed.
const BATCH: usize = 16;

/// The frames of an animation that repeats forever.
///
/// The frames share one palette of 255 colors, which is why the file is written at the end. Until then each frame is
/// held compressed without loss: about 0.2 MB for 640 × 480 pixels.
pub struct Animation {
    delay_cs: u16,
    size: Option<[u16; 2]>,
    frames: Vec<Vec<u8>>,
    census: Census,
}

impl Animation {
    /// An animation without frames; each will be shown for `delay_cs` hundredths of a second. Most viewers show a frame
    /// for at least 2.
    pub fn new(delay_cs: u16) -> Animation {
        Animation { delay_cs, size: None, frames: Vec::new(), census: Census::new() }
    }

    /// Adds frames, which are compressed in parallel.
    ///
    /// # Errors
    /// A picture of another size than the first one, or of more than 65535 rows or columns.
    pub fn push(&mut self, pictures: &[Picture]) -> io::Result<()> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
        for picture in pictures {
            let (width, height) = (picture.width(), picture.height());
            let (Ok(columns), Ok(rows)) = (u16::try_from(width), u16::try_from(height)) else {
                return Err(invalid(format!("frame of {width} × {height} pixels: a GIF has at most 65535 × 65535")));
            };
            let [first_columns, first_rows] = *self.size.get_or_insert([columns, rows]);
            if [first_columns, first_rows] != [columns, rows] {
                return Err(invalid(format!(
                    "frame of {width} × {height} pixels in an animation of {first_columns} × {first_rows}"
                )));
            }
        }
        let compress = |picture: &Picture| {
            let mut bytes = Vec::new();
            encode(picture, png::Compression::Fast, &mut bytes).map(|()| bytes)
        };
        self.frames.extend(parallel::map(pictures, compress).into_iter().collect::<io::Result<Vec<_>>>()?);
        pictures.iter().for_each(|picture| self.census.count(picture.rgb()));
        Ok(())
    }

    /// Number of frames so far.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there is no frame yet.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Writes the animation as a GIF to `path`, which is replaced when the file is whole.
    ///
    /// # Errors
    /// No frame, or what the file system reports; the message names the path.
    pub fn finish(self, path: &Path) -> meshweft_mesh::Result<()> {
        replace(path, |writer| {
            let Some([width, height]) = self.size else {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "an animation needs at least one frame"));
            };
            let palette = self.census.palette();
            let known: Vec<AtomicU8> = Palette::empty_memory();
            let failed = |e: gif::EncodingError| io::Error::other(e.to_string());
            let mut encoder = gif::Encoder::new(writer, width, height, &palette.bytes()).map_err(failed)?;
            encoder.set_repeat(gif::Repeat::Infinite).map_err(failed)?;
            let mut before: Vec<u8> = Vec::new();
            for batch in self.frames.chunks(BATCH) {
                let dither = |bytes: &Vec<u8>| Ok(palette.dither(&decode(bytes)?, usize::from(width), &known));
                let indices = parallel::map(batch, dither).into_iter().collect::<io::Result<Vec<Vec<u8>>>>()?;
                let frames = parallel::map(0..batch.len(), |i| {
                    let last = if i == 0 { &before } else { &indices[i - 1] };
                    let mut frame = change(last, &indices[i], usize::from(width));
                    frame.delay = self.delay_cs;
                    frame.make_lzw_pre_encoded();
                    frame
                });
                for frame in &frames {
                    encoder.write_lzw_pre_encoded_frame(frame).map_err(failed)?;
                }
                before = indices.into_iter().next_back().unwrap_or_default();
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// The rectangle of a frame that differs from the one before, transparent where it does not: long runs of one index
/// are what the compression of GIF likes. All of it if there is none before; one pixel if nothing differs.
fn change(before: &[u8], now: &[u8], width: usize) -> gif::Frame<'static> {
    let differs = |i: usize| before.get(i) != Some(&now[i]);
    let (mut low, mut high) = ([usize::MAX; 2], [0; 2]);
    for i in (0..now.len()).filter(|&i| differs(i)) {
        for (k, x) in [i % width, i / width].into_iter().enumerate() {
            low[k] = low[k].min(x);
            high[k] = high[k].max(x);
        }
    }
    if low[0] > high[0] {
        (low, high) = ([0; 2], [0; 2]);
    }
    let mut buffer = Vec::with_capacity((high[0] + 1 - low[0]) * (high[1] + 1 - low[1]));
    for y in low[1]..=high[1] {
        let row = y * width + low[0]..=y * width + high[0];
        buffer.extend(row.map(|i| if differs(i) { now[i] } else { TRANSPARENT }));
    }
    gif::Frame {
        left: low[0] as u16,
        top: low[1] as u16,
        width: (high[0] + 1 - low[0]) as u16,
        height: (high[1] + 1 - low[1]) as u16,
        transparent: Some(TRANSPARENT),
        dispose: gif::DisposalMethod::Keep,
        buffer: Cow::Owned(buffer),
        ..gif::Frame::default()
    }
}
