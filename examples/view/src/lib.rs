//! A live view: a page in the browser that shows a mesh and its fields while a run changes them, or plays a series of states.
//!
//! A [`View`] serves the page from a thread of its own. The run asks it between two steps what its [`Turn`] is: to take the next step,
//! to [describe](View::describe) its mesh, to [show](View::show) its state, to [take over](View::set) a number that the page sets, or to
//! wait, as the page has asked for a pause.
//!
//! ```text
//!   run ──▶ turn() ─┬─ Step       nobody watches, or it is too early for a frame: one atomic load, or one lock
//!                   ├─ Describe   the first page is here: names, and the Shape of the mesh
//!                   ├─ Show       a page has drawn the frame before, and a 30th of a second is over
//!                   ├─ Set        a page sets a number that may be changed between two steps
//!                   └─ Wait       paused, or slower than it could be: look at signals, ask again
//! ```
//!
//! What is promised:
//!
//! - **Nobody watches, nothing is done.** No page, no copy: the mesh is described when the first page comes.
//! - **No page holds a run up.** A page is sent a frame only when it has drawn the one before; there is no queue, only the newest state
//!   when it is ready. Pauses end with the last page, and a page that says nothing for half a minute is gone.
//! - **Watching changes no bit.** A view reads states and delays steps, and hands over numbers that a page sets.
//! - **Only who has the address may look.** It holds 128 random bits, which every request must have, and the view listens to this machine
//!   alone unless told otherwise. Requests that a page of another site makes are refused by their `Host` and `Origin`.
//! - **What comes in is bounded**: connections, pages, bytes of a message, time without a word.
//!
//! Nothing here knows programs: what moves is points, what is drawn are numbers of points.
//!
//! ```
//! use meshweft_view::{Config, Turn, View};
//! let mut view = View::start(&Config::default())?;
//! assert!(view.url().starts_with("http://127.0.0.1:"));
//! assert!(matches!(view.turn(), Turn::Step)); // nobody watches
//! # Ok::<(), meshweft_view::Error>(())
//! ```

#![forbid(unsafe_code)]

mod access;
mod connection;
mod desk;
mod error;
mod history;
mod message;
mod model;
mod series;
mod server;
mod shape;
mod view;

pub use desk::{Turn, Wanted};
pub use error::{Error, Result};
pub use history::History;
pub use message::Frame;
pub use model::{Dial, Metric, Model, Quantity, Span, fields_of};
pub use series::{Series, State};
pub use shape::Shape;
pub use view::{Config, View};
