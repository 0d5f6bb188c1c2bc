//! What can be set.

use anyhow::Result;
use meshweft_command::{Kind, Setting, Settings};
use meshweft_mesh::Mesh;

/// What is done to the solid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It falls on the ground.
    Drop,
    /// Some of it fall on each other.
    Pile,
    /// Its ends are turned, one each way, and back.
    Twist,
    /// Its ends are pulled apart, and back.
    Stretch,
    /// A lid presses it against the ground, and opens again.
    Squeeze,
}

/// Settings of a soft solid; `SoftbodyOptions::default()` is what the command takes.
///
/// ```
/// use meshweft_examples::softbody::{Act, SoftbodyOptions};
/// let twisted = SoftbodyOptions { act: Act::Twist, ..SoftbodyOptions::default() };
/// assert_eq!(twisted.gravity, 9.81);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SoftbodyOptions {
    /// What is done to it.
    pub act: Act,
    /// Time step, s.
    pub dt: f64,
    /// Sweeps a step.
    pub rounds: usize,
    /// Mass, kg/m³.
    pub density: f64,
    /// Young's modulus, N/m².
    pub young: f64,
    /// Poisson's ratio, 0 to 0.4999.
    pub poisson: f64,
    /// Time over which its stiffness resists motion, s.
    pub damping: f64,
    /// Acceleration downward, m/s².
    pub gravity: f64,
    /// By how much the ground slopes down along x, degrees.
    pub slope: f64,
    /// Rate at which the air slows it down, 1/s.
    pub drag: f64,
    /// Coefficient of friction.
    pub friction: f64,
    /// Share of each Newton step, below 2; `None` takes what suits the order.
    pub relaxation: Option<f64>,
    /// How many of it fall.
    pub bodies: usize,
    /// How far it is twisted (turns of each end), stretched (share of its length) or squeezed (share of its height); `None` takes 0.5, 1 or 0.6.
    pub amount: Option<f64>,
    /// Seconds from one state without load to the next.
    pub period: f64,
    /// Largest side, m; `None` keeps it, or makes it 1 m if out of 0.2 to 5 m.
    pub size: Option<f64>,
    /// Whether there are ball, ground and lid.
    pub obstacles: Obstructed,
    /// Whether solids touch each other and themselves, and do not pass through.
    pub touching: bool,
    /// By how much it may be stretched before it tears, as a share of its length at rest; `None` if it never does.
    pub tear: Option<f64>,
    /// How often a vertex can split, if it tears.
    pub spares: u32,
    /// Whether y points up in the mesh, not z.
    pub y_is_up: bool,
}

/// What there is to touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstructed {
    /// The ground, a ball on it where something falls, and the lid that squeezes.
    All,
    /// No ball.
    NoBall,
    /// Nothing.
    Nothing,
}

impl Act {
    /// That of a name on the command line.
    pub(crate) fn named(name: &str) -> Act {
        match name {
            "pile" => Act::Pile,
            "twist" => Act::Twist,
            "stretch" => Act::Stretch,
            "squeeze" => Act::Squeeze,
            _ => Act::Drop,
        }
    }
}

impl Obstructed {
    /// That of a name on the command line.
    pub(crate) fn named(name: &str) -> Obstructed {
        match name {
            "no-ball" => Obstructed::NoBall,
            "none" => Obstructed::Nothing,
            _ => Obstructed::All,
        }
    }
}

impl From<&Settings> for SoftbodyOptions {
    fn from(settings: &Settings) -> SoftbodyOptions {
        let number = |name| settings.number(name);
        let unless_zero = |name| Some(number(name)).filter(|&x| x != 0.0);
        SoftbodyOptions {
            act: Act::named(settings.choice("scene")),
            dt: number("dt"),
            rounds: settings.count("rounds"),
            density: number("density"),
            young: number("young"),
            poisson: number("poisson"),
            damping: number("damping"),
            gravity: number("gravity"),
            slope: number("slope"),
            drag: number("drag"),
            friction: number("friction"),
            relaxation: unless_zero("relaxation"),
            bodies: settings.count("bodies"),
            amount: unless_zero("amount"),
            period: number("period"),
            size: unless_zero("size"),
            obstacles: Obstructed::named(settings.choice("obstacles")),
            touching: settings.choice("touching") == "on",
            tear: unless_zero("tear"),
            spares: settings.count("spares") as u32,
            y_is_up: settings.choice("up") == "y",
        }
    }
}

impl Default for SoftbodyOptions {
    fn default() -> SoftbodyOptions {
        SoftbodyOptions::from(&Settings::new(SETTINGS))
    }
}

/// How far a solid is twisted, stretched or squeezed.
pub(crate) const AMOUNT: Setting = Setting::number(
    "amount",
    "twist: turns of each end, stretch: share of the length, squeeze: of the height; 0 takes 0.5, 1 or 0.6",
    0.0,
    "",
    [0.0, 100.0],
);
/// How long that takes, there and back.
pub(crate) const PERIOD: Setting = Setting::number("period", "time from no load to the next", 4.0, "s", [1e-3, 1e6]);
/// How large the mesh is made.
pub(crate) const SIZE: Setting = Setting::number(
    "size",
    "largest side of the mesh; 0 keeps it, or makes it 1 m if out of 0.2 to 5 m",
    0.0,
    "m",
    [0.0, 1e6],
);
/// When it tears.
pub(crate) const TEAR: Setting = Setting::number(
    "tear",
    "share of its length by which it is stretched when it tears; 0 for never",
    0.0,
    "",
    [0.0, 1e3],
);
/// How far it can tear.
pub(crate) const fn spares(default: f64) -> Setting {
    Setting::number("spares", "how often a vertex can split, if it tears", default, "", [1.0, 31.0])
}
/// Which axis of the mesh points up.
pub(crate) const UP: Setting =
    Setting { name: "up", about: "axis of the mesh that points up", kind: Kind::Choice(&["z", "y"]) };

/// The same on the command line.
pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "scene",
        about: "what is done to it: it falls, some of it on each other, its ends are turned or pulled, or a lid presses it to the ground",
        kind: Kind::Choice(&["drop", "pile", "twist", "stretch", "squeeze"]),
    },
    Setting::number("dt", "time step", 1.0 / 600.0, "s", [1e-6, 1.0]),
    Setting::number("rounds", "sweeps a step", 10.0, "", [1.0, 1e6]),
    Setting::number("density", "mass", 1000.0, "kg/m³", [1e-3, 1e6]),
    Setting::number("young", "stiffness: Young's modulus", 4e4, "N/m²", [1e-3, 1e12]),
    Setting::number("poisson", "how much it narrows when stretched", 0.4, "", [0.0, 0.4999]),
    Setting::number("damping", "time over which its stiffness resists motion, free flight too", 0.0, "s", [0.0, 1e3]),
    Setting::number("gravity", "acceleration downward", 9.81, "m/s²", [-1e3, 1e3]),
    Setting::number("slope", "by how much the ground slopes down along x", 0.0, "degrees", [-90.0, 90.0]),
    Setting::number("drag", "rate at which the air slows it down", 0.1, "1/s", [0.0, 1e6]),
    Setting::number("friction", "coefficient of friction", 0.5, "", [0.0, 10.0]),
    Setting::number(
        "relaxation",
        "share of each Newton step where nothing touches; 0 takes 1.5, or 0.4 under the jacobi order",
        0.0,
        "",
        [0.0, 1.99],
    ),
    Setting::number("bodies", "how many of it fall", 3.0, "", [1.0, 1e4]),
    AMOUNT,
    PERIOD,
    SIZE,
    Setting {
        name: "obstacles",
        about: "ground with a ball (drop) or a lid (squeeze)",
        kind: Kind::Choice(&["all", "no-ball", "none"]),
    },
    Setting {
        name: "touching",
        about: "whether solids touch each other and themselves, or pass through",
        kind: Kind::Choice(&["off", "on"]),
    },
    TEAR,
    spares(6.0),
    UP,
];

/// Turns a mesh in which y points up, so that z does.
pub(crate) fn turn_up(mesh: &mut Mesh) -> Result<()> {
    Ok(mesh.set_points(mesh.points().iter().map(|&[x, y, z]| [x, -z, y]).collect())?)
}
