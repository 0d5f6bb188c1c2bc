//! The margins of a picture: where the scene ends, the color bar and the caption.

use super::camera::Frame;
use super::colormap::ColorMap;
use super::picture::{Picture, Size};
use super::scene::{Coloring, Scene};
use super::text;

const INK: [u8; 3] = [44, 50, 58];
const FAINT: [u8; 3] = [120, 128, 138];

/// Sizes in pixels grow with the picture: 1 for one of 720 rows.
pub(super) fn unit_of(size: Size) -> f32 {
    (size.height.min(size.width) as f32 / 720.0).clamp(0.6, 4.0)
}

/// The part of the picture for the scene, in pixels, between the margins that its bar and its caption need.
pub(super) fn frame(scene: &Scene, size: Size) -> Frame {
    let (width, height) = (size.width as f32, size.height as f32);
    let right = match scene.coloring {
        Coloring::Plain(_) => 0.05 * width,
        Coloring::Scalar { .. } | Coloring::Kinds { .. } => (0.03 * width + 118.0 * unit_of(size)).min(0.3 * width),
    };
    let bottom = if scene.caption.is_empty() { 0.05 } else { 0.09 };
    [0.05 * width, 0.05 * height, width - right, (1.0 - bottom) * height]
}

/// Writes the caption and draws the color bar over a picture.
pub(super) fn draw(scene: &Scene, picture: &mut Picture) {
    let size = Size { width: picture.width(), height: picture.height() };
    let u = unit_of(size);
    let (width, height) = (size.width as f32, size.height as f32);
    text::write(picture, scene.caption, 19.0 * u, [24.0 * u, height - 22.0 * u], INK);
    let left = (width - 104.0 * u).max(frame(scene, size)[2] + 6.0); // a small picture has no room for numbers
    match &scene.coloring {
        Coloring::Plain(_) => {}
        Coloring::Scalar { label, range, map, .. } => {
            bar(picture, label, *range, *map, [left, 0.24 * height, 16.0 * u, 0.5 * height], u);
        }
        Coloring::Kinds { kinds, .. } => list(picture, kinds, [left, 0.08 * height], u),
    }
}

/// A square of each color with the name of its kind, from (left, top) down to the end of the picture.
fn list(picture: &mut Picture, kinds: &[(String, [u8; 3])], [left, top]: [f32; 2], u: f32) {
    let (size, side) = (16.0 * u, (14.0 * u).round() as i64);
    for (row, (name, color)) in kinds.iter().filter(|kind| !kind.0.is_empty()).enumerate() {
        let y = (top + row as f32 * 24.0 * u).round() as i64;
        for (i, j) in (-1..=side).flat_map(|j| (-1..=side).map(move |i| (i, j))) {
            let rim = i < 0 || j < 0 || i == side || j == side;
            picture.cover(left as i64 + i, y + j, if rim { FAINT } else { *color }, 1.0);
        }
        text::write(picture, name, size, [left + side as f32 + 8.0 * u, (y + side) as f32 - 0.1 * size], INK);
    }
}

/// A bar in the rectangle (left, top, width, height) with ticks to its right and the label above.
fn bar(picture: &mut Picture, label: &str, range: [f64; 2], map: ColorMap, [left, top, width, height]: Frame, u: f32) {
    let [left, top] = [left.round(), top.round()];
    let (columns, rows) = (width.round().max(4.0) as i64, height.round().max(8.0) as i64);
    for j in -1..=rows {
        let color = map.color((rows - 1 - j) as f32 / (rows - 1) as f32).map(|x| (x * 255.0 + 0.5) as u8);
        for i in -1..=columns {
            let rim = i < 0 || j < 0 || i == columns || j == rows;
            picture.cover(left as i64 + i, top as i64 + j, if rim { FAINT } else { color }, 1.0);
        }
    }
    let size = 16.0 * u;
    for (place, number) in ticks(range) {
        let y = top + (1.0 - place) * (rows - 1) as f32;
        let right = left as i64 + columns;
        (0..(5.0 * u).ceil() as i64).for_each(|i| picture.cover(right + 1 + i, y.round() as i64, FAINT, 1.0));
        let x = right as f32 + (5.0 * u).ceil() + 5.0 * u;
        text::write(picture, &number, size, [x, y.round() + 0.36 * size], INK);
    }
    // Above the bar, as far to the right as the margin allows.
    let size = 17.0 * u;
    let edge = picture.width() as f32 - 18.0 * u;
    let x = (left - 2.0).min(edge - text::width(label, size)).max(4.0);
    text::write(picture, label, size, [x, top - 14.0 * u], INK);
}

/// Places along the bar, 0 to 1, and the numbers there: multiples of a round step, at least two of them.
fn ticks([low, high]: [f64; 2]) -> Vec<(f32, String)> {
    let width = high - low;
    let largest = low.abs().max(high.abs());
    if !width.is_finite() || width.abs() <= largest * 1e-12 {
        let shown = if low.is_finite() { number(low, largest, largest * 1e-2) } else { "?".to_owned() };
        return vec![(0.5, shown)];
    }
    let step = round_step(width.abs() / 7.0);
    let (least, most) = (low.min(high), low.max(high));
    let first = (least / step - 1e-6).ceil();
    let count = ((most / step + 1e-6).floor() - first) as usize + 1;
    let tick = |i: usize| {
        let x = (first + i as f64) * step;
        (((x - low) / width) as f32, number(x, largest, step))
    };
    (0..count.min(12)).map(tick).collect()
}

/// The number 1, 2 or 5 times a power of ten that is nearest above `least`; 1 for none.
pub(super) fn round_step(least: f64) -> f64 {
    if !(least > 1e-300 && least.is_finite()) {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|&s| s >= least * (1.0 - 1e-9)).unwrap_or(power)
}

/// `x` with the digits that tell it from its neighbors at a distance of `step`; `largest` decides the notation.
fn number(x: f64, largest: f64, step: f64) -> String {
    let digits = |unit: f64| (-(step / unit).log10() - 1e-6).ceil().clamp(0.0, 9.0) as usize;
    let power = largest.log10().floor();
    let x = if x.abs() < step * 1e-6 { 0.0 } else { x };
    let text = if x == 0.0 {
        "0".to_owned()
    } else if (-3.0..6.0).contains(&power) {
        format!("{x:.*}", digits(1.0))
    } else {
        let unit = 10f64.powf(power);
        format!("{:.*}e{power}", digits(unit), x / unit)
    };
    text.replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        let check = |range, expected: &[&str]| {
            assert_eq!(ticks(range).into_iter().map(|(_, text)| text).collect::<Vec<_>>(), expected, "{range:?}");
        };
        check([0.0, 1.0], &["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        check([-0.31, 0.31], &["−0.3", "−0.2", "−0.1", "0", "0.1", "0.2", "0.3"]);
        check([293.0, 318.0], &["295", "300", "305", "310", "315"]);
        check([0.0, 4.2e-7], &["0", "1e−7", "2e−7", "3e−7", "4e−7"]);
        check([0.0, 3e8], &["0", "0.5e8", "1.0e8", "1.5e8", "2.0e8", "2.5e8", "3.0e8"]);
        check([7.0, 7.0], &["7.00"]);
        check([f64::NAN, 1.0], &["?"]);
        for range in [[f64::MIN, f64::MAX], [0.0, 5e-324], [1e300, 1e301], [1.0, -1.0], [1e15, 1e15 + 2.0]] {
            ticks(range);
        }
    }
}
