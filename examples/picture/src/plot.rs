//! Plots: lines over two axes, and bars, each drawn as a [`Drawing`].

use super::drawing::{Anchor, Color, Drawing, Letters, Stroke};

/// Colors that people with any color vision tell apart: Okabe and Ito, "Color universal design", 2008; the yellow, too
/// pale for a line, left out.
pub(super) const COLORS: [Color; 7] =
    [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [230, 159, 0], [86, 180, 233], [51, 51, 51]];

/// Size of a plot, and where the axes lie in it.
const WIDTH: f64 = 880.0;
const LEFT: f64 = 84.0;
const TOP: f64 = 74.0;
/// The legend is right of this.
const RIGHT: f64 = 640.0;
const HEIGHT: f64 = 470.0;
const BOTTOM: f64 = 410.0;
/// Parts that the lines across a plot cut it in, at most.
const PARTS: f64 = 6.0;
/// A share of the greatest value below which differences are not shown: rounding in 32 bits, summed.
const FLAT: f64 = 1e-5;
/// A share of the way from one line to the next by which values may lie outside of the last.
const SLACK: f64 = 0.01;

/// How numbers go along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// From zero, evenly.
    Linear,
    /// From the least to the greatest, evenly.
    Fitted,
    /// Decades.
    Log,
}

/// One axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: &'static str,
    /// How its numbers go.
    pub spacing: Spacing,
}

/// What joins the points of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// A line.
    Line,
    /// A dashed one.
    Dashes,
    /// Nothing: dots alone.
    Nothing,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// Which of the seven colors of plots; they begin again after those.
    pub color: usize,
    /// What joins its points.
    pub join: Join,
    /// Whether every point gets a dot.
    pub dots: bool,
    /// Shape [n × 2], ascending in the first. What cannot be shown, such as zero on a log axis, is left out.
    pub points: Vec<[f64; 2]>,
}

/// Lines over two axes, with a legend.
#[derive(Clone, Debug)]
pub struct Lines {
    /// What is shown.
    pub title: &'static str,
    /// A line below that: of what, where, how.
    pub subtitle: String,
    /// The axis to the right.
    pub x: Axis,
    /// The axis upward.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// Bars from zero, in groups, each bar with its number behind it.
#[derive(Clone, Debug)]
pub struct Bars {
    /// What is shown.
    pub title: &'static str,
    /// A line below that: of what, where, how.
    pub subtitle: String,
    /// What the bars show, with the unit.
    pub label: &'static str,
    /// What the bars of a group are, from top to bottom.
    pub legend: Vec<String>,
    /// One below the other, each from zero.
    pub panels: Vec<Panel>,
}

/// Groups of bars under one heading.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What all its bars are of.
    pub heading: String,
    /// Each with its name, and one value for each entry of the legend.
    pub groups: Vec<(String, Vec<f64>)>,
}

/// An axis with its range and its place in the picture.
pub(super) struct Ruler {
    spacing: Spacing,
    low: f64,
    high: f64,
    /// Where `low` and `high` lie.
    ends: [f64; 2],
    /// From one even value with a line across the plot to the next.
    step: f64,
}

impl Ruler {
    /// A range around `values`: from zero, from one to the other end of them, or whole decades and simple parts of them.
    pub(super) fn around(spacing: Spacing, values: impl Iterator<Item = f64>, ends: [f64; 2], most: f64) -> Ruler {
        let shown = |x: &f64| x.is_finite() && (spacing != Spacing::Log || *x > 0.0);
        let least = if spacing == Spacing::Fitted { f64::NEG_INFINITY } else { 0.0 };
        let (mut low, mut high) = values.filter(shown).fold((f64::INFINITY, least), |(a, b), x| (a.min(x), b.max(x)));
        if !low.is_finite() {
            (low, high) = (1.0, 10.0);
        }
        match spacing {
            Spacing::Linear => (low, high) = (0.0, if high > 0.0 { 1.04 * high } else { 1.0 }),
            Spacing::Fitted => {
                // One value alone lies above zero.
                if low == high {
                    (low, high) = if low == 0.0 { (0.0, 1.0) } else { (low.min(0.0), low.max(0.0)) };
                }
                // What differs by rounding alone is a flat line.
                let flat = (FLAT * low.abs().max(high.abs())).max(f64::MIN_POSITIVE);
                let middle = low + (high - low) / 2.0;
                (low, high) = (low.min(middle - flat), high.max(middle + flat));
            }
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
        let step = step(if spacing == Spacing::Fitted { high - low } else { high }, most);
        Ruler { spacing, low, high, ends, step }
    }

    /// The same from one even value with a line to another.
    pub(super) fn rounded(self) -> Ruler {
        match self.spacing {
            Spacing::Fitted => {
                let Ruler { low, high, step, .. } = self;
                Ruler { low: (low / step + SLACK).floor() * step, high: (high / step - SLACK).ceil() * step, ..self }
            }
            _ => self,
        }
    }

    /// Where `x` lies; `None` outside of what the axis can show.
    pub(super) fn place(&self, x: f64) -> Option<f64> {
        let t = match self.spacing {
            Spacing::Linear | Spacing::Fitted => (x - self.low) / (self.high - self.low),
            Spacing::Log => (x / self.low).ln() / (self.high / self.low).ln(),
        };
        t.is_finite().then_some(self.ends[0] + t * (self.ends[1] - self.ends[0]))
    }

    /// Values with a line across the plot, and what is written at it.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let within = |x: &f64| *x >= self.low * (1.0 - 1e-9) && *x <= self.high * (1.0 + 1e-9);
        match self.spacing {
            Spacing::Linear => {
                let step = self.step;
                (0..).map(|i| f64::from(i) * step).take_while(within).map(|x| (x, short(x))).collect()
            }
            Spacing::Fitted => {
                let step = self.step;
                let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
                // Sums that are rounded are not to lose the last, and zero has no sign.
                let [first, last] = [(self.low / step - 1e-6).ceil(), (self.high / step + 1e-6).floor()];
                let value = |i: i32| (first + f64::from(i)) * step + 0.0;
                (0..=(last - first) as i32).map(|i| (value(i), format!("{:.digits$}", value(i)))).collect()
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

/// The simple number that cuts a length in `most` parts at most.
fn step(length: f64, most: f64) -> f64 {
    let rough = length / most;
    let decade = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|k| k * decade).find(|&s| s >= rough);
    step.unwrap_or(rough)
}

/// A number with few digits.
fn short(x: f64) -> String {
    let digits = if x == 0.0 { 0 } else { (1.0 - x.abs().log10().floor()).clamp(0.0, 9.0) as usize };
    let text = format!("{x:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// `10⁵`, `2·10⁵`.
pub(super) fn power(decade: i32, x: f64) -> String {
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

/// An empty drawing under a heading.
pub(super) fn headed(height: f64, title: &str, subtitle: &str) -> Drawing {
    let mut drawing = Drawing::new([WIDTH, height], title);
    let heading = Letters { size: 18.0, is_bold: true, color: [17, 17, 17], ..Letters::default() };
    drawing.text([24.0, 30.0], heading, title);
    drawing.text([24.0, 51.0], Letters { color: [102, 102, 102], ..Letters::default() }, subtitle);
    drawing
}

pub(super) const GRID: Stroke = Stroke { color: [228, 228, 228], width: 1.0, is_dashed: false };
pub(super) const FRAME: Stroke = Stroke { color: [153, 153, 153], width: 1.0, is_dashed: false };

pub(super) fn anchored(anchor: Anchor) -> Letters {
    Letters { anchor, ..Letters::default() }
}

impl Lines {
    /// Draws axes, lines and legend.
    pub fn draw(&self) -> Drawing {
        let mut drawing = headed(HEIGHT, self.title, &self.subtitle);
        let along = |k: usize| self.series.iter().flat_map(move |s| s.points.iter().map(move |p| p[k]));
        let x = Ruler::around(self.x.spacing, along(0), [LEFT, RIGHT], PARTS);
        let y = Ruler::around(self.y.spacing, along(1), [BOTTOM, TOP], PARTS);
        for (value, label) in x.ticks() {
            let at = x.place(value).unwrap_or(LEFT);
            drawing.line(vec![[at, TOP], [at, BOTTOM]], GRID);
            drawing.text([at, BOTTOM + 20.0], anchored(Anchor::Middle), &label);
        }
        for (value, label) in y.ticks() {
            let at = y.place(value).unwrap_or(BOTTOM);
            drawing.line(vec![[LEFT, at], [RIGHT, at]], GRID);
            drawing.text([LEFT - 8.0, at + 4.5], anchored(Anchor::End), &label);
        }
        drawing.line(vec![[LEFT, TOP], [LEFT, BOTTOM], [RIGHT, BOTTOM]], FRAME);
        drawing.text([(LEFT + RIGHT) / 2.0, BOTTOM + 46.0], anchored(Anchor::Middle), self.x.label);
        let upward = Letters { is_upward: true, ..anchored(Anchor::Middle) };
        drawing.text([24.0, (TOP + BOTTOM) / 2.0], upward, self.y.label);
        for (i, series) in self.series.iter().enumerate() {
            let color = COLORS[series.color % COLORS.len()];
            let stroke = Stroke { color, width: 2.0, is_dashed: series.join == Join::Dashes };
            let places: Vec<[f64; 2]> =
                series.points.iter().filter_map(|p| Some([x.place(p[0])?, y.place(p[1])?])).collect();
            let dots = places.iter().filter(|_| series.dots).copied();
            let at = TOP + 10.0 + 22.0 * i as f64;
            // A single point is no line, and its legend neither.
            if series.join != Join::Nothing && (places.len() > 1 || !series.dots) {
                drawing.line(places.clone(), stroke);
                drawing.line(vec![[RIGHT + 18.0, at], [RIGHT + 48.0, at]], stroke);
            }
            for place in dots.chain(series.dots.then_some([RIGHT + 33.0, at])) {
                drawing.dot(place, 3.5, color);
            }
            drawing.text([RIGHT + 56.0, at + 4.5], Letters::default(), &series.name);
        }
        drawing
    }
}

impl Bars {
    /// Draws all panels: the drawing is as high as it must be.
    pub fn draw(&self) -> Drawing {
        // A bar, the space between groups, and the heading of a panel, in pixels.
        const BAR: f64 = 13.0;
        const SPACE: f64 = 9.0;
        const HEADING: f64 = 34.0;
        let (left, right) = (150.0, WIDTH - 90.0);
        let group = BAR * self.legend.len() as f64 + SPACE;
        let groups: usize = self.panels.iter().map(|panel| panel.groups.len()).sum();
        let end = TOP + 24.0 + HEADING * self.panels.len() as f64 + group * groups as f64;
        let mut drawing = headed(end + 56.0, self.title, &self.subtitle);
        let mut at = 24.0;
        for (i, name) in self.legend.iter().enumerate() {
            drawing.rectangle([at, TOP - 6.0], [14.0, 12.0], COLORS[i]);
            drawing.text([at + 20.0, TOP + 4.5], Letters::default(), name);
            at += 44.0 + 7.0 * name.chars().count() as f64;
        }
        let values = self.panels.iter().flat_map(|panel| panel.groups.iter().flat_map(|(_, values)| values));
        let ruler = Ruler::around(Spacing::Linear, values.copied(), [left, right], PARTS);
        for (value, label) in ruler.ticks() {
            let x = ruler.place(value).unwrap_or(left);
            drawing.line(vec![[x, TOP + 24.0], [x, end]], GRID);
            drawing.text([x, end + 18.0], anchored(Anchor::Middle), &label);
        }
        drawing.text([(left + right) / 2.0, end + 42.0], anchored(Anchor::Middle), self.label);
        let mut y = TOP + 24.0;
        for Panel { heading, groups } in &self.panels {
            y += HEADING;
            drawing.text([24.0, y - 11.0], Letters { is_bold: true, ..Letters::default() }, heading);
            for (name, values) in groups {
                drawing.text([left - 8.0, y + (group - SPACE) / 2.0 + 4.5], anchored(Anchor::End), name);
                for (i, &value) in values.iter().enumerate() {
                    // Rounding aside, zero for NaN: its text says so.
                    let x = ruler.place(value).unwrap_or(left);
                    drawing.rectangle([left, y], [x - left, BAR - 2.0], COLORS[i]);
                    drawing.text(
                        [x + 5.0, y + BAR - 3.5],
                        Letters { size: 11.0, ..Letters::default() },
                        &format!("{value:.1}"),
                    );
                    y += BAR;
                }
                y += SPACE;
            }
        }
        drawing.line(vec![[left, TOP + 24.0], [left, end]], FRAME);
        drawing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(spacing: Spacing, values: &[f64]) -> Vec<String> {
        let ruler = Ruler::around(spacing, values.iter().copied(), [0.0, 100.0], PARTS);
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
    fn ticks_between_values_are_even_and_rounding_is_no_change() {
        let labels = |values: &[f64], is_rounded: bool| {
            let ruler = Ruler::around(Spacing::Fitted, values.iter().copied(), [0.0, 100.0], 4.0);
            let ruler = if is_rounded { ruler.rounded() } else { ruler };
            let all = ruler.ticks();
            assert!(all.iter().all(|(x, _)| ruler.place(*x).is_some_and(|at| (-1e-3..=100.001).contains(&at))));
            all.into_iter().map(|(_, label)| label).collect::<Vec<_>>()
        };
        assert_eq!(labels(&[-0.001, 0.0317], true), ["-0.01", "0.00", "0.01", "0.02", "0.03", "0.04"]);
        assert_eq!(labels(&[0.0, 229.3], false), ["0", "100", "200"]);
        assert_eq!(labels(&[0.0, 2.0], false), ["0.0", "0.5", "1.0", "1.5", "2.0"]);
        assert_eq!(labels(&[1000.0, 1000.0001], true), ["999.99", "1000.00", "1000.01"]);
        assert_eq!(labels(&[-1e-5, 0.0317], true)[0], "0.00", "a little below zero");
        assert_eq!(labels(&[7.0, 7.0], true), ["0", "2", "4", "6", "8"]);
    }

    #[test]
    fn ends_of_an_axis_lie_at_its_ends_and_nothing_is_a_plot_too() {
        let ruler = Ruler::around(Spacing::Log, [1.0, 100.0].into_iter(), [400.0, 70.0], PARTS);
        assert_eq!((ruler.place(ruler.low), ruler.place(ruler.high)), (Some(400.0), Some(70.0)));
        assert_eq!(ruler.place(0.0), None);
        assert!(!labels(Spacing::Log, &[]).is_empty() && !labels(Spacing::Linear, &[f64::NAN]).is_empty());
    }
}
