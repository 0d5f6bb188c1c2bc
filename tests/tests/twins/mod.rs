//! The programs of `runtime/python/tests/programs`, in Rust: compiled kernels give the digests that are on record there, and so must the formulas
//! that Python writes.
//!
//! `runtime/python/tests/digests.json` says on which mesh, and after how many steps. `MESHWEFT_RECORD=1` writes those of this build.

mod adaptive_step;
mod conjugate_gradients;
mod descent_cloth;
mod distance;
mod elastic;
mod elements;
mod explicit_heat;
mod finite_volumes;
mod functions;
mod gray_scott;
mod heat_wave;
mod heated_rod;
mod ising;
mod page_rank;
mod percolation;
mod plate;
mod random_walk;
mod readme_rod;
mod rumor;
mod spring_sheet;
mod wave;

use crate::methods::{Edges, add_edges as edges};
use meshweft::mesh::generate::generate;
use meshweft::nalgebra::{Matrix2, Matrix3, Vector2, Vector3};
use meshweft::{
    AnySimulation, Backend, Incidence, Int, Integer, Length, Mesh, Number, Order, Program, Real, Result, Simulation,
    Stages, Stars, kernels, record, stars, vertex,
};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

fn file() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime/python/tests/digests.json"))
}

/// Tests of other programs read the file and write to it, too.
static FILE: Mutex<()> = Mutex::new(());

fn read(_: &MutexGuard<'_, ()>) -> Map<String, Value> {
    serde_json::from_str(&std::fs::read_to_string(file()).unwrap()).unwrap()
}

/// Compares all digests of a program with those on record. `prepare`: mesh and program, from the mesh on record; `before`: what is done before
/// each step.
fn check_all<P: Program>(
    name: &str,
    prepare: impl Fn(Mesh) -> (Mesh, P),
    before: impl Fn(&mut dyn AnySimulation) -> Result<()>,
) {
    let record = &read(&FILE.lock().unwrap())[name];
    let (spec, steps) = (record["mesh"].as_str().unwrap(), record["steps"].as_u64().unwrap());
    let mut found = Map::new();
    for (case, recorded) in record["digests"].as_object().unwrap() {
        let (order, precision) = case.split_once(' ').unwrap();
        let order: Order = order.parse().unwrap();
        let run = |backend| -> Result<String> {
            let (mesh, program) = prepare(generate(spec, 1)?);
            let builder = Simulation::builder(mesh, program).order(order).backend(backend);
            match precision {
                "f32" => after(steps, builder.build()?, &before),
                _ => after(steps, builder.precision::<f64>().build()?, &before),
            }
        };
        let digest = run(Backend::Serial).unwrap();
        assert_eq!(run(Backend::Cpu { threads: 2 }).unwrap(), digest, "{name}, {case}: two threads");
        if std::env::var_os("MESHWEFT_RECORD").is_none() {
            assert_eq!(recorded, &digest, "{name}, {case}: the digest on record, and that of this build");
        }
        found.insert(case.clone(), digest.into());
    }
    if std::env::var_os("MESHWEFT_RECORD").is_some() {
        let writing = FILE.lock().unwrap();
        let mut all = read(&writing);
        all[name]["digests"] = found.into();
        std::fs::write(file(), serde_json::to_string_pretty(&all).unwrap() + "\n").unwrap();
    }
}

fn after<P: Program, T: Number>(
    steps: u64,
    simulation: Simulation<P, T>,
    before: impl Fn(&mut dyn AnySimulation) -> Result<()>,
) -> Result<String> {
    let mut simulation = simulation.into_any();
    for _ in 0..steps {
        before(&mut *simulation)?;
        simulation.step()?;
    }
    simulation.digest()
}

fn check<P: Program>(name: &str, program: impl Fn() -> P) {
    check_all(name, |mesh| (mesh, program()), |_| Ok(()));
}

fn lengths(mesh: &Mesh, stars: &mut Stars) -> Result<()> {
    let points = mesh.points().to_vec();
    stars.add(Springs, mesh.edges(), move |i| {
        let [p, q] = mesh_edge(&i).map(|v| Vector3::from(points[v]));
        let d = p - q;
        (d.x * d.x + d.y * d.y + d.z * d.z).sqrt()
    });
    Ok(())
}

/// The ends of an edge in the order of the mesh, whichever it is seen from.
fn mesh_edge(i: &Incidence<2>) -> [usize; 2] {
    let [a, b] = i.vertices.map(|v| v as usize);
    if i.corner == 0 { [a, b] } else { [b, a] }
}

stars! { Springs[1]: R; }
