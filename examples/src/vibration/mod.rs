//! Vibration: at which frequencies a part vibrates, and how, by finite elements.
//!
//! Elements of degree 1 or 2 give a stiffness `K` and a mass `M`; a mode is `K u = ω² M u`. Each step finds the next mode from the lowest on, by
//! a search for the least energy `u K u / u M u` that remembers its last direction, is preconditioned by a V-cycle of
//! [multigrid](Multigrid::elastic), and leaves out the modes that were found before.
//!
//! Source: Knyazev, Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate gradient method, 2001.

mod checks;
mod ritz;

use crate::multigrid::{Block, Rows, Unknowns, multigrid, transposed};
use crate::sides::{Said, faces, said};
use crate::solid;
use anyhow::{Result, bail};
use meshweft::nalgebra::Vector3;
use meshweft::{Key, Order, Program, Stages, Stars, record};
use meshweft_command::{Check, ColorMap, Example, Info, Kind, Look, Precision, Setting, Settings};
use meshweft_mesh::{At, Elements, Matrix, Mesh, Multigrid};
use meshweft_physics::{Elastic, Support};
use std::f64::consts::TAU;
use std::sync::Arc;

/// How far the drawn displacement of the largest is, over the extent of the part.
const DRAWN: f64 = 0.08;
/// How many modes are left out of a search at most.
const MOST: usize = 12;

record! {
    /// Numbers that all nodes read.
    pub struct Parameters<R> {
        /// How far the largest displacement is drawn, m.
        drawn: R,
    }
}

record! {
    /// How far the search is.
    pub struct Search<R> {
        /// `ω²` of the modes that were found, 1/s².
        values: [R; MOST],
        /// How many they are.
        count: R,
        /// That of the present search.
        value: R,
        /// The product of its residual and what the preconditioner makes of it.
        product: R,
        /// The mode that is left out next.
        next: R,
        /// How much of it there is.
        overlap: R,
        /// Products by stiffness, of what is found (x), the way on (w) and the way before (p): xw, xp, ww, wp and pp.
        stiff: [R; 5],
        /// The same by mass.
        heavy: [R; 5],
        /// How much to take of x, w and p.
        take: [R; 3],
        /// The frequency of the mode found last, Hz.
        frequency: R,
        /// Its largest displacement.
        largest: R,
    }
}

multigrid! {
    for Vibration, Parameters, Search: displacement: Vector3<R>, Rows<R>, 3;
    vertex {
        /// How far it is displaced at most, in a mode that moves a mass of 1 kg by 1 m; within a step what sweeps solve for.
        shared displacement: Vector3<R>,
        /// Where it is drawn, m.
        drawn: Vector3<R>,
        /// Where it is at rest, m.
        rest: Vector3<R>,
        /// Where a search starts, scaled.
        seed: Vector3<R>,
        /// The block on the diagonal of the mass, scaled.
        inertia: Rows<R>,
        /// What is found so far, scaled, and its products with stiffness and mass.
        found: [Vector3<R>; 3],
        /// The way on.
        way: [Vector3<R>; 3],
        /// The way before.
        before: [Vector3<R>; 3],
        /// Modes that were found, scaled.
        modes: [Vector3<R>; MOST],
        /// Their products with the mass.
        weighed: [Vector3<R>; MOST],
    }
    stars {
        /// Nodes that share an element, and the scaled block of the mass.
        pub Mass[1]: Rows<R>;
    }
    kernels {
        /// Starts anew.
        map Begin |_, own| {
            let none = [Vector3::zeros(); 3];
            Node { displacement: own.seed, found: none, before: none, ..own }
        };

        /// What stiffness and mass make of the way on.
        update Weigh |_, own, around| {
            let earlier = around.sum(Earlier, |[other], block| block * other.displacement);
            let later = around.sum(Later, |[other], block| block * other.displacement);
            let others = around.sum(Mass, |[other], block| block * other.displacement);
            let heavy = own.inertia * own.displacement + others;
            Node { way: [own.displacement, own.displacement - earlier - later, heavy], ..own }
        };

        /// Leaves a mode out.
        map Part |p, own| {
            let Search { next, overlap, values, .. } = p.globals;
            let (mut mode, mut weighed, mut value) = (Vector3::zeros(), Vector3::zeros(), R::lit(0.0));
            for j in 0..MOST {
                let is_next = R::select(next.equals(R::lit(j as f64)), R::lit(1.0), R::lit(0.0));
                mode += own.modes[j] * is_next;
                weighed += own.weighed[j] * is_next;
                value += values[j] * is_next;
            }
            let [way, stiff, heavy] = own.way;
            let weighed = weighed * overlap;
            Node { way: [way - mode * overlap, stiff - weighed * value, heavy - weighed], ..own }
        };

        /// Takes the best of what is found, the way on and the way before, and sweeps from zero over what is then missing.
        update Advance |p, own, around| {
            let [x, w, b] = p.globals.take;
            let mut before = own.way;
            let mut found = own.found;
            for k in 0..3 {
                before[k] = own.way[k] * w + own.before[k] * b;
                found[k] = own.found[k] * x + before[k];
            }
            let missing = found[1] - found[2] * p.globals.value;
            let earlier = around.sum(Earlier, |[other], block| block * other.displacement);
            Node { displacement: missing + earlier, missing, found, before, ..own }
        };

        /// Keeps the mode.
        map Keep |p, own| {
            let Search { take: [x, w, b], count, .. } = p.globals;
            let found = |k: usize| own.found[k] * x + own.way[k] * w + own.before[k] * b;
            let (mode, weighed) = (found(0), found(2));
            let (mut modes, mut all) = (own.modes, own.weighed);
            for j in 0..MOST {
                let is_new = count.equals(R::lit(j as f64));
                for k in 0..3 {
                    modes[j][k] = R::select(is_new, mode[k], modes[j][k]);
                    all[j][k] = R::select(is_new, weighed[k], all[j][k]);
                }
            }
            Node { displacement: own.scale * mode, modes, weighed: all, ..own }
        };

        /// Where it is drawn.
        map Draw |p, own| {
            let largest = p.globals.largest;
            let times = R::select(R::lit(0.0).less(largest), p.drawn / largest, R::lit(0.0));
            Node { drawn: own.rest + own.displacement * times, ..own }
        };

        /// How much of a mode there is in the way on.
        sum Overlap |p, own, _| {
            let mut sum = R::lit(0.0);
            for j in 0..MOST {
                let is_next = R::select(p.globals.next.equals(R::lit(j as f64)), R::lit(1.0), R::lit(0.0));
                sum += own.weighed[j].inner(own.way[0]) * is_next;
            }
            sum
        };

        /// The product of the residual and what the preconditioner makes of it.
        sum Product |_, own, _| own.missing.inner(own.displacement);

        /// Products by stiffness.
        sum StiffXW |_, own, _| own.found[0].inner(own.way[1]);
        /// See there.
        sum StiffXP |_, own, _| own.found[0].inner(own.before[1]);
        /// See there.
        sum StiffWW |_, own, _| own.way[0].inner(own.way[1]);
        /// See there.
        sum StiffWP |_, own, _| own.way[0].inner(own.before[1]);
        /// See there.
        sum StiffPP |_, own, _| own.before[0].inner(own.before[1]);
        /// Products by mass.
        sum HeavyXW |_, own, _| own.found[0].inner(own.way[2]);
        /// See there.
        sum HeavyXP |_, own, _| own.found[0].inner(own.before[2]);
        /// See there.
        sum HeavyWW |_, own, _| own.way[0].inner(own.way[2]);
        /// See there.
        sum HeavyWP |_, own, _| own.way[0].inner(own.before[2]);
        /// See there.
        sum HeavyPP |_, own, _| own.before[0].inner(own.before[2]);

        /// From the first mode on.
        scalar First |p| Search { next: R::lit(0.0), ..p.globals };

        /// The next mode.
        scalar Next |p| Search { next: p.globals.next + R::lit(1.0), ..p.globals };

        /// Nothing is found yet.
        scalar Start |p| Search { value: R::lit(0.0), ..p.globals };

        /// The residual is as large as what it belongs to, until it is known.
        scalar Doubt |p| Search { product: p.globals.value, ..p.globals };

        /// The least energy that x, w and p have between them.
        scalar Ritz |p| {
            let Search { value, stiff: [xw, xp, ww, wp, pp], heavy, .. } = p.globals;
            // Of what is found the mass is 1, once there is something.
            let one = R::select(R::lit(0.0).less(value), R::lit(1.0), R::lit(0.0));
            let stiff = [[value, xw, xp], [xw, ww, wp], [xp, wp, pp]];
            let [xw, xp, ww, wp, pp] = heavy;
            let (value, take) = ritz::least(stiff, [[one, xw, xp], [xw, ww, wp], [xp, wp, pp]]);
            Search { value, take, ..p.globals }
        };

        /// Another mode is known.
        scalar Known |p| {
            let Search { mut values, count, value, .. } = p.globals;
            for j in 0..MOST {
                values[j] = R::select(count.equals(R::lit(j as f64)), value, values[j]);
            }
            let frequency = value.max(R::lit(0.0)).sqrt() / R::lit(TAU);
            Search { values, count: count + R::lit(1.0), frequency, ..p.globals }
        };

        /// Whether all modes are left out.
        test Parted |p| p.globals.count.at_most(p.globals.next);

        /// Whether the residual is small enough.
        test Settled[square] |p| p.globals.product.at_most(square * p.globals.value);

        /// The frequency of the mode found last.
        max Frequency("frequency", "Hz") |p, _, _| p.globals.frequency;

        /// The largest displacement.
        max Largest |_, own, _| own.displacement.inner(own.displacement).sqrt();
    }
}

/// A solid that vibrates.
#[derive(Clone)]
pub struct Vibration {
    levels: Arc<Multigrid<3>>,
    /// Scaled.
    mass: Arc<Matrix<3>>,
    seeds: Arc<Vec<[f64; 3]>>,
    extent: f64,
    options: VibrationOptions,
}

/// Settings of a vibration; `VibrationOptions::default()` is what the command takes.
#[derive(Clone, Debug, PartialEq)]
pub struct VibrationOptions {
    /// Degree of the elements, 1 or 2.
    pub degree: usize,
    /// What it is made of.
    pub material: Elastic,
    /// kg/m³.
    pub density: f64,
    /// The residual over the energy of a mode at which it is found.
    pub tolerance: f64,
    /// The most iterations of a step.
    pub rounds: usize,
}

impl From<&Settings> for VibrationOptions {
    fn from(settings: &Settings) -> VibrationOptions {
        VibrationOptions {
            degree: if settings.choice("degree") == "1" { 1 } else { 2 },
            material: solid::material(settings),
            density: settings.number("density"),
            tolerance: settings.number("tolerance"),
            rounds: settings.count("rounds"),
        }
    }
}

impl Default for VibrationOptions {
    fn default() -> VibrationOptions {
        VibrationOptions::from(&Settings::new(Vibration::INFO.settings))
    }
}

impl Vibration {
    /// A solid, or what is thin or long and lies in the xy plane; the mesh becomes that of the [nodes](Elements::mesh). `held`: along which axes a
    /// face of the boundary is, by the name of its group, if it has one, and by place.
    ///
    /// # Errors
    /// A mesh without [`Elements`], a surface that is not flat, or nothing that is held.
    ///
    /// ```
    /// use meshweft::{Simulation, mesh::generate::generate};
    /// use meshweft_examples::vibration::{Vibration, VibrationOptions};
    /// let mut mesh = generate("bar:9x3x3", 1)?;
    /// let bar = Vibration::with(&mut mesh, &VibrationOptions::default(), |group, _| [group == Some("left"); 3])?;
    /// let mut run = Simulation::builder(mesh, bar).precision::<f64>().build()?;
    /// // It bends both ways alike, as it is as wide as high.
    /// let mut frequencies = Vec::new();
    /// for _ in 0..2 {
    ///     run.step()?;
    ///     frequencies.push(run.globals()?.frequency);
    /// }
    /// assert!((frequencies[1] / frequencies[0] - 1.0).abs() < 0.01);
    /// # anyhow::Ok(())
    /// ```
    pub fn with(
        mesh: &mut Mesh,
        options: &VibrationOptions,
        held: impl Fn(Option<&str>, &At) -> [bool; 3] + Sync,
    ) -> Result<Vibration> {
        let elements = mesh.elements(options.degree)?;
        let made = Vibration::of(&elements, options, held)?;
        *mesh = elements.into_mesh();
        Ok(made)
    }

    fn of(
        elements: &Elements,
        options: &VibrationOptions,
        held: impl Fn(Option<&str>, &At) -> [bool; 3] + Sync,
    ) -> Result<Vibration> {
        let mesh = elements.mesh();
        let (dimension, [low, high]) = (mesh.dimension(), mesh.bounds());
        let support = |group: Option<&str>, at: &At| Support {
            held: held(group, at).map(|is_held| is_held.then_some(0.0)),
            ..Support::default()
        };
        let equation = solid::equation("vibration", elements, options.material, 0.0, support)?;
        let one = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let levels = Multigrid::elastic(&equation.matrix, mesh.points(), dimension);
        let mut mass = elements.cells().mass(|_| one.map(|row| row.map(|x| x * options.density)));
        mass.hold(&equation.held, &mut vec![[0.0; 3]; equation.held.len()]);
        let scaled = |a: u32, b: u32, block: &[[f64; 3]; 3]| {
            let [a, b] = [a, b].map(|v| &levels.scales[v as usize]);
            // The same whichever of the two is named first.
            let term = |i: usize, j: usize, k: usize| block[k][k] * (a[k][i] * b[k][j]);
            std::array::from_fn(|i| std::array::from_fn(|j| term(i, j, 0) + term(i, j, 1) + term(i, j, 2)))
        };
        mass.pairs.iter().zip(&mut mass.blocks).for_each(|([a, b], block)| *block = scaled(*a, *b, block));
        mass.diagonal.iter_mut().zip(0..).for_each(|(block, v)| *block = scaled(v, v, block));
        let extent = (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max);
        let seeds = mesh.points().iter().zip(&equation.held).zip(&levels.scales).map(|((place, held), scale)| {
            let seed = seed(std::array::from_fn(|k| (place[k] - low[k]) / extent));
            let free: [f64; 3] = std::array::from_fn(|k| if held[k].is_some() { 0.0 } else { seed[k] });
            std::array::from_fn(|i| (0..3).map(|k| scale[k][i] * free[k]).sum())
        });
        Ok(Vibration {
            seeds: Arc::new(seeds.collect()),
            levels: Arc::new(levels),
            mass: Arc::new(mass),
            extent,
            options: options.clone(),
        })
    }

    /// What stiffness and mass make of the way on, without the modes that are known, and the best that can be had of it.
    fn turn(&self, stages: &mut Stages<Self>) {
        stages.on(0, |stages| stages.sweep(Weigh, 1));
        stages.scalar(First);
        stages.until(Parted, MOST, |stages| {
            stages.reduce(Overlap, |g| &mut g.overlap);
            stages.on(0, |stages| stages.map(Part));
            stages.scalar(Next);
        });
        stages.reduce(StiffXW, |g| &mut g.stiff[0]);
        stages.reduce(StiffXP, |g| &mut g.stiff[1]);
        stages.reduce(StiffWW, |g| &mut g.stiff[2]);
        stages.reduce(StiffWP, |g| &mut g.stiff[3]);
        stages.reduce(StiffPP, |g| &mut g.stiff[4]);
        stages.reduce(HeavyXW, |g| &mut g.heavy[0]);
        stages.reduce(HeavyXP, |g| &mut g.heavy[1]);
        stages.reduce(HeavyWW, |g| &mut g.heavy[2]);
        stages.reduce(HeavyWP, |g| &mut g.heavy[3]);
        stages.reduce(HeavyPP, |g| &mut g.heavy[4]);
        stages.scalar(Ritz);
    }
}

/// A force on a body in a box of size 1, in which there is something of every mode.
fn seed([x, y, z]: [f64; 3]) -> [f64; 3] {
    [
        0.31 + 0.73 * x - 1.17 * y + 0.59 * z + 0.83 * x * y - 0.47 * y * z + 1.31 * x * x - 0.91 * x * x * y,
        -0.43 + 1.09 * x + 0.67 * y - 1.37 * z + 0.53 * x * z + 1.21 * y * y - 0.79 * x * x * x + 0.37 * y * z,
        0.61 - 0.89 * x + 1.43 * y + 0.29 * z - 1.03 * x * y + 0.71 * z * z + 0.97 * x * x * z - 0.41 * x * y * z,
    ]
}

impl Program for Vibration {
    fn parameters(&self, _time: f64) -> Parameters<f64> {
        Parameters { drawn: DRAWN * self.extent }
    }

    fn globals(&self) -> Search<f64> {
        Search {
            values: [0.0; MOST],
            count: 0.0,
            value: 0.0,
            product: 0.0,
            next: 0.0,
            overlap: 0.0,
            stiff: [0.0; 5],
            heavy: [0.0; 5],
            take: [0.0; 3],
            frequency: 0.0,
            largest: 0.0,
        }
    }

    fn parts(&self, _mesh: &Mesh) -> Vec<Vec<[f64; 3]>> {
        self.levels.points.clone()
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        add_levels(&self.levels, stars);
        let mass = self.mass.clone();
        stars.add(Mass, self.mass.pairs.clone(), move |i: meshweft::Incidence<2>| {
            let block = &mass.blocks[i.element];
            Rows::of(if i.corner == 0 { *block } else { transposed(block) })
        });
        Ok(())
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> Node<f64> {
        let v = v as usize;
        let (zero, none) = (Vector3::zeros(), [Vector3::zeros(); 3]);
        let rows = Rows { x: zero, y: zero, z: zero };
        let mut node = Node {
            displacement: zero,
            drawn: zero,
            rest: zero,
            seed: zero,
            inertia: rows,
            found: none,
            way: none,
            before: none,
            modes: [zero; MOST],
            weighed: [zero; MOST],
            scale: rows,
            missing: zero,
            kept: zero,
        };
        if let Some(&place) = mesh.points().get(v) {
            (node.rest, node.drawn) = (Vector3::from(place), Vector3::from(place));
            node.seed = Vector3::from(self.seeds[v]);
            node.inertia = Rows::of(self.mass.diagonal[v]);
            node.scale = Rows::of(self.levels.scales[v]);
        }
        node
    }

    fn step(&self, stages: &mut Stages<Self>) {
        stages.scalar(Start);
        stages.on(0, |stages| stages.map(Begin));
        self.turn(stages);
        stages.scalar(Doubt);
        stages.until(Settled { square: self.options.tolerance.powi(2) }, self.options.rounds, |stages| {
            stages.on(0, |stages| stages.sweep(Advance, 1));
            cycle(&self.levels, stages);
            stages.reduce(Product, |g| &mut g.product);
            self.turn(stages);
        });
        stages.on(0, |stages| stages.map(Keep));
        stages.scalar(Known);
        stages.reduce(Largest, |g| &mut g.largest);
        stages.on(0, |stages| stages.map(Draw));
    }
}

impl Example for Vibration {
    const INFO: Info = Info {
        name: "vibration",
        about: "at which frequencies a part vibrates, and how: a step finds a mode (linear finite elements, LOBPCG)",
        mesh: "bar:33x5x3",
        steps: 6,
        settings: &[
            Setting { name: "degree", about: "degree of the elements", kind: Kind::Choice(&["2", "1"]) },
            solid::YOUNG,
            solid::POISSON,
            solid::PLANE,
            solid::FIXED,
            Setting::number("density", "7850 is steel", 7850.0, "kg/m³", [1e-9, 1e9]),
            Setting::number("tolerance", "residual at which a mode is found, over its energy", 1e-5, "", [0.0, 0.1]),
            Setting::number("rounds", "the most iterations of a step", 1e3, "", [1.0, 1e9]),
        ],
        precision: Precision::F64,
        ..Info::DEFAULT
    };

    fn new(mesh: &mut Mesh, settings: &Settings, order: Order) -> Result<Vibration> {
        if order.key == Key::Jacobi {
            bail!("vibration solves by sweeps in place, which order jacobi has not: take another order");
        }
        let options = VibrationOptions::from(settings);
        let elements = mesh.elements(options.degree)?;
        let all: Vec<Said> = said("fixed", settings.text("fixed")).collect();
        let axes: Vec<[bool; 3]> = all.iter().map(Said::axes).collect::<Result<_>>()?;
        let faces = faces(&elements, &all)?;
        let held = |at: &At| [0, 1, 2].map(|axis| faces[at.element].iter().any(|&k| axes[k][axis]));
        let made = Vibration::of(&elements, &options, |_, at| held(at))?;
        *mesh = elements.into_mesh();
        Ok(made)
    }

    fn look(&self) -> Look {
        Look {
            positions: Some("drawn"),
            is_exaggerated: true,
            states: Some(&["displacement"]),
            color: Some("displacement"),
            label: "amplitude",
            map: ColorMap::Plasma,
            is_steady: true,
            ..Look::default()
        }
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}
