//! How hosts would share the mesh of a simulation.

use super::Simulation;
use crate::cluster::{Sharing, even, sharing};
use crate::error::Result;
use crate::number::Number;
use crate::program::Program;
use meshweft_mesh::Cut;

impl<P: Program, T: Number> Simulation<P, T> {
    /// How `hosts` hosts would share the mesh: what a [`Cluster`](crate::Cluster) of as many workers does with it, found without one.
    ///
    /// It depends on mesh, program, order and precision, and on how many vertices a core updates side by side: hosts update as
    /// [`Backend::Cpu`](crate::Backend::Cpu) does, so build the simulation for that. Cost O(vertices + edges), and the memory of
    /// one share.
    ///
    /// # Errors
    /// No hosts, or more than 1024; points that are not finite.
    ///
    /// ```
    /// # use meshweft::{Mesh, Program, Result, Simulation, Stages, Stars, kernels, stars, vertex};
    /// # use meshweft::mesh::{Cut, generate::generate};
    /// # vertex! { struct Seen<R> { shared count: R } }
    /// # stars! { Edges[1]; }
    /// # struct Count;
    /// # kernels! {
    /// #     for Count: Seen;
    /// #     update Next |_, _, around| Seen {
    /// #         count: around.fold(Edges, R::lit(0.0), |most, [other], ()| most.max(other.count)) + R::lit(1.0),
    /// #     };
    /// # }
    /// # impl Program for Count {
    /// #     fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> { stars.add(Edges, mesh.edges(), |_| ()); Ok(()) }
    /// #     fn initial(&self, _: &Mesh, _: u32) -> Seen<f64> { Seen { count: 0.0 } }
    /// #     fn step(&self, stages: &mut Stages<Self>) { stages.sweep(Next, 1) }
    /// # }
    /// let simulation = Simulation::builder(generate("chain:1024", 1)?, Count).build()?;
    /// let sharing = simulation.shares(2, Cut::Curve)?;
    /// // A chain is cut at one place: either host reads one vertex of the other.
    /// assert!(sharing.hosts.iter().all(|host| (host.vertices, host.ghosts, host.round_bytes) == (512, 1, 4)));
    /// assert_eq!((sharing.owners[0], sharing.owners[1023], &sharing.hosts[0].neighbors[..]), (1, 2, &[2][..]));
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    pub fn shares(&self, hosts: u32, cut: Cut) -> Result<Sharing> {
        sharing(&self.layout, self.mesh.points(), &even(hosts)?, cut)
    }
}
