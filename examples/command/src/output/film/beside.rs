//! The films of several runs as one.

use super::{Film, file};
use crate::Look;
use crate::output::config::Config;
use anyhow::{Context, Result};
use meshweft_picture::Prop;
use std::io::Write;

/// From one run to the next, in sizes of the largest.
const PITCH: f64 = 1.15;
/// The least size of a run along x and y, as a part of its largest: what stands upright needs room to be seen.
const LEAST: f64 = 0.4;

impl Film {
    /// Lays films out on a grid along x and y, in rows of which the first is farthest from the camera's usual place. They are of one
    /// example and drawn in one way. A film that has fewer frames than others stays at its last.
    ///
    /// # Errors
    /// A file that cannot be read or written.
    pub(in crate::output) fn side_by_side(config: &Config, name: String, mut films: Vec<Film>) -> Result<Option<Film>> {
        films.retain(|film| !film.times.is_empty());
        let Some(longest) = films.iter().max_by_key(|film| film.times.len()) else { return Ok(None) };
        let (times, columns) = (longest.times.clone(), (films.len() as f64).sqrt().ceil() as usize);
        let size = |k: usize| films.iter().map(|film| film.bounds[1][k] - film.bounds[0][k]).fold(0.0, f64::max);
        let sizes = [0, 1, 2].map(|k| Some(size(k)).filter(|size| size.is_finite()).unwrap_or(0.0));
        let least = LEAST * sizes.into_iter().fold(0.0, f64::max);
        let pitch = [0, 1].map(|k| PITCH * sizes[k].max(least));
        let moved = |i: usize, [x, y, z]: [f64; 3]| {
            [x + (i % columns) as f64 * pitch[0], y - (i / columns) as f64 * pitch[1], z]
        };
        // Where times differ there is none to be told.
        let has_time = films.iter().all(|film| film.times.iter().zip(&times).all(|(a, b)| a == b));
        let (mut props, mut triangles, mut faces, mut edges) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut places, mut corners) = (0, 0);
        for (i, film) in films.iter().enumerate() {
            let first = places as u32;
            triangles.extend(film.triangles.iter().map(|corners| corners.map(|v| first + v)));
            faces.extend(film.faces.iter().map(|corners| corners.map(|v| first + v)));
            edges.extend(film.edges.iter().map(|ends| ends.map(|v| first + v)));
            props.extend(film.look.props.iter().filter_map(|prop| match *prop {
                Prop::Ball { center, radius } => Some(Prop::Ball { center: moved(i, center), radius }),
                // A floor has no sides, so one is enough.
                Prop::Ground { height } => (i == 0).then_some(Prop::Ground { height }),
            }));
            places += film.places();
            corners += film.corners;
        }
        let first = &films[0];
        let look = Look { props, ..first.look.clone() };
        let (style, color) = (first.style.clone(), first.color.clone());
        let mut all = Film {
            name,
            has_time,
            bounds: Film::around(&look),
            look,
            style,
            color,
            shown: (0..places as u32).collect(),
            cuts: Vec::new(),
            triangles,
            faces,
            edges,
            apart: first.apart,
            corners,
            still: None,
            file: file(config, false)?,
            shows: String::new(),
            times: Vec::new(),
            ranges: Vec::new(),
        };
        for (frame, &time) in times.iter().enumerate() {
            let (mut points, mut colors, mut corners) = (Vec::with_capacity(places), Vec::new(), Vec::new());
            for (i, film) in films.iter_mut().enumerate() {
                let numbers = film.read(frame.min(film.times.len() - 1))?;
                let [own, values, cells] = film.parts(&numbers);
                corners.extend(cells.iter().map(|&v| points.len() as f64 + v));
                let own = film.still.as_deref().unwrap_or(own.as_chunks().0);
                points.extend(own.iter().map(|&p| moved(i, p)));
                colors.extend_from_slice(values);
            }
            all.see(points.iter().copied(), colors.iter().copied());
            let bytes: Vec<u8> =
                points.as_flattened().iter().chain(&colors).chain(&corners).flat_map(|x| x.to_le_bytes()).collect();
            all.file.write_all(&bytes).context("cannot keep a frame of the animation (--no-pictures does without)")?;
            all.times.push(time);
        }
        Ok(Some(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Style;
    use crate::output::copies::Record;
    use crate::template::Diffusion;
    use crate::{Entry, Options, Settings};
    use meshweft_mesh::generate::generate;

    #[test]
    fn films_lie_on_a_grid_and_a_shorter_one_stays_at_its_last_frame() {
        let (folder, entry) = (tempfile::tempdir().unwrap(), Entry::of::<Diffusion>());
        let config = Config {
            folder: folder.path().to_owned(),
            name: entry.info.name,
            steps: 3,
            every: 1,
            state_every: 1,
            fields: None,
            pictures: true,
            pieces: false,
            style: Style::default(),
            threads: 1,
            resumable: false,
        };
        let film = |steps: u64| {
            let mesh = generate("sheet:5", 1).unwrap();
            let mut run = entry.start(mesh, &Settings::new(entry.info.settings), &Options::default()).unwrap();
            let mut record = Record::new(&config, &run, true, Some(1)).unwrap();
            record.look(&mut run, false).unwrap();
            for _ in 0..steps {
                run.step().unwrap();
                record.look(&mut run, false).unwrap();
            }
            record.into_film().unwrap()
        };
        let mut single = film(3);
        let films = vec![film(3), film(1), film(3)];
        let mut all = Film::side_by_side(&config, "three".into(), films).unwrap().unwrap();
        let own = single.places();
        assert_eq!((all.places(), all.times.len(), all.triangles.len()), (3 * own, 4, 3 * single.triangles.len()));
        let (first, count) = (single.triangles[1], single.triangles.len());
        assert_eq!(all.triangles[count + 1], first.map(|v| v + own as u32));
        assert!(all.caption(0.0).starts_with("three  t = 0"));
        let (numbers, alone) = (all.read(3).unwrap(), [1, 3].map(|frame| single.read(frame).unwrap()));
        let (points, colors) = numbers.split_at(9 * own);
        // Beside each other, then in the next row toward the camera.
        let at = |copy: usize| -> [f64; 3] { points[3 * copy * own..][..3].try_into().unwrap() };
        let [a, b, c] = [0, 1, 2].map(at);
        assert!(b[0] - a[0] > 1.1 && b[1..] == a[1..] && a[1] - c[1] > 1.1 && c[0] == a[0], "{a:?} {b:?} {c:?}");
        let color = |numbers: &[f64]| numbers[numbers.len() - own..].to_vec();
        assert_eq!(colors, [color(&alone[1]), color(&alone[0]), color(&alone[1])].concat());
        assert_ne!(color(&alone[0]), color(&alone[1]));
        assert!(Film::side_by_side(&config, "none".into(), Vec::new()).unwrap().is_none());
    }
}
