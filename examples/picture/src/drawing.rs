//! Flat drawings: lines, dots, rectangles and text, as SVG text or as pixels.
//!
//! Plain shapes and system fonts, so that any browser shows the SVG and a change of a figure is a small change of the file.

use super::picture::Picture;
use super::text;
use std::fmt::Write as _;

/// A place: to the right, and down.
pub(super) type Place = [f64; 2];

/// An sRGB color.
pub(super) type Color = [u8; 3];

/// Which end of a text its place is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Anchor {
    #[default]
    Start,
    Middle,
    End,
}

/// How a text is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letters {
    pub(super) size: f64,
    pub(super) color: Color,
    pub(super) anchor: Anchor,
    pub(super) is_bold: bool,
    /// From below to above.
    pub(super) is_upward: bool,
}

impl Default for Letters {
    fn default() -> Letters {
        Letters { size: 13.0, color: [51, 51, 51], anchor: Anchor::Start, is_bold: false, is_upward: false }
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    pub(super) color: Color,
    pub(super) width: f64,
    pub(super) is_dashed: bool,
}

#[derive(Clone, Debug)]
enum Shape {
    Text(Place, Letters, String),
    Line(Vec<Place>, Stroke),
    Dot(Place, f64, Color),
    Rectangle(Place, [f64; 2], Color),
}

/// Shapes on white ground, the last in front: what a plot is drawn as.
#[derive(Clone, Debug)]
pub struct Drawing {
    title: String,
    size: [f64; 2],
    shapes: Vec<Shape>,
}

/// Lengths of a dash and of the gap after it.
const DASH: [f64; 2] = [6.0, 4.0];

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn hex([r, g, b]: Color) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

impl Drawing {
    /// An empty one. `title`: what it shows, for who cannot see it.
    pub(super) fn new(size: [f64; 2], title: &str) -> Drawing {
        Drawing { title: title.to_string(), size, shapes: Vec::new() }
    }

    pub(super) fn text(&mut self, at: Place, letters: Letters, text: &str) {
        self.shapes.push(Shape::Text(at, letters, text.to_string()));
    }

    pub(super) fn line(&mut self, points: Vec<Place>, stroke: Stroke) {
        self.shapes.push(Shape::Line(points, stroke));
    }

    pub(super) fn dot(&mut self, at: Place, radius: f64, color: Color) {
        self.shapes.push(Shape::Dot(at, radius, color));
    }

    pub(super) fn rectangle(&mut self, corner: Place, size: [f64; 2], color: Color) {
        self.shapes.push(Shape::Rectangle(corner, size, color));
    }

    /// Writes the drawing as SVG.
    pub fn svg(&self) -> String {
        let [width, height] = self.size;
        // A ground of its own: the page that shows it may be dark.
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" font-family=\"'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n\
             <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
            escaped(&self.title)
        );
        for shape in &self.shapes {
            let _ = match shape {
                Shape::Text([x, y], letters, text) => {
                    let anchor = match letters.anchor {
                        Anchor::Start => "",
                        Anchor::Middle => " text-anchor=\"middle\"",
                        Anchor::End => " text-anchor=\"end\"",
                    };
                    let weight = if letters.is_bold { " font-weight=\"600\"" } else { "" };
                    let turned = match letters.is_upward {
                        true => format!(" transform=\"rotate(-90 {x:.1} {y:.1})\""),
                        false => String::new(),
                    };
                    let (size, color, text) = (letters.size, hex(letters.color), escaped(text));
                    writeln!(
                        svg,
                        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{color}\"{anchor}{weight}{turned}>{text}</text>"
                    )
                }
                Shape::Line(points, Stroke { color, width, is_dashed }) => {
                    let path: Vec<String> = points.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
                    let dashes = if *is_dashed { " stroke-dasharray=\"6 4\"" } else { "" };
                    let (path, color) = (path.join(" "), hex(*color));
                    writeln!(
                        svg,
                        "<polyline points=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dashes}/>"
                    )
                }
                Shape::Dot([x, y], radius, color) => {
                    writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{}\"/>", hex(*color))
                }
                Shape::Rectangle([x, y], [width, height], color) => writeln!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{}\"/>",
                    hex(*color)
                ),
            };
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Draws it in pixels, `zoom` of them along a unit of the SVG, at most 8192 each way.
    pub fn picture(&self, zoom: f64) -> Picture {
        let [width, height] = self.size.map(|length| (length * zoom).ceil().clamp(1.0, 8192.0) as u32);
        let mut picture = Picture { width, height, rgb: vec![255; 3 * (width * height) as usize] };
        let zoomed = |place: Place| place.map(|x| x * zoom);
        for shape in &self.shapes {
            match shape {
                Shape::Text(at, letters, text) => write(&mut picture, text, zoomed(*at), letters, zoom),
                Shape::Line(points, stroke) => {
                    let points: Vec<Place> = points.iter().map(|&place| zoomed(place)).collect();
                    let (mut gone, radius) = (0.0, stroke.width * zoom / 2.0);
                    for ends in points.windows(2) {
                        let length = f64::hypot(ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]);
                        match stroke.is_dashed {
                            true => dashes(gone, length, DASH.map(|d| d * zoom)).for_each(|range| {
                                rod(&mut picture, range.map(|t| along(ends, t / length)), radius, stroke.color);
                            }),
                            false => rod(&mut picture, [ends[0], ends[1]], radius, stroke.color),
                        }
                        gone += length;
                    }
                }
                Shape::Dot(at, radius, color) => rod(&mut picture, [zoomed(*at); 2], radius * zoom, *color),
                Shape::Rectangle(corner, size, color) => fill(&mut picture, zoomed(*corner), zoomed(*size), *color),
            }
        }
        picture
    }
}

fn along(ends: &[Place], t: f64) -> Place {
    [0, 1].map(|k| ends[0][k] + t * (ends[1][k] - ends[0][k]))
}

/// The parts of a stretch that are drawn, if so much of the line is behind it.
fn dashes(gone: f64, length: f64, [dash, gap]: [f64; 2]) -> impl Iterator<Item = [f64; 2]> {
    let period = dash + gap;
    let first = (gone / period).floor();
    let starts = (0..).map(move |i| (first + f64::from(i)) * period - gone).take_while(move |start| *start < length);
    starts.map(move |start| [start.max(0.0), (start + dash).min(length)]).filter(|[start, end]| end > start)
}

/// Pixels of a range of places, cut to what a picture may have.
fn pixels(low: f64, high: f64, most: u32) -> std::ops::Range<i64> {
    let most = f64::from(most);
    low.floor().clamp(0.0, most) as i64..high.ceil().clamp(0.0, most) as i64
}

/// A line with round ends: a dot where both are one.
fn rod(picture: &mut Picture, [a, b]: [Place; 2], radius: f64, color: Color) {
    let margin = radius + 1.0;
    let [width, height] = [picture.width, picture.height];
    let rows = pixels(a[1].min(b[1]) - margin, a[1].max(b[1]) + margin, height);
    let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
    let square = dx * dx + dy * dy;
    for y in rows {
        for x in pixels(a[0].min(b[0]) - margin, a[0].max(b[0]) + margin, width) {
            let (px, py) = (x as f64 + 0.5 - a[0], y as f64 + 0.5 - a[1]);
            let t = if square > 0.0 { ((px * dx + py * dy) / square).clamp(0.0, 1.0) } else { 0.0 };
            let distance = f64::hypot(px - t * dx, py - t * dy);
            // A thin line covers no pixel whole.
            let cover = (radius + 0.5 - distance).clamp(0.0, f64::min(1.0, 2.0 * radius));
            picture.cover(x, y, color, cover as f32);
        }
    }
}

fn fill(picture: &mut Picture, [x, y]: Place, [width, height]: [f64; 2], color: Color) {
    let part = |pixel: i64, start: f64, length: f64| {
        ((pixel as f64 + 1.0).min(start + length) - (pixel as f64).max(start)).clamp(0.0, 1.0)
    };
    for row in pixels(y, y + height, picture.height) {
        for column in pixels(x, x + width, picture.width) {
            let cover = part(row, y, height) * part(column, x, width);
            picture.cover(column, row, color, cover as f32);
        }
    }
}

/// Fonts of browsers are named by the height of a line less a seventh.
const LINE: f32 = 1.16;

fn write(picture: &mut Picture, words: &str, [x, y]: Place, letters: &Letters, zoom: f64) {
    let size = (letters.size * zoom) as f32 * LINE;
    let start = match letters.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => -0.5 * text::width(words, size),
        Anchor::End => -text::width(words, size),
    };
    let (x, y) = (x as f32, y as f32);
    // Twice, a little apart, is bold.
    let times: &[f32] = if letters.is_bold { &[-0.25, 0.25] } else { &[0.0] };
    for aside in times {
        let aside = aside * zoom as f32;
        match letters.is_upward {
            false => text::write(picture, words, size, [x + start + aside, y], letters.color),
            true => text::write_upward(picture, words, size, [x, y - start - aside], letters.color),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: Color = [255, 0, 0];

    fn at(picture: &Picture, x: usize, y: usize) -> [u8; 3] {
        let at = 3 * (y * picture.width() as usize + x);
        picture.rgb()[at..at + 3].try_into().unwrap()
    }

    #[test]
    fn shapes_are_where_both_kinds_of_files_say() {
        let mut drawing = Drawing::new([40.0, 20.0], "a < b & c");
        drawing.rectangle([2.0, 3.0], [4.0, 5.0], RED);
        drawing.line(vec![[10.0, 10.0], [30.0, 10.0]], Stroke { color: RED, width: 2.0, is_dashed: false });
        drawing.dot([36.0, 10.0], 2.0, RED);
        let picture = drawing.picture(2.0);
        assert_eq!((picture.width(), picture.height()), (80, 40));
        for (x, y, is_red) in [
            (4, 6, true),
            (11, 15, true),
            (12, 15, false),
            (4, 5, false),
            (40, 20, true),
            (72, 20, true),
            (40, 26, false),
        ] {
            assert_eq!(at(&picture, x, y) == RED, is_red, "{x} {y}: {:?}", at(&picture, x, y));
        }
        let svg = drawing.svg();
        assert!(svg.contains("a &lt; b &amp; c") && svg.contains("points=\"10.0,10.0 30.0,10.0\""), "{svg}");
    }

    #[test]
    fn dashes_go_on_around_corners() {
        let all: Vec<_> = dashes(0.0, 18.0, [6.0, 4.0]).collect();
        assert_eq!(all, [[0.0, 6.0], [10.0, 16.0]]);
        assert_eq!(dashes(14.0, 10.0, [6.0, 4.0]).collect::<Vec<_>>(), [[0.0, 2.0], [6.0, 10.0]]);
    }

    #[test]
    fn text_upward_is_text_turned_by_a_quarter() {
        let mut pictures = [[60.0, 30.0], [30.0, 60.0]].map(|size| Drawing::new(size, ""));
        pictures[0].text([5.0, 20.0], Letters::default(), "ab");
        pictures[1].text([20.0, 55.0], Letters { is_upward: true, ..Letters::default() }, "ab");
        let [flat, turned] = pictures.map(|drawing| drawing.picture(1.0));
        let dark = |picture: &Picture| picture.rgb().iter().filter(|&&x| x < 128).count();
        assert!(dark(&flat) > 20 && dark(&flat) == dark(&turned), "{} {}", dark(&flat), dark(&turned));
        assert!((0..30).all(|y| (0..60).all(|x| x == 0 || at(&flat, x, y) == at(&turned, y, 60 - x))));
    }
}
