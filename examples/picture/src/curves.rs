//! Curves over one axis, such as time, each in a small panel of its own.

use super::drawing::{Anchor, Drawing, Letters, Stroke};
use super::plot::{COLORS, FRAME, GRID, Ruler, Spacing, anchored, headed, power};

/// One curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What it shows.
    pub name: String,
    /// Its unit; empty for a pure number.
    pub unit: String,
    /// Shape [n × 2], ascending in the first. What is not finite is left out.
    pub points: Vec<[f64; 2]>,
}

/// Curves, a panel each.
#[derive(Clone, Debug)]
pub struct Curves {
    /// What is shown.
    pub title: String,
    /// A line below that.
    pub subtitle: String,
    /// What the axis to the right shows, and its unit.
    pub along: [String; 2],
    /// The curves.
    pub curves: Vec<Curve>,
}

/// Size of a panel, what lies around its plot at the left, above, at the right and below, and where the first begins.
const PANEL: [f64; 2] = [440.0, 210.0];
const AROUND: [f64; 4] = [76.0, 34.0, 24.0, 28.0];
const TOP: f64 = 68.0;
/// Panels beside each other.
const COLUMNS: usize = 2;
/// Letters of a heading, at most.
const LETTERS: usize = 46;
/// Parts that the lines across a panel cut it in, at most: upward and along.
const PARTS: [f64; 2] = [4.0, 5.0];
/// Numbers in between are written as they are, those outside with a power of ten.
const PLAIN: [f64; 2] = [1e-2, 1e5];
/// Values of one sign that differ by more than such a factor are shown by decades.
const DECADES: f64 = 1e3;
/// Points of a curve: more are not told apart.
const POINTS: usize = 800;

impl Curves {
    /// Draws all panels, two in a row.
    pub fn draw(&self) -> Drawing {
        let rows = self.curves.len().div_ceil(COLUMNS);
        let mut drawing = headed(TOP + PANEL[1] * rows as f64 + 24.0, &self.title, &self.subtitle);
        let all = self.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point[0]));
        let span: Vec<f64> = all.filter(|x| x.is_finite()).collect();
        for (i, curve) in self.curves.iter().enumerate() {
            let corner = [PANEL[0] * (i % COLUMNS) as f64, TOP + PANEL[1] * (i / COLUMNS) as f64];
            // Nothing is below it.
            let is_last = i + COLUMNS >= self.curves.len();
            self.panel(&mut drawing, curve, &span, corner, is_last);
        }
        drawing
    }

    /// `span`: what the axis to the right is to show.
    fn panel(&self, drawing: &mut Drawing, curve: &Curve, span: &[f64], [left, top]: [f64; 2], is_last: bool) {
        let ([left, right], [top, bottom]) =
            ([left + AROUND[0], left + PANEL[0] - AROUND[2]], [top + AROUND[1], top + PANEL[1] - AROUND[3]]);
        let shown = curve.points.iter().filter(|point| point.iter().all(|x| x.is_finite()));
        let points = thinned(&shown.copied().collect::<Vec<_>>());
        let values: Vec<f64> = points.iter().map(|point| point[1]).collect();
        let most = |values: &[f64]| values.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let greatest = most(&values);
        let is_wide = values.iter().all(|x| *x > 0.0) && values.iter().any(|x| x * DECADES < greatest);
        let spacing = if is_wide { Spacing::Log } else { Spacing::Fitted };
        let decades = [decade(most(span)), if is_wide { 0 } else { decade(greatest) }];
        let scales = decades.map(|decade| 10f64.powi(decade));
        let x = Ruler::around(Spacing::Fitted, span.iter().map(|x| x / scales[0]), [left, right], PARTS[1]);
        let y = Ruler::around(spacing, values.iter().map(|x| x / scales[1]), [bottom, top], PARTS[0]).rounded();
        for (value, label) in x.ticks() {
            let at = x.place(value).unwrap_or(left);
            drawing.line(vec![[at, top], [at, bottom]], GRID);
            drawing.text([at, bottom + 18.0], anchored(Anchor::Middle), &label);
        }
        let ticks = y.ticks();
        // Of decades there may be many more than lines have room for.
        let every = ticks.len().div_ceil(2 * PARTS[0] as usize).max(1);
        for (value, label) in ticks.into_iter().step_by(every) {
            let at = y.place(value).unwrap_or(bottom);
            drawing.line(vec![[left, at], [right, at]], GRID);
            drawing.text([left - 8.0, at + 4.5], anchored(Anchor::End), &label);
        }
        drawing.line(vec![[left, top], [left, bottom], [right, bottom]], FRAME);
        let label = |name: &str, unit: &str, k: usize| {
            let scale = if decades[k] == 0 { String::new() } else { format!("{} ", power(decades[k], scales[k])) };
            let unit = format!("{scale}{unit}");
            let unit = unit.trim_end();
            let name: String = name.chars().take(LETTERS - unit.chars().count().min(LETTERS / 2)).collect();
            if unit.is_empty() { name } else { format!("{name}, {unit}") }
        };
        let heading = label(&curve.name, &curve.unit, 1);
        drawing.text([left, top - 12.0], Letters { is_bold: true, ..Letters::default() }, &heading);
        if is_last {
            let [name, unit] = &self.along;
            drawing.text([(left + right) / 2.0, bottom + 40.0], anchored(Anchor::Middle), &label(name, unit, 0));
        }
        let places: Vec<_> =
            points.iter().filter_map(|p| Some([x.place(p[0] / scales[0])?, y.place(p[1] / scales[1])?])).collect();
        match places[..] {
            [one] => drawing.dot(one, 3.0, COLORS[0]),
            _ => drawing.line(places, Stroke { color: COLORS[0], width: 1.8, is_dashed: false }),
        }
    }
}

/// The power of ten that numbers up to `most` are written with, if it takes one.
fn decade(most: f64) -> i32 {
    if most == 0.0 || (PLAIN[0]..PLAIN[1]).contains(&most) { 0 } else { (most.log10().floor() as i32).max(-300) }
}

/// The least and the greatest of runs of points, if there are too many.
fn thinned(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    if points.len() <= POINTS {
        return points.to_vec();
    }
    let ends = |run: &[[f64; 2]]| {
        let of = |i: &usize| run[*i][1];
        let low = (0..run.len()).min_by(|a, b| of(a).total_cmp(&of(b))).unwrap_or(0);
        let high = (0..run.len()).max_by(|a, b| of(a).total_cmp(&of(b))).unwrap_or(0);
        [run[low.min(high)], run[low.max(high)]]
    };
    points.chunks(points.len().div_ceil(POINTS / 2)).flat_map(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svg(values: &[f64]) -> String {
        let points = values.iter().enumerate().map(|(i, &y)| [i as f64, y]).collect();
        let curve = Curve { name: "energy".into(), unit: "J".into(), points };
        let (title, subtitle, along) = ("a & b".into(), String::new(), ["time".into(), "s".into()]);
        Curves { title, subtitle, along, curves: vec![curve] }.draw().svg()
    }

    #[test]
    fn numbers_are_written_short_whatever_their_size() {
        let plain = svg(&[0.0, 0.5, 2.0]);
        assert!(plain.contains("energy, J<") && plain.contains(">2.0<") && plain.contains(">time, s<"), "{plain}");
        assert!(plain.contains("a &amp; b"));
        assert!(svg(&[-3e-7, 2e-7]).contains("energy, 10⁻⁷ J<"));
        assert!(svg(&[1.0, 1e-9]).contains(">10⁻⁹<"), "by decades");
        assert!(svg(&[0.0, 1e6]).contains("energy, 10⁶ J<"));
        for odd in [&[][..], &[f64::NAN], &[0.0], &[f64::INFINITY, 1.0], &[f64::MAX, f64::MIN], &[5e-324, 0.0]] {
            let drawn = svg(odd);
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{odd:?}: {drawn}");
        }
    }

    #[test]
    fn a_peak_among_many_points_is_shown() {
        let mut points: Vec<[f64; 2]> = (0..100_000).map(|i| [f64::from(i), 0.0]).collect();
        points[54_321][1] = 9.0;
        let thin = thinned(&points);
        assert!(thin.len() <= POINTS && thin.contains(&points[54_321]) && thin.is_sorted_by_key(|point| point[0]));
    }
}
