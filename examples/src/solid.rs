//! Linear elastic solids: what `elasticity` and `vibration` say of theirs, and what of them is refused.

use anyhow::{Result, bail};
use meshweft_command::{Kind, Setting, Settings};
use meshweft_mesh::{At, Elements};
use meshweft_physics::{Elastic, Equation, Support, elasticity};

pub(crate) const YOUNG: Setting =
    Setting::number("young", "Young's modulus; 210e9 is steel", 210e9, "Pa", [1e-6, 1e15]);
pub(crate) const POISSON: Setting = Setting::number("poisson", "Poisson's ratio", 0.3, "", [-0.99, 0.499_999]);
pub(crate) const PLANE: Setting = Setting {
    name: "plane",
    about: "of what lies in a plane: thin, so that nothing pushes across it, or thick, so that nothing moves across it",
    kind: Kind::Choice(&["stress", "strain"]),
};
pub(crate) const FIXED: Setting = Setting {
    name: "fixed",
    about: "sides that are held, along some axes: groups of the mesh file, xmin to zmax, or rest",
    kind: Kind::Text { default: "left", form: "SIDE=xyz, .." },
};

/// What it is made of.
pub(crate) fn material(settings: &Settings) -> Elastic {
    Elastic {
        young: settings.number("young"),
        poisson: settings.number("poisson"),
        is_thin: settings.choice("plane") == "stress",
    }
}

/// The equation of a solid, or of what lies in the xy plane. `weight`: what pulls downward, along the last axis of the mesh, N/m³.
///
/// # Errors
/// Another mesh, or nothing that is held along an axis. `name`: of the example.
pub(crate) fn equation(
    name: &str,
    elements: &Elements,
    material: Elastic,
    weight: f64,
    support: impl Fn(Option<&str>, &At) -> Support + Sync,
) -> Result<Equation<3>> {
    let (dimension, [low, high]) = (elements.mesh().dimension(), elements.mesh().bounds());
    if dimension < 2 || (dimension == 2 && low[2] != high[2]) {
        bail!("{name} runs on solids and in the xy plane: this mesh is no solid and no flat surface there");
    }
    let mut pulled = [0.0; 3];
    pulled[dimension - 1] = -weight;
    let equation = elasticity(elements, material, |_| pulled, support);
    let is_free = |axis: &usize| equation.held.iter().all(|node| node[*axis].is_none());
    let free: Vec<&str> = (0..dimension).filter(is_free).map(|axis| ["x", "y", "z"][axis]).collect();
    if !free.is_empty() {
        bail!("it is not held along {}: hold a side, as in fixed=xmin, or fixed=xmin=xyz", free.join(", "));
    }
    Ok(equation)
}
