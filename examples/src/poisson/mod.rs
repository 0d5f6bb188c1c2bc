//! Poisson's equation: the steady state of what diffuses, by finite elements.
//!
//! Elements of degree 1 or 2 give a symmetric matrix. Conjugate gradients solve it, with a V-cycle of multigrid as preconditioner: the coarse
//! [levels](Multigrid) are parts beside the mesh. The equation is that of [`diffusion`], where values that are known are no unknowns.

mod checks;

use crate::gradients::conjugate_gradients;
use crate::sides::{Said, faces, said};
use anyhow::{Result, bail};
use meshweft::nalgebra::Vector3;
use meshweft::{Key, Order, Program, Stages, Stars, record};
use meshweft_command::{Check, ColorMap, Example, Info, Kind, Look, Precision, Setting, Settings};
use meshweft_mesh::{At, Elements, Mesh, Multigrid};
use meshweft_physics::{Condition, Equation, diffusion};
use std::sync::Arc;

record! {
    /// Numbers that all nodes read.
    pub struct Parameters<R> {
        /// What flows for a slope of 1.
        conductivity: R,
    }
}

conjugate_gradients! {
    for Poisson, Parameters: value: R, R, 1;
    vertex {
        /// The solution; within a step what sweeps solve for.
        shared value: R,
        /// What flows through a square meter.
        flux: Vector3<R>,
    }
    globals {}
    stars {
        /// Nodes that share an element, and how the mean slope depends on the difference.
        pub Slopes[1]: Vector3<R>;
    }
    kernels {
        /// What flows.
        update Flow |p, own, around| {
            let slope = around.sum(Slopes, |[other], slope| slope * (other.value - own.value));
            Node { flux: slope * (R::lit(0.0) - p.conductivity), ..own }
        };

        /// The smallest value.
        min Smallest("smallest value", "") |_, own, _| own.value;

        /// The largest value.
        max Largest("largest value", "") |_, own, _| own.value;

        /// The largest flux.
        max Fastest("largest flux", "") |_, own, _| own.flux.dot(&own.flux).sqrt();
    }
}

/// Poisson's equation on a mesh.
#[derive(Clone)]
pub struct Poisson {
    equation: Arc<Equation<1>>,
    levels: Arc<Multigrid<1>>,
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
        let levels = Multigrid::scalar(&equation.matrix, mesh.points(), mesh.dimension());
        Ok(Poisson {
            equation: Arc::new(equation),
            levels: Arc::new(levels),
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

    fn parts(&self, _mesh: &Mesh) -> Vec<Vec<[f64; 3]>> {
        self.levels.points.clone()
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        add_levels(&self.levels, stars);
        let slopes = self.slopes.clone();
        stars.add_directed(Slopes, self.around.clone(), move |i| Vector3::from(slopes[i.element]));
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
        let Equation { loads, held, .. } = &*self.equation;
        if let (Some(load), Some(held)) = (loads.get(v as usize), held.get(v as usize)) {
            let ([[scale]], [[root]]) = (self.levels.scales[v as usize], self.levels.roots[v as usize]);
            node.value = held[0].unwrap_or(0.0);
            (node.load, node.scale, node.solved) = (scale * load[0], scale, root * node.value);
        }
        node
    }

    fn step(&self, stages: &mut Stages<Self>) {
        solve(&self.levels, self.options.tolerance, self.options.rounds, stages);
        stages.on(0, |stages| stages.sweep(Flow, 1));
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
