//! What can be set.

use crate::cloth::{ClothOptions, Pins};
use crate::softbody::options::{AMOUNT, PERIOD, SIZE, UP};
use crate::softbody::{Act, Obstructed, SoftbodyOptions};
use meshweft_command::{Kind, Setting, Settings};

/// Settings of a surface or solid; `XpbdOptions::default()` is what the command takes.
///
/// ```
/// use meshweft_examples::softbody::Act;
/// use meshweft_examples::xpbd::XpbdOptions;
/// let twisted = XpbdOptions { act: Act::Twist, ..XpbdOptions::default() };
/// assert_eq!((twisted.gravity, twisted.rounds), (9.81, None));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct XpbdOptions {
    /// What is done to a solid.
    pub act: Act,
    /// Time step, s.
    pub dt: f64,
    /// Projections of every constraint a step; `None` takes 2 of solids, 20 of surfaces.
    pub rounds: Option<usize>,
    /// Mass of solids, kg/m³.
    pub density: f64,
    /// Young's modulus of solids, N/m².
    pub young: f64,
    /// Poisson's ratio of solids, 0 to 0.4999.
    pub poisson: f64,
    /// Mass of surfaces, kg/m².
    pub area_density: f64,
    /// Young's modulus of surfaces times their thickness, N/m.
    pub stretch: f64,
    /// Bending stiffness of surfaces, N m; 0 leaves bending out.
    pub bend: f64,
    /// Acceleration downward, m/s².
    pub gravity: f64,
    /// By how much the ground slopes down along x under a solid, degrees.
    pub slope: f64,
    /// Rate at which the air slows it down, 1/s.
    pub drag: f64,
    /// Coefficient of friction.
    pub friction: f64,
    /// How many solids fall.
    pub bodies: usize,
    /// How far a solid is twisted (turns of each end), stretched (share of its length) or squeezed (share of its height); `None` takes 0.5, 1
    /// or 0.6.
    pub amount: Option<f64>,
    /// Seconds from one state without load to the next.
    pub period: f64,
    /// What is held of a surface.
    pub pins: Pins,
    /// Largest side, m; `None` keeps it, or makes it 1 m if out of 0.2 to 5 m.
    pub size: Option<f64>,
    /// Whether there are ball, ground and lid.
    pub obstacles: Obstructed,
    /// Whether y points up in the mesh, not z.
    pub y_is_up: bool,
}

impl XpbdOptions {
    /// The scene of a solid, as `softbody` has it.
    pub(super) fn solid(&self) -> SoftbodyOptions {
        SoftbodyOptions {
            act: self.act,
            dt: self.dt,
            gravity: self.gravity,
            slope: self.slope,
            friction: self.friction,
            bodies: self.bodies,
            amount: self.amount,
            period: self.period,
            size: self.size,
            obstacles: self.obstacles,
            y_is_up: self.y_is_up,
            ..SoftbodyOptions::default()
        }
    }

    /// The scene of a surface, as `cloth` has it.
    pub(super) fn cloth(&self) -> ClothOptions {
        ClothOptions { size: self.size, pins: self.pins, y_is_up: self.y_is_up, ..ClothOptions::default() }
    }
}

impl From<&Settings> for XpbdOptions {
    fn from(settings: &Settings) -> XpbdOptions {
        let number = |name| settings.number(name);
        let unless_zero = |name| Some(number(name)).filter(|&x| x != 0.0);
        XpbdOptions {
            act: Act::named(settings.choice("scene")),
            dt: number("dt"),
            rounds: unless_zero("rounds").map(|_| settings.count("rounds")),
            density: number("density"),
            young: number("young"),
            poisson: number("poisson"),
            area_density: number("area-density"),
            stretch: number("stretch"),
            bend: number("bend"),
            gravity: number("gravity"),
            slope: number("slope"),
            drag: number("drag"),
            friction: number("friction"),
            bodies: settings.count("bodies"),
            amount: unless_zero("amount"),
            period: number("period"),
            pins: Pins::named(settings.choice("pins")),
            size: unless_zero("size"),
            obstacles: Obstructed::named(settings.choice("obstacles")),
            y_is_up: settings.choice("up") == "y",
        }
    }
}

impl Default for XpbdOptions {
    fn default() -> XpbdOptions {
        XpbdOptions::from(&Settings::new(SETTINGS))
    }
}

/// The same on the command line.
pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "scene",
        about: "what is done to a solid: it falls, its ends are turned or pulled, or a lid presses it to the ground",
        kind: Kind::Choice(&["drop", "twist", "stretch", "squeeze"]),
    },
    Setting::number("dt", "time step", 1.0 / 600.0, "s", [1e-6, 1.0]),
    Setting::number(
        "rounds",
        "projections of every constraint a step; 0 takes 2 of solids, 20 of surfaces",
        0.0,
        "",
        [0.0, 1e4],
    ),
    Setting::number("density", "mass of solids", 1000.0, "kg/m³", [1e-3, 1e6]),
    Setting::number("young", "stiffness of solids: Young's modulus", 4e4, "N/m²", [1e-3, 1e12]),
    Setting::number("poisson", "how much solids narrow when stretched", 0.4, "", [0.0, 0.4999]),
    Setting::number("area-density", "mass of surfaces", 0.3, "kg/m²", [1e-6, 1e6]),
    Setting::number(
        "stretch",
        "stiffness of surfaces against stretching: Young's modulus times thickness",
        200.0,
        "N/m",
        [1e-3, 1e12],
    ),
    Setting::number("bend", "stiffness of surfaces against bending; 0 leaves it out", 2e-5, "N m", [0.0, 1e3]),
    Setting::number("gravity", "acceleration downward", 9.81, "m/s²", [-1e3, 1e3]),
    Setting::number("slope", "by how much the ground slopes down along x, under solids", 0.0, "degrees", [-90.0, 90.0]),
    Setting::number("drag", "rate at which the air slows it down", 0.1, "1/s", [0.0, 1e6]),
    Setting::number("friction", "coefficient of friction", 0.5, "", [0.0, 10.0]),
    Setting::number("bodies", "how many solids fall", 3.0, "", [1.0, 1e4]),
    AMOUNT,
    PERIOD,
    Setting {
        name: "pins",
        about: "what is held of a surface: two corners if it is flat (nothing of other meshes), a whole side, or nothing",
        kind: Kind::Choice(&["corners", "side", "none"]),
    },
    SIZE,
    Setting {
        name: "obstacles",
        about: "ground with a ball (surfaces, drop) or a lid (squeeze)",
        kind: Kind::Choice(&["all", "no-ball", "none"]),
    },
    UP,
];
