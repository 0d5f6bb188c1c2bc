//! Plots as SVG text: lines over two axes, and bars.
//!
//! Plain shapes and system fonts, so that any browser shows them and a change of a figure is a small change of the file.

use std::fmt::Write as _;

/// Colors that people with any color vision tell apart: Okabe and Ito, "Color universal design", 2008; the yellow, too
/// pale for a line, left out.
pub(super) const COLORS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333"];

/// Size of a plot, and where the axes lie in it.
const WIDTH: f64 = 880.0;
const LEFT: f64 = 84.0;
const TOP: f64 = 74.0;
/// The legend is right of this.
const RIGHT: f64 = 640.0;
const HEIGHT: f64 = 470.0;
const BOTTOM: f64 = 410.0;

/// How numbers go along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spacing {
    /// From zero, evenly.
    Linear,
    /// Decades.
    Log,
}

/// One axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// What it shows, with the unit.
    pub(super) label: &'static str,
    pub(super) spacing: Spacing,
}

/// One line.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    /// An index into [`COLORS`].
    pub(super) color: usize,
    pub(super) dashed: bool,
    /// Whether every point gets a dot.
    pub(super) dots: bool,
    /// Shape [n × 2], ascending in the first. What cannot be shown, such as zero on a log axis, is left out.
    pub(super) points: Vec<[f64; 2]>,
}

/// Lines over two axes, with a legend.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    pub(super) title: &'static str,
    pub(super) subtitle: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
}

/// Bars from zero, in groups, each bar with its number behind it.
#[derive(Clone, Debug)]
pub(super) struct Bars {
    pub(super) title: &'static str,
    pub(super) subtitle: String,
    /// What the bars show, with the unit.
    pub(super) label: &'static str,
    /// What the bars of a group are, from top to bottom.
    pub(super) legend: Vec<String>,
    pub(super) panels: Vec<Panel>,
}

/// Groups of bars under one heading.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    pub(super) heading: String,
    /// Each with its name, and one value for each entry of the legend.
    pub(super) groups: Vec<(String, Vec<f64>)>,
}

/// An axis with its range and its place in the picture.
struct Ruler {
    spacing: Spacing,
    low: f64,
    high: f64,
    /// Where `low` and `high` lie.
    ends: [f64; 2],
}

impl Ruler {
    /// A range around `values`: from zero, or whole decades and simple parts of them.
    fn around(spacing: Spacing, values: impl Iterator<Item = f64>, ends: [f64; 2]) -> Ruler {
        let shown = |x: &f64| x.is_finite() && (spacing == Spacing::Linear || *x > 0.0);
        let (mut low, mut high) = values.filter(shown).fold((f64::INFINITY, 0.0f64), |(a, b), x| (a.min(x), b.max(x)));
        if !low.is_finite() {
            (low, high) = (1.0, 10.0);
        }
        match spacing {
            Spacing::Linear => (low, high) = (0.0, if high > 0.0 { 1.04 * high } else { 1.0 }),
            Spacing::Log => {
                // The next of 1, 2, 5 in its decade, with some air.
                (low, high) = (low / 1.08, high * 1.08);
                let simple = |x: f64, up: bool| {
                    let decade = 10f64.powf(x.log10().floor());
                    let candidates = [1.0, 2.0, 5.0, 10.0].map(|k| k * decade);
                    match up {
                        true => candidates.into_iter().find(|&c| c >= x).unwrap_or(10.0 * decade),
                        false => candidates.into_iter().rfind(|&c| c <= x).unwrap_or(decade),
                    }
                };
                (low, high) = (simple(low, false), simple(high, true));
            }
        }
        Ruler { spacing, low, high, ends }
    }

    /// Where `x` lies; `None` outside of what the axis can show.
    fn place(&self, x: f64) -> Option<f64> {
        let t = match self.spacing {
            Spacing::Linear => (x - self.low) / (self.high - self.low),
            Spacing::Log => (x / self.low).ln() / (self.high / self.low).ln(),
        };
        t.is_finite().then_some(self.ends[0] + t * (self.ends[1] - self.ends[0]))
    }

    /// Values with a line across the plot, and what is written at it.
    fn ticks(&self) -> Vec<(f64, String)> {
        let within = |x: &f64| *x >= self.low * (1.0 - 1e-9) && *x <= self.high * (1.0 + 1e-9);
        match self.spacing {
            Spacing::Linear => {
                let rough = self.high / 6.0;
                let decade = 10f64.powf(rough.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|k| k * decade).find(|&s| s >= rough);
                let step = step.unwrap_or(rough);
                (0..).map(|i| f64::from(i) * step).take_while(within).map(|x| (x, short(x))).collect()
            }
            Spacing::Log => {
                let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
                // Over many decades there is room for powers of ten only.
                let few = (self.high / self.low).log10() <= 2.6;
                let parts: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let values = decades.flat_map(|d| parts.iter().map(move |k| (d, k * 10f64.powi(d))));
                let label = |(d, x): (i32, f64)| (x, if few && x < 1e4 { short(x) } else { power(d, x) });
                values.filter(|(_, x)| within(x)).map(label).collect()
            }
        }
    }
}

/// A number with few digits.
fn short(x: f64) -> String {
    let digits = if x == 0.0 { 0 } else { (1.0 - x.abs().log10().floor()).clamp(0.0, 9.0) as usize };
    let text = format!("{x:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// `10⁵`, `2·10⁵`.
fn power(decade: i32, x: f64) -> String {
    let digit = |c: char| {
        if c == '-' {
            '⁻'
        } else {
            ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][c as usize - '0' as usize]
        }
    };
    let exponent: String = decade.to_string().chars().map(digit).collect();
    match (x / 10f64.powi(decade)).round() {
        1.0 => format!("10{exponent}"),
        k => format!("{k}·10{exponent}"),
    }
}

/// A picture being written.
struct Canvas(String);

impl Canvas {
    fn new(height: f64, title: &str, subtitle: &str) -> Canvas {
        let mut canvas = Canvas(String::new());
        // A ground of its own: the page that shows it may be dark.
        let _ = writeln!(
            canvas.0,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\" font-family=\"'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif\" \
             font-size=\"13\" fill=\"#333\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>",
            escaped(title)
        );
        canvas.text([24.0, 30.0], "font-size=\"18\" font-weight=\"600\" fill=\"#111\"", title);
        canvas.text([24.0, 51.0], "fill=\"#666\"", subtitle);
        canvas
    }

    fn text(&mut self, [x, y]: [f64; 2], style: &str, text: &str) {
        let _ = writeln!(self.0, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{}</text>", escaped(text));
    }

    fn line(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], style: &str) {
        let _ = writeln!(self.0, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>");
    }

    fn rect(&mut self, [x, y]: [f64; 2], [width, height]: [f64; 2], fill: &str) {
        let _ = writeln!(
            self.0,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"1.5\" fill=\"{fill}\"/>"
        );
    }

    fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

const GRID: &str = "stroke=\"#e4e4e4\"";
const FRAME: &str = "stroke=\"#999\"";
const END: &str = "text-anchor=\"end\"";
const MIDDLE: &str = "text-anchor=\"middle\"";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Lines {
    /// The picture.
    pub(super) fn svg(&self) -> String {
        let mut canvas = Canvas::new(HEIGHT, self.title, &self.subtitle);
        let along = |k: usize| self.series.iter().flat_map(move |s| s.points.iter().map(move |p| p[k]));
        let x = Ruler::around(self.x.spacing, along(0), [LEFT, RIGHT]);
        let y = Ruler::around(self.y.spacing, along(1), [BOTTOM, TOP]);
        for (value, label) in x.ticks() {
            let at = x.place(value).unwrap_or(LEFT);
            canvas.line([at, TOP], [at, BOTTOM], GRID);
            canvas.text([at, BOTTOM + 20.0], MIDDLE, &label);
        }
        for (value, label) in y.ticks() {
            let at = y.place(value).unwrap_or(BOTTOM);
            canvas.line([LEFT, at], [RIGHT, at], GRID);
            canvas.text([LEFT - 8.0, at + 4.5], END, &label);
        }
        canvas.line([LEFT, BOTTOM], [RIGHT, BOTTOM], FRAME);
        canvas.line([LEFT, TOP], [LEFT, BOTTOM], FRAME);
        canvas.text([(LEFT + RIGHT) / 2.0, BOTTOM + 46.0], MIDDLE, self.x.label);
        let middle = (TOP + BOTTOM) / 2.0;
        let turned = format!("{MIDDLE} transform=\"rotate(-90 24 {middle:.1})\"");
        canvas.text([24.0, middle], &turned, self.y.label);
        for (i, series) in self.series.iter().enumerate() {
            let color = COLORS[series.color % COLORS.len()];
            let dashes = if series.dashed { " stroke-dasharray=\"6 4\"" } else { "" };
            let style =
                format!("fill=\"none\" stroke=\"{color}\" stroke-width=\"2\" stroke-linejoin=\"round\"{dashes}");
            let places: Vec<[f64; 2]> =
                series.points.iter().filter_map(|p| Some([x.place(p[0])?, y.place(p[1])?])).collect();
            let path: Vec<String> = places.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
            let _ = writeln!(canvas.0, "<polyline points=\"{}\" {style}/>", path.join(" "));
            for [x, y] in places.iter().filter(|_| series.dots) {
                let _ = writeln!(canvas.0, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{color}\"/>");
            }
            let at = TOP + 10.0 + 22.0 * i as f64;
            let line = format!("stroke=\"{color}\" stroke-width=\"2\"{dashes}");
            canvas.line([RIGHT + 18.0, at], [RIGHT + 48.0, at], &line);
            if series.dots {
                let _ = writeln!(canvas.0, "<circle cx=\"{}\" cy=\"{at}\" r=\"3.5\" fill=\"{color}\"/>", RIGHT + 33.0);
            }
            canvas.text([RIGHT + 56.0, at + 4.5], "", &series.name);
        }
        canvas.finish()
    }
}

impl Bars {
    /// The picture: as high as it must be.
    pub(super) fn svg(&self) -> String {
        // A bar, the space between groups, and the heading of a panel, in pixels.
        const BAR: f64 = 13.0;
        const SPACE: f64 = 9.0;
        const HEADING: f64 = 34.0;
        let (left, right) = (150.0, WIDTH - 90.0);
        let group = BAR * self.legend.len() as f64 + SPACE;
        let groups: usize = self.panels.iter().map(|panel| panel.groups.len()).sum();
        let end = TOP + 24.0 + HEADING * self.panels.len() as f64 + group * groups as f64;
        let mut canvas = Canvas::new(end + 56.0, self.title, &self.subtitle);
        let mut at = 24.0;
        for (i, name) in self.legend.iter().enumerate() {
            canvas.rect([at, TOP - 6.0], [14.0, 12.0], COLORS[i]);
            canvas.text([at + 20.0, TOP + 4.5], "", name);
            at += 44.0 + 7.0 * name.chars().count() as f64;
        }
        let values = self.panels.iter().flat_map(|panel| panel.groups.iter().flat_map(|(_, values)| values));
        let ruler = Ruler::around(Spacing::Linear, values.copied(), [left, right]);
        for (value, label) in ruler.ticks() {
            let x = ruler.place(value).unwrap_or(left);
            canvas.line([x, TOP + 24.0], [x, end], GRID);
            canvas.text([x, end + 18.0], MIDDLE, &label);
        }
        canvas.text([(left + right) / 2.0, end + 42.0], MIDDLE, self.label);
        let mut y = TOP + 24.0;
        for Panel { heading, groups } in &self.panels {
            y += HEADING;
            canvas.text([24.0, y - 11.0], "font-weight=\"600\"", heading);
            for (name, values) in groups {
                canvas.text([left - 8.0, y + (group - SPACE) / 2.0 + 4.5], END, name);
                for (i, &value) in values.iter().enumerate() {
                    // Rounding aside, zero for what is no number: its text says so.
                    let x = ruler.place(value).unwrap_or(left);
                    canvas.rect([left, y], [x - left, BAR - 2.0], COLORS[i]);
                    canvas.text([x + 5.0, y + BAR - 3.5], "font-size=\"11\"", &format!("{value:.1}"));
                    y += BAR;
                }
                y += SPACE;
            }
        }
        canvas.line([left, TOP + 24.0], [left, end], FRAME);
        canvas.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(spacing: Spacing, values: &[f64]) -> Vec<String> {
        let ruler = Ruler::around(spacing, values.iter().copied(), [0.0, 100.0]);
        ruler.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_simple_numbers() {
        assert_eq!(labels(Spacing::Linear, &[0.3, 5.0]), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(labels(Spacing::Linear, &[0.02]), ["0", "0.005", "0.01", "0.015", "0.02"]);
        assert_eq!(labels(Spacing::Log, &[3.0, 40.0]), ["2", "5", "10", "20", "50"]);
        assert_eq!(labels(Spacing::Log, &[1.2e4, 9e6]), ["10⁴", "10⁵", "10⁶", "10⁷"][..].to_vec());
        assert_eq!(labels(Spacing::Log, &[1.2e4, 9e4]), ["10⁴", "2·10⁴", "5·10⁴", "10⁵"]);
        assert_eq!(labels(Spacing::Log, &[1e-3, 1.0]).first().map(String::as_str), Some("10⁻³"));
    }

    #[test]
    fn ends_of_an_axis_lie_at_its_ends_and_nothing_is_a_plot_too() {
        let ruler = Ruler::around(Spacing::Log, [1.0, 100.0].into_iter(), [400.0, 70.0]);
        assert_eq!((ruler.place(ruler.low), ruler.place(ruler.high)), (Some(400.0), Some(70.0)));
        assert_eq!(ruler.place(0.0), None);
        assert!(!labels(Spacing::Log, &[]).is_empty() && !labels(Spacing::Linear, &[f64::NAN]).is_empty());
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("a < b & c"), "a &lt; b &amp; c");
    }
}
