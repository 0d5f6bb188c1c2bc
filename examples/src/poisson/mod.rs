//! Poisson's equation: the steady state of what diffuses, and the way there, by finite elements; or waves.
//!
//! Elements of degree 1 or 2 give a symmetric matrix. Conjugate gradients solve it, with a V-cycle of multigrid as preconditioner: the coarse
//! [levels](Multigrid) are parts beside the mesh. The equation is that of [`diffusion`], where values that are known are no unknowns.
//!
//! In time there is `capacity ∂u/∂t` or `capacity ∂²u/∂t²` besides, whose mass matrix is added to that of the equation. What diffuses takes two
//! stages of an L-stable Runge–Kutta method of second order (Alexander, SIAM J. Numer. Anal. 14, 1977), whose equations have one matrix; waves
//! take the implicit midpoint rule, which keeps their energy.

mod checks;

use crate::gradients::conjugate_gradients;
use crate::sides::{Said, axes, faces, join, said};
use anyhow::{Result, bail};
use meshweft::nalgebra::Vector3;
use meshweft::{Incidence, Key, Order, Program, Stages, Stars, record};
use meshweft_command::{Check, ColorMap, Example, Info, Kind, Look, Precision, Setting, Settings};
use meshweft_mesh::{At, Elements, Matrix, Mesh, Multigrid};
use meshweft_physics::{Condition, Equation, diffusion};
use std::sync::Arc;

record! {
    /// Numbers that all nodes read.
    pub struct Parameters<R> {
        /// What flows for a slope of 1.
        conductivity: R,
        /// How far waves look ahead: half a time step, s.
        ahead: R,
        /// 1 if what flows is found, else 0.
        has_flux: R,
    }
}

/// γ of the Runge–Kutta method: the share of the time step that each of its two stages is implicit in.
const GAMMA: f64 = 1.0 - std::f64::consts::FRAC_1_SQRT_2;

conjugate_gradients! {
    for Poisson, Parameters: value: R, R, 1;
    vertex {
        /// The solution; within a step what sweeps solve for.
        shared value: R,
        /// What flows through a square meter. While a step in time is solved, the value that it starts from, and how quickly that rises.
        flux: Vector3<R>,
    }
    globals {}
    stars {
        /// Nodes that share an element, and what of their values there is in the right-hand side.
        pub Mass[1]: R;
        /// Of each node in time the right-hand side without what is there before a step, and what of its own value there is in it.
        pub Own[0]: (R, R);
        /// Nodes that share an element, and how the mean slope depends on the difference.
        pub Slopes[1]: Vector3<R>;
        /// The node whose values a node has, where two sides are one.
        pub Lead[1];
    }
    kernels {
        /// The value of the other side, where two are one.
        update Follow |_, own, around| Node { value: around.fold(Lead, own.value, |_, [lead], ()| lead.value), ..own };

        /// What flows.
        update Flow |p, own, around| {
            let slope = around.sum(Slopes, |[other], slope| slope * (other.value - own.value));
            Node { flux: slope * (R::lit(0.0) - p.conductivity), ..own }
        };

        /// The start of a step in time. Waves look ahead by their rates, which lie between steps in the place of what a V-cycle keeps.
        map Remember |p, own| {
            let (rate, zero) = (own.kept, R::lit(0.0));
            let value = own.value + rate * p.ahead;
            // The search begins there, too; a node without elements has no scale.
            let solved = R::select(zero.less(own.scale), value / own.scale, own.solved);
            Node { flux: Vector3::new(own.value, rate, zero), value, solved, ..own }
        };

        /// The right-hand side of a stage that goes on from there.
        update Load |_, own, around| {
            let others = around.sum(Mass, |[other], mass| mass * other.value);
            Node { load: others + around.sum(Own, |[], (source, mass)| source + mass * own.value), ..own }
        };

        /// What the second stage goes on from.
        map Between |_, own| {
            let (before, ratio) = (own.flux.x, R::lit((1.0 - GAMMA) / GAMMA));
            Node { value: before + (own.value - before) * ratio, ..own }
        };

        /// As far again as to the middle of the step.
        map Beyond |p, own| {
            let (before, rate) = (own.flux.x, own.flux.y);
            let way = own.value - before;
            Node { value: own.value + way, kept: way * (R::lit(2.0) / p.ahead) - rate, ..own }
        };

        /// The smallest value.
        min Smallest("smallest value", "") |_, own, _| own.value;

        /// The largest value.
        max Largest("largest value", "") |_, own, _| own.value;

        /// The largest flux.
        max Fastest("largest flux", "") |p, own, _| {
            // What is there otherwise is left from a step in time.
            let largest = own.flux.dot(&own.flux).sqrt();
            R::select(p.has_flux.greater(R::lit(0.0)), largest, R::lit(0.0))
        };
    }
}

/// Poisson's equation on a mesh.
#[derive(Clone)]
pub struct Poisson {
    equation: Arc<Equation<1>>,
    levels: Arc<Multigrid<1>>,
    around: Arc<Vec<[u32; 2]>>,
    slopes: Arc<Vec<[f64; 3]>>,
    /// Pairs of a node and one that has its values.
    followers: Arc<Vec<[u32; 2]>>,
    /// What of values before a step there is in its right-hand side.
    mass: Option<Arc<Matrix<1>>>,
    /// Values at the start.
    starts: Arc<Vec<f64>>,
    options: PoissonOptions,
}

/// Which equation is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EquationKind {
    /// Poisson's: each step solves for the steady state.
    Poisson,
    /// `capacity ∂u/∂t = ∇·(conductivity ∇u) + source`.
    Heat,
    /// `capacity ∂²u/∂t² = ∇·(conductivity ∇u) + source`.
    Wave,
}

/// Settings of Poisson's equation; `PoissonOptions::default()` is what the command takes.
#[derive(Clone, Debug, PartialEq)]
pub struct PoissonOptions {
    /// Degree of the elements, 1 or 2.
    pub degree: usize,
    /// What flows through a square meter for a slope of 1.
    pub conductivity: f64,
    /// What comes up in a cubic meter.
    pub source: f64,
    /// Which equation is solved.
    pub equation: EquationKind,
    /// Heat capacity, or mass of a wave, of a cubic meter.
    pub capacity: f64,
    /// The value at the start, where none is held.
    pub start: f64,
    /// Along which axes both ends of the mesh are one.
    pub periodic: [bool; 3],
    /// Time step, s, if it is not steady.
    pub dt: f64,
    /// Whether what flows is found, too, node by node. Without it the set-up takes less time, and a third less memory.
    pub has_flux: bool,
    /// The residual over the first at which a step ends.
    pub tolerance: f64,
    /// The most iterations of a step.
    pub rounds: usize,
}

impl PoissonOptions {
    fn of(settings: &Settings) -> Result<PoissonOptions> {
        Ok(PoissonOptions {
            degree: if settings.choice("degree") == "1" { 1 } else { 2 },
            conductivity: settings.number("conductivity"),
            source: settings.number("source"),
            equation: match settings.choice("equation") {
                "heat" => EquationKind::Heat,
                "wave" => EquationKind::Wave,
                _ => EquationKind::Poisson,
            },
            capacity: settings.number("capacity"),
            start: settings.number("start"),
            periodic: axes("periodic", settings.text("periodic"))?,
            dt: settings.number("dt"),
            has_flux: settings.choice("flux") == "nodes",
            tolerance: settings.number("tolerance"),
            rounds: settings.count("rounds"),
        })
    }

    fn elements(&self, mesh: &Mesh) -> Result<Elements> {
        let mut elements = mesh.elements(self.degree)?;
        join(self.periodic, mesh.bounds(), |first, second| {
            elements.periodic(|face| first(face.place), |face| second(face.place))
        })?;
        Ok(elements)
    }
}

impl Default for PoissonOptions {
    fn default() -> PoissonOptions {
        PoissonOptions::of(&Settings::new(Poisson::INFO.settings)).expect("no axis is named")
    }
}

impl Poisson {
    /// `-∇·(conductivity ∇u) = source` on a mesh, which becomes that of the [nodes](Elements::mesh). `source`: besides that of the options, by
    /// place. `condition`: what holds at a face of the boundary, by the name of its group, if it has one, and by place.
    ///
    /// # Errors
    /// A mesh without [`Elements`], or with ends that [cannot be one](Elements::periodic); no value that is held anywhere in what is steady, or no time
    /// step for what is not.
    ///
    /// ```
    /// use meshweft::{Simulation, mesh::generate::generate};
    /// use meshweft_examples::poisson::{Poisson, PoissonOptions};
    /// use meshweft_physics::Condition;
    /// let mut mesh = generate("bar:5x2x2", 1)?;
    /// // u = x² on the boundary and -2 inside.
    /// let options = PoissonOptions { source: -2.0, ..PoissonOptions::default() };
    /// let poisson = Poisson::with(&mut mesh, &options, |_| 0.0, |_, at| Condition::Value(at.place[0].powi(2)))?;
    /// let mut run = Simulation::builder(mesh, poisson).precision::<f64>().build()?;
    /// run.step()?;
    /// let values = run.field("value")?.values;
    /// assert!(run.mesh().points().iter().zip(&values).all(|(p, u)| (p[0].powi(2) - u).abs() < 1e-7));
    /// # anyhow::Ok(())
    /// ```
    pub fn with(
        mesh: &mut Mesh,
        options: &PoissonOptions,
        source: impl Fn(&At) -> f64 + Sync,
        condition: impl Fn(Option<&str>, &At) -> Condition + Sync,
    ) -> Result<Poisson> {
        let elements = options.elements(mesh)?;
        let made = Poisson::of(&elements, options, source, condition)?;
        *mesh = elements.into_mesh();
        Ok(made)
    }

    fn of(
        elements: &Elements,
        options: &PoissonOptions,
        source: impl Fn(&At) -> f64 + Sync,
        condition: impl Fn(Option<&str>, &At) -> Condition + Sync,
    ) -> Result<Poisson> {
        let own = options.source;
        let mut equation = diffusion(elements, |_| options.conductivity, |at| own + source(at), condition);
        let mass = Poisson::mass(elements, options, &equation)?;
        if let Some(mass) = &mass {
            equation.matrix.add(mass);
        }
        let rows = equation.matrix.times(&vec![[1.0]; equation.loads.len()]);
        let is_held = equation.held.iter().any(|held| held[0].is_some());
        let scale = equation.matrix.diagonal.iter().fold(0.0, |most: f64, d| most.max(d[0][0]));
        if !is_held && rows.iter().all(|row| row[0].abs() <= 1e-12 * scale) {
            bail!("nothing is held: hold a value somewhere, as in values=xmin=0, or exchange with what is outside");
        }
        let mesh = elements.mesh();
        let levels = Multigrid::scalar(&equation.matrix, mesh.points(), mesh.dimension());
        // The levels have it, scaled.
        equation.matrix = Matrix::default();
        let (around, slopes) = if options.has_flux { elements.mean_slopes() } else { Default::default() };
        let starts = vec![options.start; equation.held.len()];
        let made = Poisson {
            mass: mass.map(Arc::new),
            starts: Arc::new(starts),
            equation: Arc::new(equation),
            levels: Arc::new(levels),
            around: Arc::new(around),
            slopes: Arc::new(slopes),
            followers: Arc::new(elements.followers()),
            options: options.clone(),
        };
        Ok(made.held())
    }

    /// What is held starts as it is held, and what follows as what it follows.
    fn held(mut self) -> Poisson {
        let starts = Arc::make_mut(&mut self.starts);
        starts.iter_mut().zip(&self.equation.held).for_each(|(start, held)| *start = held[0].unwrap_or(*start));
        self.followers.iter().for_each(|&[lead, follower]| starts[follower as usize] = starts[lead as usize]);
        self
    }

    /// What of values before a step there is in its right-hand side, and in the matrix: the mass over the time step. What is held has none.
    ///
    /// # Errors
    /// No time step.
    fn mass(elements: &Elements, options: &PoissonOptions, equation: &Equation<1>) -> Result<Option<Matrix<1>>> {
        let PoissonOptions { equation: kind, capacity, dt, .. } = *options;
        let over = match kind {
            EquationKind::Poisson if dt != 0.0 => {
                bail!("dt is for what changes in time: set equation to heat or wave, too")
            }
            EquationKind::Poisson => return Ok(None),
            _ if dt.is_nan() || dt <= 0.0 => bail!("what changes in time needs a time step: set dt"),
            EquationKind::Heat => capacity / (GAMMA * dt),
            EquationKind::Wave => 4.0 * capacity / (dt * dt),
        };
        if !over.is_finite() {
            bail!("a time step of {dt} s is too short for numbers of 64 bits");
        }
        let mut mass = elements.cells().mass(|_| [[over]]);
        // What is held stays: its share in what comes and in what is solved for is the same.
        mass.hold(&equation.held, &mut vec![[0.0]; equation.held.len()]);
        let held = mass.diagonal.iter_mut().zip(&equation.held).filter(|(_, held)| held[0].is_some());
        held.for_each(|(block, _)| *block = [[0.0]]);
        Ok(Some(mass))
    }

    /// The same with these values at the start, by place, where none is held. `nodes`: the mesh that [`with`](Poisson::with) has left. Cost O(nodes).
    ///
    /// # Panics
    /// Another mesh, of another number of points.
    #[must_use]
    pub fn starting(mut self, nodes: &Mesh, value: impl Fn([f64; 3]) -> f64) -> Poisson {
        assert_eq!(nodes.points().len(), self.starts.len(), "the mesh of the nodes");
        self.starts = Arc::new(nodes.points().iter().map(|place| value(*place)).collect());
        self.held()
    }
}

impl Program for Poisson {
    fn time_step(&self) -> f64 {
        if self.mass.is_some() { self.options.dt } else { 1.0 }
    }

    fn parameters(&self, _time: f64) -> Parameters<f64> {
        let ahead = if self.options.equation == EquationKind::Wave { 0.5 * self.options.dt } else { 0.0 };
        let has_flux = if self.options.has_flux { 1.0 } else { 0.0 };
        Parameters { conductivity: self.options.conductivity, ahead, has_flux }
    }

    fn parts(&self, _mesh: &Mesh) -> Vec<Vec<[f64; 3]>> {
        self.levels.points.clone()
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        add_levels(&self.levels, stars);
        if let Some(mass) = &self.mass {
            let (own, levels) = (mass.clone(), self.levels.clone());
            stars.add(Mass, mass.pairs.clone(), move |i: Incidence<2>| {
                let [[scale]] = levels.scales[own.pairs[i.element][i.corner] as usize];
                scale * own.blocks[i.element][0][0]
            });
            let (own, levels, equation) = (mass.clone(), self.levels.clone(), self.equation.clone());
            let nodes = (0..equation.loads.len() as u32).map(|v| [v]).collect();
            stars.add(Own, nodes, move |i: Incidence<1>| {
                let [[scale]] = levels.scales[i.element];
                (scale * equation.loads[i.element][0], scale * own.diagonal[i.element][0][0])
            });
        } else {
            stars.add(Mass, Vec::new(), |_: Incidence<2>| unreachable!("there are none"));
            stars.add(Own, Vec::new(), |_: Incidence<1>| unreachable!("there are none"));
        }
        let slopes = self.slopes.clone();
        stars.add_directed(Slopes, self.around.clone(), move |i| Vector3::from(slopes[i.element]));
        stars.add_directed(Lead, self.followers.clone(), |_| ());
        Ok(())
    }

    fn initial(&self, _mesh: &Mesh, v: u32) -> Node<f64> {
        let (zero, flux) = (0.0, Vector3::zeros());
        let mut node = Node {
            value: zero,
            flux,
            load: zero,
            scale: 1.0,
            solved: zero,
            missing: zero,
            direction: zero,
            image: zero,
            kept: zero,
        };
        if let (Some(load), Some(&start)) = (self.equation.loads.get(v as usize), self.starts.get(v as usize)) {
            let ([[scale]], [[root]]) = (self.levels.scales[v as usize], self.levels.roots[v as usize]);
            node.value = start;
            (node.load, node.scale, node.solved) = (scale * load[0], scale, root * start);
        }
        node
    }

    fn step(&self, stages: &mut Stages<Self>) {
        let solve = |stages: &mut Stages<Self>| {
            if self.mass.is_some() {
                stages.on(0, |stages| stages.sweep(Load, 1));
            }
            solve(&self.levels, self.options.tolerance, self.options.rounds, stages);
            if !self.followers.is_empty() {
                stages.on(0, |stages| stages.sweep(Follow, 1));
            }
        };
        if self.mass.is_some() {
            stages.on(0, |stages| stages.map(Remember));
        }
        solve(stages);
        match self.options.equation {
            EquationKind::Poisson => {}
            EquationKind::Heat => {
                stages.on(0, |stages| stages.map(Between));
                solve(stages);
            }
            EquationKind::Wave => stages.on(0, |stages| stages.map(Beyond)),
        }
        if self.options.has_flux {
            stages.on(0, |stages| stages.sweep(Flow, 1));
        }
    }
}

impl Example for Poisson {
    const INFO: Info = Info {
        name: "poisson",
        about: "steady heat, or anything that diffuses, between what holds at the boundary (finite elements, conjugate gradients)",
        mesh: "plate:32x48",
        steps: 1,
        settings: &[
            Setting { name: "degree", about: "degree of the elements", kind: Kind::Choice(&["2", "1"]) },
            Setting::number(
                "conductivity",
                "what flows through a square meter for a slope of 1",
                1.0,
                "",
                [1e-300, 1e300],
            ),
            Setting::number("source", "what comes up in a cubic meter", 1.0, "", [-1e300, 1e300]),
            Setting {
                name: "values",
                about: "sides that are held at a value: groups of the mesh file, xmin to zmax, or rest",
                kind: Kind::Text { default: "rest=0", form: "SIDE=VALUE, .." },
            },
            Setting {
                name: "fluxes",
                about: "sides through which so much flows in, in a square meter",
                kind: Kind::Text { default: "", form: "SIDE=FLUX, .." },
            },
            Setting {
                name: "exchange",
                about: "sides through which so much flows in for a difference of 1 to a value outside",
                kind: Kind::Text { default: "", form: "SIDE=FLUX:OUTSIDE, .." },
            },
            Setting {
                name: "periodic",
                about: "axes along which both ends of the mesh are one, as in xy: what leaves at one comes in at the other",
                kind: Kind::Text { default: "", form: "AXES" },
            },
            Setting {
                name: "equation",
                about: "which equation is solved: the steady one, or one in time",
                kind: Kind::Choice(&["poisson", "heat", "wave"]),
            },
            Setting::number("dt", "time step of heat and waves", 0.0, "s", [0.0, 1e300]),
            Setting::number("capacity", "heat capacity, or mass of a wave, of a cubic meter", 1.0, "", [1e-300, 1e300]),
            Setting {
                name: "flux",
                about: "what flows at nodes, or none, whose largest is told as 0: a quicker set-up in two thirds of the memory",
                kind: Kind::Choice(&["nodes", "none"]),
            },
            Setting::number("start", "value that heat and waves start from", 0.0, "", [-1e300, 1e300]),
            Setting::number("tolerance", "residual at which a step ends, over the first", 1e-8, "", [0.0, 1.0]),
            Setting::number("rounds", "the most iterations of a step", 1e4, "", [1.0, 1e9]),
        ],
        precision: Precision::F64,
        ..Info::DEFAULT
    };

    fn new(mesh: &mut Mesh, settings: &Settings, order: Order) -> Result<Poisson> {
        if order.key == Key::Jacobi {
            bail!("poisson solves by sweeps in place, which order jacobi has not: take another order");
        }
        let options = PoissonOptions::of(settings)?;
        let elements = options.elements(mesh)?;
        let all: Vec<Said> = ["values", "fluxes", "exchange"]
            .into_iter()
            .flat_map(|setting| said(setting, settings.text(setting)))
            .collect();
        let condition = |said: &Said| -> Result<Condition> {
            Ok(match said.setting {
                "values" => Condition::Value(said.numbers::<1>()?[0]),
                "fluxes" => Condition::Flux(said.numbers::<1>()?[0]),
                _ => {
                    let [per_difference, outside] = said.numbers()?;
                    Condition::Exchange { per_difference, outside }
                }
            })
        };
        let conditions: Vec<Condition> = all.iter().map(condition).collect::<Result<_>>()?;
        let faces = faces(&elements, &all)?;
        let at = |at: &At| faces[at.element].first().map_or(Condition::Flux(0.0), |&k| conditions[k]);
        let made = Poisson::of(&elements, &options, |_| 0.0, |_, place| at(place))?;
        *mesh = elements.into_mesh();
        Ok(made)
    }

    fn look(&self) -> Look {
        Look {
            // Between steps of waves `kept` is how quickly the value rises.
            states: Some(match (self.options.equation, self.options.has_flux) {
                (EquationKind::Wave, true) => &["value", "flux", "kept"],
                (EquationKind::Wave, false) => &["value", "kept"],
                (_, true) => &["value", "flux"],
                (_, false) => &["value"],
            }),
            color: Some("value"),
            label: "value",
            map: ColorMap::Plasma,
            is_steady: self.mass.is_none(),
            ..Look::default()
        }
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}
