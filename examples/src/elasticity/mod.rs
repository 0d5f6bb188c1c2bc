//! Linear elasticity: how far a part gives under loads, and the stresses in it, by finite elements.
//!
//! Elements of degree 1 or 2 give a symmetric matrix of 3×3 blocks. Conjugate gradients solve it, with a V-cycle of multigrid as preconditioner:
//! the coarse [levels](Multigrid::elastic) are parts beside the mesh, whose vertices move and turn. The equation is that of
//! [`elasticity`](meshweft_physics::elasticity), where
//! displacements that are known are no unknowns.

mod checks;

use crate::gradients::conjugate_gradients;
use crate::multigrid::{Block, Rows, transposed};
use crate::sides::{Said, faces, said};
use crate::solid;
use anyhow::{Result, bail};
use meshweft::nalgebra::Vector3;
use meshweft::{Key, Order, Program, Stages, Stars, record};
use meshweft_command::{Check, ColorMap, Example, Info, Kind, Look, Precision, Setting, Settings};
use meshweft_mesh::{At, Elements, Matrix, Mesh, Multigrid};
use meshweft_physics::{Elastic, Equation, Support};
use std::sync::Arc;

/// How far the drawn displacement of the largest is, over the extent of the part.
const DRAWN: f64 = 0.08;

record! {
    /// Numbers that all nodes read.
    pub struct Parameters<R> {
        /// Lamé's first constant, Pa; in a plane that for it.
        bulk: R,
        /// The shear modulus, Pa.
        shear: R,
        /// Stress across a plane over that within it.
        across: R,
        /// How many times as large displacements are drawn; 0 for what makes the largest as below.
        exaggerate: R,
        /// How far the largest displacement is drawn then, m.
        drawn: R,
    }
}

conjugate_gradients! {
    for Elasticity, Parameters: displacement: Vector3<R>, Rows<R>, 3;
    vertex {
        /// How far it is displaced, m; within a step what sweeps solve for.
        shared displacement: Vector3<R>,
        /// Stress, Pa: xx, yy, zz, xy, yz and xz.
        stress: [R; 6],
        /// The stress of a pulled rod that yields as early (von Mises), Pa.
        von_mises: R,
        /// Where it is drawn, m.
        drawn: Vector3<R>,
        /// Where it is at rest, m.
        rest: Vector3<R>,
    }
    globals {
        /// The largest displacement, m.
        largest: R,
    }
    stars {
        /// Nodes that share an element, and how the mean slope depends on the difference.
        pub Slopes[1]: Vector3<R>;
    }
    kernels {
        /// What strains it, and where it is drawn.
        update Strain |p, own, around| {
            let zero = R::lit(0.0);
            let none = [Vector3::new(zero, zero, zero); 3];
            let [x, y, z] = around.fold(Slopes, none, |sums: [Vector3<R>; 3], [other], slope| {
                let by = other.displacement - own.displacement;
                [sums[0] + slope * by.x, sums[1] + slope * by.y, sums[2] + slope * by.z]
            });
            let (two, spread) = (R::lit(2.0) * p.shear, p.bulk * (x.x + y.y + z.z));
            let [xx, yy] = [two * x.x + spread, two * y.y + spread];
            // Of a mesh in a plane nothing changes across it, and nothing or the spread pushes there.
            let zz = p.across * (two * z.z + spread);
            let [xy, xz, yz] = [p.shear * (x.y + y.x), p.shear * (x.z + z.x), p.shear * (y.z + z.y)];
            let difference = (xx - yy) * (xx - yy) + (yy - zz) * (yy - zz) + (zz - xx) * (zz - xx);
            let von_mises = (R::lit(0.5) * difference + R::lit(3.0) * (xy * xy + xz * xz + yz * yz)).sqrt();
            let fitted = R::select(zero.less(p.globals.largest), p.drawn / p.globals.largest, zero);
            let times = R::select(zero.less(p.exaggerate), p.exaggerate, fitted);
            let drawn = own.rest + own.displacement * times;
            Node { stress: [xx, yy, zz, xy, yz, xz], von_mises, drawn, ..own }
        };

        /// The largest displacement.
        max Largest("largest displacement", "m") |_, own, _| own.displacement.dot(&own.displacement).sqrt();

        /// The largest stress.
        max Stressed("largest von Mises stress", "Pa") |_, own, _| own.von_mises;

        /// Half of what the loads have done, the energy that is stored where nothing is held away from where it was.
        sum Work("work of the loads", "J") |_, own, _| R::lit(0.5) * own.load.dot(&own.solved);
    }
}

/// A solid that gives.
#[derive(Clone)]
pub struct Elasticity {
    equation: Arc<Equation<3>>,
    levels: Arc<Multigrid<3>>,
    around: Arc<Vec<[u32; 2]>>,
    slopes: Arc<Vec<[f64; 3]>>,
    dimension: usize,
    extent: f64,
    options: ElasticityOptions,
}

/// Settings of elasticity; `ElasticityOptions::default()` is what the command takes.
#[derive(Clone, Debug, PartialEq)]
pub struct ElasticityOptions {
    /// Degree of the elements, 1 or 2.
    pub degree: usize,
    /// What it is made of.
    pub material: Elastic,
    /// kg/m³.
    pub density: f64,
    /// Along the last axis of the mesh, downward, m/s².
    pub gravity: f64,
    /// The residual over the first at which a step ends.
    pub tolerance: f64,
    /// The most iterations of a step.
    pub rounds: usize,
    /// How many times as large displacements are drawn; 0 for so that they can be seen.
    pub exaggerate: f64,
}

impl From<&Settings> for ElasticityOptions {
    fn from(settings: &Settings) -> ElasticityOptions {
        ElasticityOptions {
            degree: if settings.choice("degree") == "1" { 1 } else { 2 },
            material: solid::material(settings),
            density: settings.number("density"),
            gravity: settings.number("gravity"),
            tolerance: settings.number("tolerance"),
            rounds: settings.count("rounds"),
            exaggerate: settings.number("exaggerate"),
        }
    }
}

impl Default for ElasticityOptions {
    fn default() -> ElasticityOptions {
        ElasticityOptions::from(&Settings::new(Elasticity::INFO.settings))
    }
}

impl Elasticity {
    /// A solid, or what is thin or long and lies in the xy plane; the mesh becomes that of the [nodes](Elements::mesh). `support`: what holds
    /// and pulls at a face of the boundary, by the name of its group, if it has one, and by place.
    ///
    /// # Errors
    /// A mesh without [`Elements`], a surface that is not flat, or nothing that is held.
    ///
    /// ```
    /// use meshweft::{Simulation, mesh::generate::generate};
    /// use meshweft_examples::elasticity::{Elasticity, ElasticityOptions};
    /// use meshweft_physics::Support;
    /// let mut mesh = generate("bar:9x3x3", 1)?;
    /// // Held at one end, and pulled at the other with 210 MPa: a thousandth longer, of 210 GPa.
    /// let options = ElasticityOptions::default();
    /// let bar = Elasticity::with(&mut mesh, &options, |group, at| match group {
    ///     Some("left") => Support { held: [Some(0.0), None, None], ..Support::default() },
    ///     Some("right") => Support { pulled: [210e6, 0.0, 0.0], ..Support::default() },
    ///     // Held against turning and moving off.
    ///     _ if at.normal[1] < -0.5 => Support { held: [None, Some(0.0), None], ..Support::default() },
    ///     _ if at.normal[2] < -0.5 => Support { held: [None, None, Some(0.0)], ..Support::default() },
    ///     _ => Support::default(),
    /// })?;
    /// let mut run = Simulation::builder(mesh, bar).precision::<f64>().build()?;
    /// run.step()?;
    /// let stress = run.field("von_mises")?.values;
    /// assert!(stress.iter().all(|stress| (stress / 210e6 - 1.0).abs() < 1e-6));
    /// # anyhow::Ok(())
    /// ```
    pub fn with(
        mesh: &mut Mesh,
        options: &ElasticityOptions,
        support: impl Fn(Option<&str>, &At) -> Support + Sync,
    ) -> Result<Elasticity> {
        let elements = mesh.elements(options.degree)?;
        let made = Elasticity::of(&elements, options, support)?;
        *mesh = elements.into_mesh();
        Ok(made)
    }

    fn of(
        elements: &Elements,
        options: &ElasticityOptions,
        support: impl Fn(Option<&str>, &At) -> Support + Sync,
    ) -> Result<Elasticity> {
        let mesh = elements.mesh();
        let (dimension, [low, high]) = (mesh.dimension(), mesh.bounds());
        let weight = options.density * options.gravity;
        let mut equation = solid::equation("elasticity", elements, options.material, weight, support)?;
        let levels = Multigrid::elastic(&equation.matrix, mesh.points(), dimension);
        // The levels have it, scaled.
        equation.matrix = Matrix::default();
        let (around, slopes) = elements.mean_slopes();
        Ok(Elasticity {
            levels: Arc::new(levels),
            equation: Arc::new(equation),
            around: Arc::new(around),
            slopes: Arc::new(slopes),
            dimension,
            extent: (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max),
            options: options.clone(),
        })
    }
}

impl Program for Elasticity {
    fn parameters(&self, _time: f64) -> Parameters<f64> {
        let ElasticityOptions { material, exaggerate, .. } = self.options;
        let [bulk, shear] = material.lame(self.dimension);
        let is_thin = material.is_thin && self.dimension == 2;
        let across = if is_thin { 0.0 } else { 1.0 };
        Parameters { bulk, shear, across, exaggerate, drawn: DRAWN * self.extent }
    }

    fn parts(&self, _mesh: &Mesh) -> Vec<Vec<[f64; 3]>> {
        self.levels.points.clone()
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        add_levels(&self.levels, stars);
        let slopes = self.slopes.clone();
        stars.add_directed(Slopes, self.around.clone(), move |i| Vector3::from(slopes[i.element]));
        Ok(())
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> Node<f64> {
        let v = v as usize;
        let zero = Vector3::zeros();
        let mut node = Node {
            displacement: zero,
            stress: [0.0; 6],
            von_mises: 0.0,
            drawn: zero,
            rest: zero,
            load: zero,
            scale: Rows { x: zero, y: zero, z: zero },
            solved: zero,
            missing: zero,
            direction: zero,
            image: zero,
            kept: zero,
        };
        if let Some(&place) = mesh.points().get(v) {
            let Equation { loads, held, .. } = &*self.equation;
            (node.rest, node.drawn) = (Vector3::from(place), Vector3::from(place));
            node.displacement = Vector3::from(held[v].map(|held| held.unwrap_or(0.0)));
            node.scale = Rows::of(self.levels.scales[v]);
            node.load = Rows::of(transposed(&self.levels.scales[v])) * Vector3::from(loads[v]);
            node.solved = Rows::of(self.levels.roots[v]) * node.displacement;
        }
        node
    }

    fn step(&self, stages: &mut Stages<Self>) {
        solve(&self.levels, self.options.tolerance, self.options.rounds, stages);
        stages.reduce(Largest, |g| &mut g.largest);
        stages.on(0, |stages| stages.sweep(Strain, 1));
    }
}

impl Example for Elasticity {
    const INFO: Info = Info {
        name: "elasticity",
        about: "how far a part gives under loads, and the stresses in it (linear finite elements, conjugate gradients)",
        mesh: "plate:32x48",
        steps: 1,
        settings: &[
            Setting { name: "degree", about: "degree of the elements", kind: Kind::Choice(&["2", "1"]) },
            solid::YOUNG,
            solid::POISSON,
            solid::PLANE,
            solid::FIXED,
            Setting {
                name: "moved",
                about: "sides that are moved so far, m",
                kind: Kind::Text { default: "", form: "SIDE=X:Y:Z, .." },
            },
            Setting {
                name: "pull",
                about: "sides that are pulled with so much on a square meter, Pa",
                kind: Kind::Text { default: "right=1e8:0:0", form: "SIDE=X:Y:Z, .." },
            },
            Setting {
                name: "pressure",
                about: "sides that are pressed inward, Pa",
                kind: Kind::Text { default: "", form: "SIDE=PRESSURE, .." },
            },
            Setting::number("density", "7850 is steel", 7850.0, "kg/m³", [0.0, 1e9]),
            Setting::number("gravity", "down along y in a plane, else along z", 0.0, "m/s²", [-1e6, 1e6]),
            Setting::number(
                "exaggerate",
                "how many times as large displacements are drawn; 0 so that they can be seen",
                0.0,
                "",
                [0.0, 1e12],
            ),
            Setting::number("tolerance", "residual at which a step ends, over the first", 1e-8, "", [0.0, 1.0]),
            Setting::number("rounds", "the most iterations of a step", 1e4, "", [1.0, 1e9]),
        ],
        precision: Precision::F64,
        ..Info::DEFAULT
    };

    fn new(mesh: &mut Mesh, settings: &Settings, order: Order) -> Result<Elasticity> {
        if order.key == Key::Jacobi {
            bail!("elasticity solves by sweeps in place, which order jacobi has not: take another order");
        }
        let options = ElasticityOptions::from(settings);
        let elements = mesh.elements(options.degree)?;
        let all: Vec<Said> = ["fixed", "moved", "pull", "pressure"]
            .into_iter()
            .flat_map(|setting| said(setting, settings.text(setting)))
            .collect();
        // What each says: a support, and what presses inward.
        let support = |said: &Said| -> Result<(Support, f64)> {
            let none = Support::default();
            Ok(match said.setting {
                "fixed" => (Support { held: said.axes()?.map(|is_held| is_held.then_some(0.0)), ..none }, 0.0),
                "moved" => (Support { held: said.numbers()?.map(Some), ..none }, 0.0),
                "pull" => (Support { pulled: said.numbers()?, ..none }, 0.0),
                _ => (none, said.numbers::<1>()?[0]),
            })
        };
        let supports: Vec<(Support, f64)> = all.iter().map(support).collect::<Result<_>>()?;
        let faces = faces(&elements, &all)?;
        let at = |at: &At| {
            faces[at.element].iter().fold(Support::default(), |sum, &k| {
                let (own, pressure) = supports[k];
                let held = [0, 1, 2].map(|axis| sum.held[axis].or(own.held[axis]));
                let pulled = [0, 1, 2].map(|axis| sum.pulled[axis] + own.pulled[axis] - pressure * at.normal[axis]);
                Support { held, pulled }
            })
        };
        let made = Elasticity::of(&elements, &options, |_, place| at(place))?;
        *mesh = elements.into_mesh();
        Ok(made)
    }

    fn look(&self) -> Look {
        Look {
            positions: Some("drawn"),
            is_exaggerated: true,
            states: Some(&["displacement", "stress", "von_mises"]),
            color: Some("von_mises"),
            label: "von Mises stress (Pa)",
            map: ColorMap::Plasma,
            is_steady: true,
            ..Look::default()
        }
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}
