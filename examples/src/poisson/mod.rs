//! Poisson's equation: the steady state of what diffuses, by finite elements.
//!
//! Elements of degree 1 or 2 give a symmetric matrix, which is scaled to a diagonal of ones: `A = 1 - E - L`, where `E` and `L` are what comes from
//! neighbors that are earlier and later in the order. Conjugate gradients solve it, with a V-cycle of multigrid as preconditioner: the coarse
//! [levels](meshweft_mesh::coarse_levels) are parts beside the mesh. On each level there is a sweep forward and one backward. The first
//! starts from zero, so that it needs earlier neighbors alone, and what it leaves is `L` times its result, which a second sweep forward puts
//! in its place. The equation is that of [`diffusion`], where values that are known are no unknowns.

mod checks;

use crate::sides::{Said, faces, said};
use anyhow::{Result, bail};
use meshweft::nalgebra::Vector3;
use meshweft::{Key, Order, Program, Stages, Stars, kernels, record, stars, vertex};
use meshweft_command::{Check, ColorMap, Example, Info, Kind, Look, Precision, Setting, Settings};
use meshweft_mesh::{At, Elements, Level, Matrix, Mesh, coarse_levels};
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
        /// The square of the largest residual that a step began with.
        first: R,
        /// That of the present one.
        missing: R,
        /// That of the one after the next stride.
        next: R,
        /// The product of the residual and what the preconditioner makes of it.
        product: R,
        /// The same in the iteration before.
        before: R,
        /// The product of the direction and its image, which the equation makes of it.
        curvature: R,
        /// The product of the residual and that image.
        across: R,
        /// The square of that image.
        length: R,
        /// How far to go along the direction.
        stride: R,
        /// How much of the direction to keep.
        keep: R,
    }
}

vertex! {
    /// A node, or a vertex of a coarse level.
    pub struct Node<R> {
        /// The solution; within a step what sweeps solve for.
        shared value: R,
        /// What flows through a square meter.
        flux: Vector3<R>,
        /// The right-hand side, scaled.
        load: R,
        /// What a scaled value is multiplied by: one over the root of the diagonal.
        scale: R,
        /// The solution so far, scaled.
        solved: R,
        /// The residual; on a coarse level that of the level above.
        missing: R,
        /// Where to go.
        direction: R,
        /// What the equation makes of the direction.
        image: R,
        /// What the sweep down has found, while the residual is in its place.
        kept: R,
    }
}

stars! {
    /// Neighbors that come earlier in the order, and minus the entry of the matrix.
    pub Earlier[1]: R;
    /// Those that come later.
    pub Later[1]: R;
    /// What a coarse vertex stands for, and its share of the value there.
    pub Finer[1]: R;
    /// The coarse vertices of a finer one.
    pub Coarser[1]: R;
    /// Nodes that share an element, and how the mean slope depends on the difference.
    pub Slopes[1]: Vector3<R>;
}

kernels! {
    for Poisson: Node, Parameters, Progress;

    /// Scales what a step starts from.
    map Scale |_, own| {
        let (value, zero) = (own.value / own.scale, R::lit(0.0));
        Node { value, solved: value, direction: zero, image: zero, ..own }
    };

    /// The residual that it starts from.
    update Begin |_, own, around| {
        let earlier = around.sum(Earlier, |[other], weight| weight * other.value);
        let later = around.sum(Later, |[other], weight| weight * other.value);
        Node { missing: own.load + earlier + later - own.value, ..own }
    };

    /// Takes the step that was found, and begins the next: a sweep from zero.
    update Descend |p, own, around| {
        let stride = p.globals.stride;
        let missing = own.missing - stride * own.image;
        let value = missing + around.sum(Earlier, |[other], weight| weight * other.value);
        Node { value, missing, solved: own.solved + stride * own.direction, ..own }
    };

    /// Puts the residual in the place of what a sweep from zero has found: later neighbors, which it had not reached.
    update Leave |_, own, around| {
        Node { value: around.sum(Later, |[other], weight| weight * other.value), kept: own.value, ..own }
    };

    /// Takes the residual of the level above, and sweeps from zero.
    update Restrict |_, own, around| {
        let missing = around.sum(Finer, |[other], share| share * other.value);
        let value = missing + around.sum(Earlier, |[other], weight| weight * other.value);
        Node { value, missing, ..own }
    };

    /// Adds what the level below has found.
    update Correct |_, own, around| {
        Node { value: own.kept + around.sum(Coarser, |[other], share| share * other.value), ..own }
    };

    /// Gauss–Seidel.
    update Smooth |_, own, around| {
        let earlier = around.sum(Earlier, |[other], weight| weight * other.value);
        let later = around.sum(Later, |[other], weight| weight * other.value);
        Node { value: own.missing + earlier + later, ..own }
    };

    /// Turns.
    map Turn |p, own| {
        let direction = own.value + p.globals.keep * own.direction;
        Node { value: direction, direction, ..own }
    };

    /// What the equation makes of the direction.
    update Apply |_, own, around| {
        let earlier = around.sum(Earlier, |[other], weight| weight * other.value);
        let later = around.sum(Later, |[other], weight| weight * other.value);
        Node { image: own.value - earlier - later, ..own }
    };

    /// Takes the last step, in the unit of the user.
    map End |p, own| {
        let solved = own.solved + p.globals.stride * own.direction;
        Node { value: own.scale * solved, solved, ..own }
    };

    /// What flows.
    update Flow |p, own, around| {
        let slope = around.sum(Slopes, |[other], slope| slope * (other.value - own.value));
        Node { flux: slope * (R::lit(0.0) - p.conductivity), ..own }
    };

    /// The square of the residual.
    sum Square |_, own, _| own.missing * own.missing;

    /// Its product with what the preconditioner makes of it.
    sum Product |_, own, _| own.missing * own.value;

    /// The product of the direction and its image.
    sum Curvature |_, own, _| own.direction * own.image;

    /// The product of the residual and that image.
    sum Across |_, own, _| own.missing * own.image;

    /// The square of that image.
    sum Length |_, own, _| own.image * own.image;

    /// Where to start.
    scalar Start |p| {
        let Progress { first, missing, .. } = p.globals;
        let zero = R::lit(0.0);
        Progress { first: first.max(missing), next: missing, before: zero, stride: zero, keep: zero, ..p.globals }
    };

    /// How much of the direction to keep.
    scalar Keep |p| {
        let Progress { product, before, .. } = p.globals;
        let zero = R::lit(0.0);
        Progress { keep: R::select(zero.less(before), product / before, zero), before: product, ..p.globals }
    };

    /// How far to go, and what is then missing. Where nothing is missing any more the curvature may be zero, too.
    scalar Stride |p| {
        let Progress { missing, product, curvature, across, length, .. } = p.globals;
        let zero = R::lit(0.0);
        let stride = R::select(zero.less(curvature), product / curvature, zero);
        let next = missing - stride * (across + across - stride * length);
        Progress { stride, next: next.max(zero), ..p.globals }
    };

    /// Whether the residual is small enough.
    test Arrived[square] |p| p.globals.next.at_most(square * p.globals.first);

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
    /// Load and scale of each node.
    nodes: Arc<Vec<[f64; 2]>>,
    /// Values that are known.
    held: Arc<Vec<[Option<f64>; 1]>>,
    /// Where the vertices of each coarse level are.
    coarse: Arc<Vec<Vec<[f64; 3]>>>,
    /// The scaled matrix of all levels.
    pairs: Arc<Vec<[u32; 2]>>,
    weights: Arc<Vec<f64>>,
    /// From vertices to coarser ones, and what those share in them, scaled.
    down: Arc<Vec<[u32; 2]>>,
    shares: Arc<Vec<f64>>,
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
        let mesh = elements.mesh();
        let levels = coarse_levels(&equation.matrix, mesh.points(), mesh.dimension());
        let mut scaled = Scaled::default();
        scaled.add(&equation.matrix);
        for level in &levels {
            scaled.link(level);
            scaled.add(&level.matrix);
        }
        let nodes = equation.loads.iter().zip(&scaled.scales).map(|(load, &scale)| [scale * load[0], scale]).collect();
        let Scaled { pairs, weights, down, shares, .. } = scaled;
        Ok(Poisson {
            nodes: Arc::new(nodes),
            held: Arc::new(equation.held),
            coarse: Arc::new(levels.into_iter().map(|level| level.points).collect()),
            pairs: Arc::new(pairs),
            weights: Arc::new(weights),
            down: Arc::new(down),
            shares: Arc::new(shares),
            around: Arc::new(around),
            slopes: Arc::new(slopes),
            options: options.clone(),
        })
    }

    /// A V-cycle of multigrid on all levels, after the sweep down on the mesh.
    fn cycle(&self, stages: &mut Stages<Self>) {
        /// Symmetric sweeps that solve the coarsest level, which is small.
        const LAST: usize = 4;
        let last = self.coarse.len();
        for level in 0..last {
            stages.on(level, |stages| stages.sweep(Leave, 1));
            stages.on(level + 1, |stages| stages.sweep(Restrict, 1));
        }
        stages.on(last, |stages| stages.sweep_backward(Smooth, 1));
        for _ in 1..if last > 0 { LAST } else { 1 } {
            stages.on(last, |stages| {
                stages.sweep(Smooth, 1);
                stages.sweep_backward(Smooth, 1);
            });
        }
        for level in (0..last).rev() {
            stages.on(level, |stages| {
                stages.sweep(Correct, 1);
                stages.sweep_backward(Smooth, 1);
            });
        }
    }
}

/// Equations scaled to a diagonal of ones, level after level, whose vertices are numbered one after the other.
#[derive(Default)]
struct Scaled {
    /// One over the root of each diagonal.
    scales: Vec<f64>,
    pairs: Vec<[u32; 2]>,
    /// Minus the entries.
    weights: Vec<f64>,
    down: Vec<[u32; 2]>,
    shares: Vec<f64>,
    /// Where the last level begins.
    first: u32,
}

impl Scaled {
    fn add(&mut self, matrix: &Matrix<1>) {
        self.first = self.scales.len() as u32;
        // A node of no element has no equation.
        let scale = |d: &[[f64; 1]; 1]| if d[0][0] > 0.0 { 1.0 / d[0][0].sqrt() } else { 1.0 };
        self.scales.extend(matrix.diagonal.iter().map(scale));
        let scale = |v: u32| self.scales[(self.first + v) as usize];
        self.weights
            .extend(matrix.pairs.iter().zip(&matrix.blocks).map(|([a, b], x)| -x[0][0] * scale(*a) * scale(*b)));
        self.pairs.extend(matrix.pairs.iter().map(|pair| pair.map(|v| self.first + v)));
    }

    /// The links from the last level to the next, which is then added.
    fn link(&mut self, level: &Level) {
        let (above, below) = (self.first, self.scales.len() as u32);
        for (&[fine, coarse], share) in level.links.iter().zip(&level.shares) {
            let own = 1.0 / level.matrix.diagonal[coarse as usize][0][0].sqrt();
            self.shares.push(share * own / self.scales[(above + fine) as usize]);
            self.down.push([above + fine, below + coarse]);
        }
    }
}

impl Program for Poisson {
    fn parameters(&self, _time: f64) -> Parameters<f64> {
        Parameters { conductivity: self.options.conductivity }
    }

    fn parts(&self, _mesh: &Mesh) -> Vec<Vec<[f64; 3]>> {
        self.coarse.to_vec()
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        let (earlier, later, slopes) = (self.weights.clone(), self.weights.clone(), self.slopes.clone());
        let (finer, coarser) = (self.shares.clone(), self.shares.clone());
        stars.add_earlier(Earlier, self.pairs.clone(), move |i| earlier[i.element]);
        stars.add_later(Later, self.pairs.clone(), move |i| later[i.element]);
        let up = self.down.iter().map(|&[fine, coarse]| [coarse, fine]).collect();
        stars.add_directed(Finer, self.down.clone(), move |i| finer[i.element]);
        stars.add_directed(Coarser, Arc::new(up), move |i| coarser[i.element]);
        stars.add_directed(Slopes, self.around.clone(), move |i| Vector3::from(slopes[i.element]));
        Ok(())
    }

    fn initial(&self, _mesh: &Mesh, v: u32) -> Node<f64> {
        let (solved, missing, direction, image, kept, flux) = (0.0, 0.0, 0.0, 0.0, 0.0, Vector3::zeros());
        let [load, scale] = self.nodes.get(v as usize).copied().unwrap_or([0.0, 1.0]);
        let value = self.held.get(v as usize).and_then(|held| held[0]).unwrap_or(0.0);
        Node { value, flux, load, scale, solved, missing, direction, image, kept }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        stages.on(0, |stages| {
            stages.map(Scale);
            stages.sweep(Begin, 1);
        });
        stages.reduce(Square, |g| &mut g.missing);
        stages.scalar(Start);
        stages.until(Arrived { square: self.options.tolerance.powi(2) }, self.options.rounds, |stages| {
            stages.on(0, |stages| stages.sweep(Descend, 1));
            stages.reduce(Square, |g| &mut g.missing);
            self.cycle(stages);
            stages.reduce(Product, |g| &mut g.product);
            stages.scalar(Keep);
            stages.on(0, |stages| {
                stages.map(Turn);
                stages.sweep(Apply, 1);
            });
            stages.reduce(Curvature, |g| &mut g.curvature);
            stages.reduce(Across, |g| &mut g.across);
            stages.reduce(Length, |g| &mut g.length);
            stages.scalar(Stride);
        });
        stages.on(0, |stages| {
            stages.map(End);
            stages.sweep(Flow, 1);
        });
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
