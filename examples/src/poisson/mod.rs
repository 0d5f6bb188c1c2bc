//! Poisson's equation: the steady state of what diffuses, by finite elements.
//!
//! Elements of degree 1 or 2 give a symmetric matrix `A = D - F - B`: its diagonal, and what comes from neighbors that are earlier and later in
//! the order. Conjugate gradients solve it, with symmetric Gauss–Seidel as preconditioner; as in [`heat`](crate::heat::Implicit) an
//! iteration is one sweep backward and one forward (Eisenstat, SIAM J. Sci. Stat. Comput. 2, 1981). The equation is that of
//! [`diffusion`], where values that are known are no unknowns.

mod checks;

use crate::sides::{Said, faces, said};
use anyhow::{Result, bail};
use meshweft::nalgebra::Vector3;
use meshweft::{Key, Order, Program, Stages, Stars, kernels, record, stars, vertex};
use meshweft_command::{Check, ColorMap, Example, Info, Kind, Look, Precision, Setting, Settings};
use meshweft_mesh::{At, Elements, Mesh};
use meshweft_physics::{Condition, diffusion};
use std::sync::Arc;

record! {
    /// Numbers that all nodes read.
    pub struct Parameters<R> {
        /// What flows for a slope of 1.
        conductivity: R,
    }
}

record! {
    /// How far conjugate gradients are.
    pub struct Progress<R> {
        /// The square of the largest residual that a step began with, preconditioned.
        first: R,
        /// That of the present one.
        missing: R,
        /// The square of the present direction in the norm of the equation.
        curvature: R,
        /// The square of the residual after the next iteration.
        next: R,
        /// How far to go along the direction.
        stride: R,
        /// How much of the direction to keep.
        keep: R,
    }
}

vertex! {
    /// A node.
    pub struct Node<R> {
        /// The solution; within a step what sweeps solve for.
        shared value: R,
        /// What flows through a square meter.
        flux: Vector3<R>,
        /// The right-hand side.
        load: R,
        /// The diagonal of the matrix.
        diagonal: R,
        /// The solution so far.
        solved: R,
        /// The residual over the diagonal, preconditioned.
        missing: R,
        /// Where to go.
        direction: R,
        /// What a sweep backward makes of that.
        backward: R,
        /// What neighbors that come earlier have added in the sweep forward.
        earlier: R,
        /// What the equation makes of the direction.
        image: R,
    }
}

stars! {
    /// Nodes that share an element, and minus the entry of the matrix.
    pub Pairs[1]: R;
    /// The same, and how the mean slope depends on the difference.
    pub Slopes[1]: Vector3<R>;
}

kernels! {
    for Poisson: Node, Parameters, Progress;

    /// The residual that a step starts from; nothing is solved for yet.
    update Begin |_, own, around| {
        let known = own.load + around.sum(Pairs, |[other], weight| weight * other.value);
        let missing = known / own.diagonal - own.value;
        let zero = R::lit(0.0);
        Node { value: zero, solved: own.value, missing, direction: zero, backward: zero, image: zero, ..own }
    };

    /// Preconditions it: all neighbors that come later are still zero.
    update Precondition |_, own, around| {
        let earlier = around.sum(Pairs, |[other], weight| weight * other.value) / own.diagonal;
        let missing = own.missing + earlier;
        Node { value: missing, missing, earlier, ..own }
    };

    /// Takes the step that was found, turns, and sweeps backward.
    update Backward |p, own, around| {
        let Progress { stride, keep, .. } = p.globals;
        let missing = own.missing - stride * own.image;
        let direction = missing + keep * own.direction;
        let neighbors = around.sum(Pairs, |[other], weight| weight * other.value) / own.diagonal;
        let backward = direction + (neighbors - own.earlier);
        Node { value: backward, solved: own.solved + stride * own.backward, missing, direction, backward, ..own }
    };

    /// Sweeps forward. What later neighbors add is `backward - direction`.
    update Forward |_, own, around| {
        let rest = own.direction - own.backward;
        let neighbors = around.sum(Pairs, |[other], weight| weight * other.value) / own.diagonal;
        let earlier = neighbors + rest;
        let forward = rest + earlier;
        Node { value: forward, earlier, image: own.backward + forward, ..own }
    };

    /// Takes the last step.
    map End |p, own| {
        let value = own.solved + p.globals.stride * own.backward;
        Node { value, solved: value, ..own }
    };

    /// What flows.
    update Flow |p, own, around| {
        let slope = around.sum(Slopes, |[other], slope| slope * (other.value - own.value));
        Node { flux: slope * (R::lit(0.0) - p.conductivity), ..own }
    };

    /// The square of the residual.
    sum Square |_, own, _| own.diagonal * own.missing * own.missing;

    /// The square of the direction in the norm of the equation.
    sum Curvature |_, own, _| own.diagonal * own.direction * own.image;

    /// The square of the residual after the next iteration.
    sum Next |p, own, _| {
        let missing = own.missing - p.globals.stride * own.image;
        own.diagonal * missing * missing
    };

    /// Where to start.
    scalar Start |p| {
        let Progress { first, missing, .. } = p.globals;
        let zero = R::lit(0.0);
        Progress { first: first.max(missing), stride: zero, keep: zero, ..p.globals }
    };

    /// How far to go. Where nothing is missing any more the curvature may be zero, too.
    scalar Stride |p| {
        let Progress { missing, curvature, .. } = p.globals;
        let zero = R::lit(0.0);
        Progress { stride: R::select(zero.less(curvature), missing / curvature, zero), ..p.globals }
    };

    /// How much of the direction to keep.
    scalar Turn |p| {
        let Progress { missing, next, .. } = p.globals;
        let zero = R::lit(0.0);
        Progress { keep: R::select(zero.less(missing), next / missing, zero), missing: next, ..p.globals }
    };

    /// Whether the residual is small enough.
    test Arrived[square] |p| p.globals.missing.at_most(square * p.globals.first);

    /// The smallest value.
    min Smallest("smallest value", "") |_, own, _| own.value;

    /// The largest value.
    max Largest("largest value", "") |_, own, _| own.value;

    /// The largest flux.
    max Fastest("largest flux", "") |_, own, _| own.flux.dot(&own.flux).sqrt();
}

/// Poisson's equation on a mesh.
#[derive(Clone)]
pub struct Poisson {
    /// Loads and diagonal of each node.
    nodes: Arc<Vec<[f64; 2]>>,
    /// Values that are known.
    held: Arc<Vec<[Option<f64>; 1]>>,
    pairs: Arc<Vec<[u32; 2]>>,
    weights: Arc<Vec<f64>>,
    around: Arc<Vec<[u32; 2]>>,
    slopes: Arc<Vec<[f64; 3]>>,
    options: PoissonOptions,
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
    /// The residual over the first at which a step ends.
    pub tolerance: f64,
    /// The most iterations of a step.
    pub rounds: usize,
}

impl From<&Settings> for PoissonOptions {
    fn from(settings: &Settings) -> PoissonOptions {
        PoissonOptions {
            degree: if settings.choice("degree") == "1" { 1 } else { 2 },
            conductivity: settings.number("conductivity"),
            source: settings.number("source"),
            tolerance: settings.number("tolerance"),
            rounds: settings.count("rounds"),
        }
    }
}

impl Default for PoissonOptions {
    fn default() -> PoissonOptions {
        PoissonOptions::from(&Settings::new(Poisson::INFO.settings))
    }
}

impl Poisson {
    /// `-∇·(conductivity ∇u) = source` on a mesh, which becomes that of the [nodes](Elements::mesh). `source`: besides that of the options, by
    /// place. `condition`: what holds at a face of the boundary, by the name of its group, if it has one, and by place.
    ///
    /// # Errors
    /// A mesh without [`Elements`], or no value that is held anywhere.
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
        let elements = mesh.elements(options.degree)?;
        let made = Poisson::of(&elements, options, source, condition)?;
        *mesh = elements.mesh().clone();
        Ok(made)
    }

    fn of(
        elements: &Elements,
        options: &PoissonOptions,
        source: impl Fn(&At) -> f64 + Sync,
        condition: impl Fn(Option<&str>, &At) -> Condition + Sync,
    ) -> Result<Poisson> {
        let own = options.source;
        let equation = diffusion(elements, |_| options.conductivity, |at| own + source(at), condition);
        let rows = equation.matrix.times(&vec![[1.0]; equation.loads.len()]);
        let is_held = equation.held.iter().any(|held| held[0].is_some());
        let scale = equation.matrix.diagonal.iter().fold(0.0, |most: f64, d| most.max(d[0][0]));
        if !is_held && rows.iter().all(|row| row[0].abs() <= 1e-12 * scale) {
            bail!("nothing is held: hold a value somewhere, as in values=xmin=0, or exchange with what is outside");
        }
        let (around, slopes) = elements.mean_slopes();
        // A node of no element has no equation.
        let diagonal = |d: &[[f64; 1]; 1]| if d[0][0] > 0.0 { d[0][0] } else { 1.0 };
        let nodes = equation.loads.iter().zip(&equation.matrix.diagonal).map(|(load, d)| [load[0], diagonal(d)]);
        let weights = equation.matrix.blocks.iter().map(|block| -block[0][0]);
        Ok(Poisson {
            nodes: Arc::new(nodes.collect()),
            held: Arc::new(equation.held),
            weights: Arc::new(weights.collect()),
            pairs: Arc::new(equation.matrix.pairs),
            around: Arc::new(around),
            slopes: Arc::new(slopes),
            options: options.clone(),
        })
    }
}

impl Program for Poisson {
    fn parameters(&self, _time: f64) -> Parameters<f64> {
        Parameters { conductivity: self.options.conductivity }
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        let (weights, slopes) = (self.weights.clone(), self.slopes.clone());
        stars.add_shared(Pairs, self.pairs.clone(), move |i| weights[i.element]);
        stars.add_directed(Slopes, self.around.clone(), move |i| Vector3::from(slopes[i.element]));
        Ok(())
    }

    fn initial(&self, _mesh: &Mesh, v: u32) -> Node<f64> {
        let [load, diagonal] = self.nodes[v as usize];
        let value = self.held[v as usize][0].unwrap_or(0.0);
        let [missing, direction, backward, earlier, image] = [0.0; 5];
        let flux = Vector3::zeros();
        Node { value, flux, load, diagonal, solved: value, missing, direction, backward, earlier, image }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        stages.jacobi(Begin, 1);
        stages.sweep(Precondition, 1);
        stages.reduce(Square, |g| &mut g.missing);
        stages.scalar(Start);
        stages.until(Arrived { square: self.options.tolerance.powi(2) }, self.options.rounds, |stages| {
            stages.sweep_backward(Backward, 1);
            stages.sweep(Forward, 1);
            stages.reduce(Curvature, |g| &mut g.curvature);
            stages.scalar(Stride);
            stages.reduce(Next, |g| &mut g.next);
            stages.scalar(Turn);
        });
        stages.map(End);
        stages.jacobi(Flow, 1);
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
        let options = PoissonOptions::from(settings);
        let elements = mesh.elements(options.degree)?;
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
        *mesh = elements.mesh().clone();
        Ok(made)
    }

    fn look(&self) -> Look {
        Look {
            states: Some(&["value", "flux"]),
            color: Some("value"),
            label: "value",
            map: ColorMap::Inferno,
            is_steady: true,
            ..Look::default()
        }
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}
