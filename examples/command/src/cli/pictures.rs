//! How a run is drawn: the options of its pictures.

use super::options::{Words, one_of};
use crate::output::Style;
use clap::Args;
use meshweft_picture::{Section, Size};

/// The heading of these options in the help.
const HEADING: &str = "Pictures";

/// What pictures show, from where, and how large they are.
#[derive(Args, Clone, Debug)]
pub(super) struct Pictures {
    /// Draw no pictures: no .svg, no .png, no .gif
    #[arg(long, help_heading = HEADING)]
    pub(super) no_pictures: bool,
    /// Columns and rows of the picture of the last state, in pixels, 16 to 8192 each
    #[arg(long, value_name = "WxH", default_value = "1280x960", value_parser = size::<8192>, help_heading = HEADING)]
    picture_size: Size,
    /// Columns and rows of the film, in pixels, 16 to 2048 each
    #[arg(long, value_name = "WxH", default_value = "640x480", value_parser = size::<2048>, help_heading = HEADING)]
    film_size: Size,
    /// Where the camera stands: front, back, left, right, top or bottom, or two angles in degrees as in -62,30: the first around the
    /// vertical, -90 is the front and 0 the right, the second above the horizon [default: front right and above; flat
    /// meshes from where they are seen whole]
    #[arg(long, value_name = "SIDE|AROUND,ABOVE", value_parser = camera, allow_hyphen_values = true, help_heading = HEADING)]
    camera: Option<[f64; 2]>,
    /// How solids are cut open toward the camera, so that the picture shows what is inside [default: quarter, but what
    /// the example says]
    #[arg(long, value_parser = one_of(SECTIONS), value_name = "PART", help_heading = HEADING)]
    section: Option<Section>,
    /// The field that gives the color: one of the state, or of the points or cells of the mesh file (of cells, its mean around each
    /// vertex), vectors by their length; none for a plain color [default: of the example]
    #[arg(long, alias = "colour", value_name = "FIELD", help_heading = HEADING)]
    color: Option<String>,
}

const SECTIONS: Words<Section> = &[
    ("quarter", Section::Quarter, "A quarter is left out"),
    ("half", Section::Half, "A half is left out"),
    ("none", Section::None, "Solids stay closed"),
];

impl Pictures {
    /// The same for what draws.
    pub(super) fn style(&self) -> Style {
        Style {
            picture: self.picture_size,
            film: self.film_size,
            view: self.camera,
            section: self.section,
            color: self.color.clone(),
        }
    }
}

/// Reads columns and rows, at most `MOST` of each.
fn size<const MOST: u32>(word: &str) -> Result<Size, String> {
    let number = |word: &str| word.parse().ok().filter(|n| (16..=MOST).contains(n));
    let sides = word.split_once(['x', 'X', '×']).and_then(|(width, height)| Some((number(width)?, number(height)?)));
    match sides {
        Some((width, height)) => Ok(Size { width, height }),
        None => Err(format!("take columns and rows, 16 to {MOST} each, as in 1280x720")),
    }
}

/// Reads the name of a side, or two angles in degrees.
fn camera(word: &str) -> Result<[f64; 2], String> {
    let angle = |word: &str, most: f64| word.trim().parse::<f64>().ok().filter(|x| x.abs() <= most);
    let angles = word.split_once(',').and_then(|(around, above)| Some([angle(around, 360.0)?, angle(above, 90.0)?]));
    match word {
        "front" => Ok([-90.0, 0.0]),
        "back" => Ok([90.0, 0.0]),
        "right" => Ok([0.0, 0.0]),
        "left" => Ok([180.0, 0.0]),
        "top" => Ok([-90.0, 90.0]),
        "bottom" => Ok([-90.0, -90.0]),
        _ => angles.ok_or_else(|| {
            "take front, back, left, right, top or bottom, or degrees around (-360 to 360) and above (-90 to 90), as in -62,30"
                .into()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bounded() {
        assert_eq!(size::<2048>("640x480"), Ok(Size { width: 640, height: 480 }));
        for word in ["", "640", "640x", "15x480", "640x2049", "-1x5", "1e3x1e3", "640x480x3", "99999999999x16"] {
            assert!(size::<2048>(word).is_err(), "{word}");
        }
    }

    #[test]
    fn cameras_stand_at_sides_or_angles() {
        assert_eq!(camera("right"), Ok([0.0, 0.0]));
        assert_eq!(camera("-62, 30.5"), Ok([-62.0, 30.5]));
        for word in ["", "up", "1", "1,2,3", "nan,0", "inf,0", "0,91", "361,0"] {
            assert!(camera(word).is_err(), "{word}");
        }
    }
}
