//! Sides of a body in words: groups of its mesh file, or where it ends along an axis.

use anyhow::{Context, Result, anyhow, bail};
use meshweft_mesh::Elements;
use std::collections::BTreeSet;

/// Ends of the box around a mesh.
const ENDS: [&str; 6] = ["xmin", "xmax", "ymin", "ymax", "zmin", "zmax"];
/// All faces that nothing else is said of.
const REST: &str = "rest";

/// What a setting says of a side: `SIDE=WORDS`.
pub(crate) struct Said<'a> {
    /// Which setting says it.
    pub(crate) setting: &'static str,
    side: &'a str,
    words: Option<&'a str>,
}

/// What a setting says: `SIDE=WORDS, SIDE=WORDS`, where words may be missing.
pub(crate) fn said<'a>(setting: &'static str, text: &'a str) -> impl Iterator<Item = Said<'a>> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(move |part| {
        let (side, words) = part.split_once('=').map_or((part, None), |(side, words)| (side, Some(words)));
        Said { setting, side: side.trim(), words: words.map(str::trim) }
    })
}

impl Said<'_> {
    /// The numbers that it names, `A:B:C`.
    ///
    /// # Errors
    /// Other words, or another number of them.
    pub(crate) fn numbers<const N: usize>(&self) -> Result<[f64; N]> {
        let Said { setting, side, .. } = self;
        let parts: Vec<&str> = self.words.unwrap_or_default().split(':').map(str::trim).collect();
        let number = |part: &&str| part.parse().ok().filter(|x: &f64| x.is_finite());
        let numbers: Option<Vec<f64>> = parts.iter().map(number).collect();
        let numbers = numbers.and_then(|numbers| <[f64; N]>::try_from(numbers).ok());
        let form = ["A", "B", "C"][..N].join(":");
        let given = self.words.map_or_else(|| (*side).to_string(), |words| format!("{side}={words}"));
        numbers.ok_or_else(|| anyhow!("setting {setting}: {given} is not of the form {side}={form}, in numbers"))
    }

    /// The axes that it names, `xyz`; all of them if it names none.
    ///
    /// # Errors
    /// Other words.
    pub(crate) fn axes(&self) -> Result<[bool; 3]> {
        let Some(words) = self.words else { return Ok([true; 3]) };
        axes(self.setting, words).with_context(|| format!("side {}", self.side))
    }
}

/// The axes that a setting names, as in `xz`.
///
/// # Errors
/// Other letters.
pub(crate) fn axes(setting: &str, letters: &str) -> Result<[bool; 3]> {
    let mut axes = [false; 3];
    for letter in letters.chars() {
        let axis = ['x', 'y', 'z'].iter().position(|axis| *axis == letter);
        axes[axis.ok_or_else(|| anyhow!("setting {setting}: {letters} names no axes: some of x, y, z, as in xz"))?] =
            true;
    }
    Ok(axes)
}

/// Whether a place is at an end.
pub(crate) type IsAt<'a> = &'a dyn Fn([f64; 3]) -> bool;

/// Makes both ends of what has these bounds one along some axes: `periodic` is told what is at either end.
///
/// # Errors
/// Those of `periodic`, with the axis.
pub(crate) fn join(
    axes: [bool; 3],
    [low, high]: [[f64; 3]; 2],
    mut periodic: impl FnMut(IsAt, IsAt) -> meshweft_mesh::Result<()>,
) -> Result<()> {
    for axis in (0..3).filter(|&axis| axes[axis]) {
        let near = 1e-9 * (high[axis] - low[axis]);
        let at = |end: f64| move |place: [f64; 3]| (place[axis] - end).abs() <= near;
        periodic(&at(low[axis]), &at(high[axis]))
            .with_context(|| format!("both ends along {} cannot be one", ["x", "y", "z"][axis]))?;
    }
    Ok(())
}

/// For each face of the boundary which of these apply to it.
///
/// # Errors
/// A side that there is not.
pub(crate) fn faces(elements: &Elements, all: &[Said]) -> Result<Vec<Vec<usize>>> {
    let (mesh, rim) = (elements.mesh(), elements.rim());
    let [low, high] = mesh.bounds();
    let near = 1e-9 * (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max);
    let is_at = |e: usize, end: usize| {
        let (axis, to) = (end / 2, if end.is_multiple_of(2) { low } else { high });
        rim.nodes(e).iter().all(|&v| (mesh.points()[v as usize][axis] - to[axis]).abs() <= near)
    };
    let mut faces = vec![Vec::new(); rim.len()];
    for (k, said) in all.iter().enumerate().filter(|(_, said)| said.side != REST) {
        let group = mesh.groups().iter().position(|group| group.name == said.side);
        let end = ENDS.iter().position(|end| *end == said.side);
        let own: Vec<usize> = match (group, end) {
            (Some(group), _) => (0..rim.len()).filter(|&e| rim.group(e) == Some(group)).collect(),
            (None, Some(end)) => (0..rim.len()).filter(|&e| is_at(e, end)).collect(),
            (None, None) => {
                let of_faces: BTreeSet<usize> = (0..rim.len()).filter_map(|e| rim.group(e)).collect();
                let groups = of_faces.into_iter().map(|g| &*mesh.groups()[g].name);
                let known: Vec<&str> = groups.chain(ENDS).chain([REST]).collect();
                let Said { setting, side, .. } = said;
                bail!("setting {setting}: this mesh has no side {side}: name one of {}", known.join(", "));
            }
        };
        if own.is_empty() {
            bail!("setting {}: no face of the boundary is at {}", said.setting, said.side);
        }
        own.into_iter().for_each(|e| faces[e].push(k));
    }
    let rest: Vec<usize> = (0..rim.len()).filter(|&e| faces[e].is_empty()).collect();
    for (k, _) in all.iter().enumerate().filter(|(_, said)| said.side == REST) {
        rest.iter().for_each(|&e| faces[e].push(k));
    }
    Ok(faces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft_mesh::Group;
    use meshweft_mesh::generate::generate;

    #[test]
    fn sides_are_groups_and_ends_and_the_rest() {
        let elements = generate("bar:5x3x3", 1).unwrap().elements(1).unwrap();
        let all: Vec<Said> = said("fixed", "left, xmax=yz, rest=").collect();
        assert_eq!((all[0].axes().unwrap(), all[1].axes().unwrap()), ([true; 3], [false, true, true]));
        let faces = faces(&elements, &all).unwrap();
        let count = |k: usize| faces.iter().filter(|own| **own == [k]).count();
        assert_eq!([0, 1, 2].map(count), [8, 8, 4 * 16]);
    }

    #[test]
    fn what_is_no_side_or_no_number_is_refused_with_what_there_is() {
        let elements = generate("bar:5x3x3", 1).unwrap().elements(1).unwrap();
        let error = |text| {
            let all: Vec<Said> = said("pull", text).collect();
            let numbers = all.iter().try_for_each(|said| said.numbers::<3>().map(|_| ()));
            format!("{:#}", numbers.and_then(|()| faces(&elements, &all)).unwrap_err())
        };
        assert_eq!(
            error("top=1:2:3"),
            "setting pull: this mesh has no side top: name one of left, right, xmin, xmax, ymin, ymax, zmin, zmax, rest"
        );
        let mut mesh = generate("bar:5x3x3", 1).unwrap();
        mesh.add_group(Group { name: "steel".into(), dimension: 3, cells: vec![0] }).unwrap();
        let of_cells = faces(&mesh.elements(1).unwrap(), &said("pull", "top").collect::<Vec<_>>()).unwrap_err();
        assert!(!of_cells.to_string().contains("steel"), "{of_cells}");
        assert_eq!(error("left=1:x:3"), "setting pull: left=1:x:3 is not of the form left=A:B:C, in numbers");
        assert_eq!(error("left"), "setting pull: left is not of the form left=A:B:C, in numbers");
    }
}
