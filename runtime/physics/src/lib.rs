//! Building blocks of programs that minimize an energy vertex by vertex, or satisfy constraints element by element: materials, obstacles, contact
//! and air.
//!
//! All is generic over [`Real`](meshweft::Real), so it runs in kernels on every engine, with the same bits. A kernel starts a [`System`]
//! with the vertex's inertia, adds what materials and contact pull with, and takes the step that it [solves](System::solve) for:
//!
//! ```
//! use meshweft::nalgebra::Vector3;
//! use meshweft_physics::{Contact, Plane, System};
//! // A vertex of 2 kg a millimeter inside the ground, held by nothing else.
//! let (at, inertia) = (Vector3::new(0.3, 0.1, -1e-3), 2.0_f64);
//! let ground = Plane { normal: Vector3::z(), offset: 0.0 };
//! let contact = Contact { stiffness: 100.0 * inertia, friction: 0.4, slip: 1e-6 };
//! let step = contact.add(System::at_rest(inertia), ground.touch(at), Vector3::zeros()).solve();
//! // It goes nearly all of the way out.
//! assert!((step.z / 1e-3 - 100.0 / 101.0).abs() < 1e-12 && step.x == 0.0);
//! ```
//!
//! Materials: [`Membrane`] (St. Venant–Kirchhoff), [`NeoHookean`] (stable, for tets), [`bending`]. Obstacles: [`Plane`], [`Sphere`],
//! [`Cuboid`], [`Capsule`]. Shapes at rest are plain functions of points, in 64 bits. Elements that move their corners: [`projection`], with
//! [`Constraint`]s of length, [`Tet`]s of the same solid, hinges and contact. Finite volumes: what holds at a boundary, by [`walls`];
//! [`Face`]s of a mesh in the plane, with gradients that are limited ([`Trend`]); [`Water`] that is shallow, and [`Gas`]. Finite elements: [`diffusion`] and [`elasticity`].

#![forbid(unsafe_code)]

mod air;
pub mod bending;
mod boundary;
mod contact;
mod equation;
mod face;
mod facing;
mod gap;
mod gas;
mod membrane;
mod neo_hookean;
mod obstacle;
pub mod projection;
mod symmetric;
mod system;
mod tearing;
mod touching;
mod water;

pub use air::Air;
pub use boundary::{Condition, Wall, walls};
pub use contact::Contact;
pub use equation::{Elastic, Equation, Support, diffusion, elasticity};
pub use face::{Face, Rim, Trend, faces, rim};
pub use gap::Gap;
pub use gas::{AIR, Content, Gas};
pub use membrane::{Membrane, Panel};
pub use neo_hookean::{NeoHookean, determinant};
pub use obstacle::{Capsule, Cuboid, Plane, Sphere, Touch};
pub use projection::{Constraint, Pushed, Tet};
pub use symmetric::Symmetric;
pub use system::System;
pub use tearing::{Tearing, Torn};
pub use touching::{Apart, Corridor, Moving, Touching};
pub use water::Water;
