//! What simulations have in common that are built one beside the other.

use crate::engine::Table;
use crate::error::Result;
use crate::layout::Layout;
use crate::number::Number;
use crate::program::{StarPlan, StarShape};
use crate::trace::Traced;
use meshweft_mesh::{Mesh, Permutation};
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Layouts that are kept: the first so many that differ. What comes after them is planned for itself, so copies that all differ cost
/// no more memory than they would alone.
const MOST: usize = 64;
/// Incidences whose data are hashed together: a few hundred kilobytes.
const PIECE: usize = 1 << 12;

/// What copies of an ensemble share: what is known of their kernels, and the schedules, stars and meshes of those whose
/// elements, data and fixed vertices are the same bit for bit. See [`Builder::one_of`](crate::Builder::one_of).
///
/// No result depends on it: copies with other data have a plan of their own.
#[derive(Clone, Default)]
pub struct Plans(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    kernels: Vec<(Traces, Arc<dyn Any + Send + Sync>)>,
    layouts: BTreeMap<Key, Laid>,
}

/// What kernels are run on symbols for: the program with its number type, stars, and whether they are to be interpreted.
#[derive(Clone, PartialEq)]
pub(super) struct Traces {
    pub(super) program: TypeId,
    pub(super) stars: Vec<StarShape>,
    pub(super) tapes: bool,
}

/// BLAKE3 of all that a layout is made of.
pub(super) type Key = [u8; 32];

/// A mesh with its program's stars, laid out.
#[derive(Clone)]
pub(super) struct Laid {
    pub(super) mesh: Arc<Mesh>,
    pub(super) layout: Arc<Layout>,
    /// Directed edges of the data graph.
    pub(super) edges: usize,
}

impl Plans {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of some kernels, `trace` finds if it is not: `table` is then that of a copy before.
    ///
    /// # Errors
    /// Those of `trace`.
    pub(super) fn traced<T: Number>(
        &self,
        what: Traces,
        table: &mut Arc<Table<T>>,
        trace: impl FnOnce(&mut Arc<Table<T>>) -> Result<Vec<Traced>>,
    ) -> Result<Vec<Traced>> {
        let known = self.known().kernels.iter().find(|known| known.0 == what).map(|known| known.1.clone());
        if let Some(known) = known.and_then(|known| known.downcast::<(Arc<Table<T>>, Vec<Traced>)>().ok()) {
            *table = known.0.clone();
            return Ok(known.1.clone());
        }
        // Nothing is locked meanwhile: two copies may find the same, once.
        let traced = trace(table)?;
        let mut known = self.known();
        if known.kernels.len() < MOST {
            known.kernels.push((what, Arc::new((table.clone(), traced.clone()))));
        }
        Ok(traced)
    }

    /// The layout of that key, if one is there, with its mesh where that is the same.
    pub(super) fn laid(&self, key: &Key, mesh: &Arc<Mesh>) -> Option<Laid> {
        let known = self.known().layouts.get(key).cloned()?;
        Some(Laid { mesh: if known.mesh == *mesh { known.mesh } else { mesh.clone() }, ..known })
    }

    /// Keeps a layout, unless another copy has kept the same meanwhile: that one is the one to use.
    pub(super) fn keep(&self, key: &Key, laid: Laid) -> Laid {
        let mut known = self.known();
        let is_full = known.layouts.len() >= MOST;
        if !is_full && !known.layouts.contains_key(key) {
            known.layouts.insert(*key, laid.clone());
        }
        drop(known);
        self.laid(key, &laid.mesh).unwrap_or(laid)
    }
}

impl fmt::Debug for Plans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known();
        let (kernels, layouts) = (known.kernels.len(), known.layouts.len());
        f.debug_struct("Plans").field("programs", &kernels).field("layouts", &layouts).finish()
    }
}

/// What tells a layout from others: how it is made, how the vertices are numbered, the stars with their data, and who is fixed.
pub(super) fn key(how: &str, numbers: &Permutation, stars: &[StarPlan], is_fixed: impl Fn(u32) -> bool) -> Key {
    let mut hasher = blake3::Hasher::new();
    hasher.update(how.as_bytes());
    hasher.update(bytemuck::cast_slice(numbers.order()));
    let fixed: Vec<u8> = (0..numbers.len() as u32).map(|v| is_fixed(v).into()).collect();
    hasher.update(&fixed);
    for plan in stars {
        let StarPlan { index, corners, shape, around, is_searched, kinds, .. } = plan;
        let elements = plan.elements();
        let what = format!(
            "{index} {corners} {shape:?} {around:?} {is_searched} {kinds:?} {:?} {}",
            plan.common(),
            elements.len()
        );
        hasher.update(what.as_bytes());
        hasher.update(bytemuck::cast_slice(elements));
        hasher.update(&plan.near.len().to_le_bytes());
        hasher.update(bytemuck::cast_slice(&plan.near));
        let incidences: Vec<u32> =
            (0..elements.len()).filter(|i| plan.may_be_around(i % corners)).map(|i| i as u32).collect();
        let mut reals = Vec::new();
        for piece in incidences.chunks(PIECE) {
            reals.clear();
            (plan.data)(elements, piece, &mut reals);
            hasher.update(bytemuck::cast_slice(&reals));
        }
    }
    *hasher.finalize().as_bytes()
}
