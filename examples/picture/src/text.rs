//! Lines of text in a picture, in DejaVu Sans.

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};

use super::picture::Picture;

static FONT: LazyLock<FontRef<'static>> =
    LazyLock::new(|| FontRef::try_from_slice(dejavu::sans::regular()).expect("the font in the program is whole"));

/// Width of a text in pixels, `size` pixels high from the top of an ascender to the bottom of a descender.
pub(super) fn width(text: &str, size: f32) -> f32 {
    place(text, size, |_, _| ())
}

/// Writes from (x, y) on, the left end of the baseline, in an sRGB color. What is outside of the picture is cut off.
pub(super) fn write(picture: &mut Picture, text: &str, size: f32, [x, y]: [f32; 2], color: [u8; 3]) {
    paint(text, size, [x, y], |i, j, cover| picture.cover(i, j, color, cover));
}

/// The same from below to above: (x, y) is the lower end of the baseline.
pub(super) fn write_upward(picture: &mut Picture, text: &str, size: f32, [x, y]: [f32; 2], color: [u8; 3]) {
    let (left, low) = (x.round() as i64, y.round() as i64);
    paint(text, size, [0.0, 0.0], |i, j, cover| picture.cover(left + j, low - i, color, cover));
}

/// Calls `each` with every pixel that a text touches and how much of it.
fn paint(text: &str, size: f32, [x, y]: [f32; 2], mut each: impl FnMut(i64, i64, f32)) {
    place(text, size, |glyph, advance| {
        let glyph = glyph.with_scale_and_position(PxScale::from(size), point(x + advance, y));
        if let Some(outline) = FONT.outline_glyph(glyph) {
            let corner = outline.px_bounds().min;
            outline.draw(|i, j, cover| each(corner.x as i64 + i as i64, corner.y as i64 + j as i64, cover));
        }
    });
}

/// Calls `each` with every glyph and its distance from the start of the line; returns the length of the line.
fn place(text: &str, size: f32, mut each: impl FnMut(ab_glyph::GlyphId, f32)) -> f32 {
    let font = FONT.as_scaled(PxScale::from(size));
    let mut advance = 0.0;
    let mut last = None;
    for c in text.chars().filter(|c| !c.is_control()) {
        let glyph = font.glyph_id(c);
        advance += last.map_or(0.0, |last| font.kern(last, glyph));
        each(glyph, advance);
        advance += font.h_advance(glyph);
        last = Some(glyph);
    }
    advance
}
