//! The roofline of a plan (Williams, Waterman and Patterson 2009): what limits each order, as a picture.
//!
//! To the right how many states an update reads for each byte that it moves, up how many are read a second. Under the slanted lines
//! memory is the limit, under the level ones the cores are; a dot far below both waits for something else.

use super::row::Row;
use super::table::Table;
use crate::cli::text;
use anyhow::{Context, Result};
use meshweft_mesh::io::replace;
use meshweft_picture::Drawing;
use meshweft_picture::plot::{Axis, Join, Lines, Series, Spacing};
use std::path::{Path, PathBuf};

/// Bytes that a cache holds, and that none does.
const SMALL: f64 = 2e6;
const LARGE: f64 = 1e12;

impl Table<'_> {
    /// Writes the roofline as SVG and PNG.
    ///
    /// # Errors
    /// What the file system reports.
    pub(super) fn draw(&self, folder: &Path) -> Result<[PathBuf; 2]> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let drawing = self.roofline();
        let [svg, png] = ["roofline.svg", "roofline.png"].map(|name| folder.join(name));
        replace(&svg, |writer| writer.write_all(drawing.svg().as_bytes()))?;
        drawing.picture(2.0).write_png(&png)?;
        Ok([svg, png])
    }

    /// All orders on all threads of this machine, under its roofs.
    fn roofline(&self) -> Drawing {
        let threads = self.machine.threads;
        let is_shown = |row: &&Row| row.gpu.is_none() && row.place.hosts == 1 && row.place.threads == threads;
        // Of each key the quickest size of blocks: others would hide it.
        let mut rows: Vec<&Row> = Vec::new();
        for row in self.rows.iter().filter(is_shown) {
            if rows.iter().all(|other| other.order.key.name() != row.order.key.name()) {
                rows.push(row);
            }
        }
        let intensity = |row: &Row| row.reads_per_update * self.vertices as f64 / row.bytes.max(1.0);
        let places = || rows.iter().map(|row| intensity(row));
        let ends = [places().fold(f64::INFINITY, f64::min) / 6.0, places().fold(0.0, f64::max) * 6.0];
        let mut series = Vec::new();
        let counts = if threads > 1 { vec![threads, 1] } else { vec![1] };
        for (name, bytes, color) in [("memory", LARGE, 6), ("a cache", SMALL, 5)] {
            for &count in &counts {
                let rate = 1e-9 / self.machine.byte_s(count, bytes);
                let ceiling = self.ceiling(count);
                // A slope, and from where it meets the ceiling on, that.
                let corner = (ceiling / rate).clamp(ends[0], ends[1]);
                let points = [ends[0], corner, ends[1]].map(|x| [x, (rate * x).min(ceiling)]).to_vec();
                let join = if count == 1 { Join::Dashes } else { Join::Line };
                let name = format!("{name}, {}", text::counted(count, "thread", "threads"));
                series.push(Series { name, color, join, dots: false, points });
            }
        }
        series.extend(rows.iter().enumerate().map(|(i, row)| {
            let speed = 1e-9 * row.reads_per_update * self.vertices as f64 / row.prediction.round_s();
            Series {
                name: row.order.to_string(),
                color: [0, 1, 2, 3, 4, 6][i % 6],
                join: Join::Line,
                dots: true,
                points: vec![[intensity(row), speed]],
            }
        }));
        Lines {
            title: "What limits each order",
            subtitle: format!(
                "{} on {}, {}: predicted for {}, of each order the best size of blocks, under the roofs of this machine",
                self.plan.entry.info.name,
                self.plan.mesh.to_string_lossy(),
                self.plan.precision(),
                text::counted(threads, "thread", "threads"),
            ),
            x: Axis { label: "states read a byte moved", spacing: Spacing::Log },
            y: Axis { label: "billion states read a second", spacing: Spacing::Log },
            series,
        }
        .draw()
    }

    /// Billion states that so many threads read a second, if all of it is in a cache: of the order that computes quickest.
    fn ceiling(&self, threads: usize) -> f64 {
        let fastest = self.rows.iter().map(|row| row.read_s).fold(f64::INFINITY, f64::min);
        1e-9 * threads as f64 / fastest
    }
}
