//! The state by the names of its parts, and by vertex.

use super::{Health, Simulation, real_name};
use crate::error::{Error, Result};
#[cfg(feature = "gpu")]
use crate::gpu::Shared;
#[cfg(feature = "gpu")]
use crate::layout::shared_stride;
use crate::layout::{Layout, View};
use crate::number::Number;
use crate::program::{Kind, Part, PrivateOf, Program, Record, SharedOf, Vertex, VertexOf};
use meshweft_mesh::Field;

/// A shared part of the state where it lies. See [`Simulation::view`].
pub struct FieldView<'a, T> {
    state: View<'a, T>,
    layout: &'a Layout<T>,
    first: usize,
    components: usize,
}

impl<T: Number> FieldView<'_, T> {
    /// The components of vertex `v` of the mesh.
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn vertex(&self, v: u32) -> &[T] {
        let at = self.state.shape.shared_index(self.layout.slot(v), self.first);
        &self.state.shared[at..at + self.components]
    }
}

/// A shared part of the state where it lies on a GPU. See [`Simulation::device_field`].
#[cfg(feature = "gpu")]
#[derive(Clone, Debug)]
pub struct DeviceField {
    /// The device that runs the simulation.
    pub device: wgpu::Device,
    /// Its queue. What is submitted to it sees the state after all steps so far.
    pub queue: wgpu::Queue,
    /// The shared state of all slots, words of 32 bits: a storage buffer that can be copied from.
    pub buffer: wgpu::Buffer,
    /// Where the part begins in the words of a slot.
    pub first: usize,
    /// Number of its words: floats, or the bits of integers.
    pub components: usize,
    /// Words from one slot to the next.
    pub stride: usize,
    /// The slot of each vertex of the mesh, shape `[vertices]`. It never changes.
    pub slots: Vec<u32>,
}

/// Reads one part of a state, in the order of the mesh's vertices.
pub(super) fn read_part<T: Number>(state: View<'_, T>, layout: &Layout<T>, parts: &[Part], i: usize) -> Field {
    let first: usize = parts[..i].iter().map(|part| part.components).sum();
    let Part { name, components, kind } = &parts[i];
    let slots = (0..layout.places.len()).map(|v| layout.slot(v as u32));
    let reals = slots.flat_map(|slot| (first..first + components).map(move |k| state.real(slot, k)));
    Field { name: name.clone(), components: *components, values: reals.map(|x| kind.decode(x)).collect() }
}

impl<P: Program, T: Number> Simulation<P, T> {
    /// Finds one shared part of the state on the GPU that runs it, for a host that draws or computes there itself. It may read
    /// until the next step; steps that are double-buffered may leave the state in another buffer, so ask again after each.
    ///
    /// ```
    /// # use meshweft::{Backend, Mesh, Program, Real, Simulation, Stages, kernels, vertex};
    /// # use meshweft::mesh::generate::generate;
    /// # vertex! { pub struct Height<R> { shared height: R } }
    /// # struct Flat;
    /// # kernels! { for Flat: Height; }
    /// # impl Program for Flat {
    /// #     fn initial(&self, _: &Mesh, v: u32) -> Height<f64> { Height { height: f64::from(v) } }
    /// #     fn step(&self, _: &mut Stages<Self>) {}
    /// # }
    /// let build = |backend| Simulation::builder(generate("chain:3", 1)?, Flat).backend(backend).build();
    /// if !meshweft::adapters().is_empty() {
    ///     let field = build(Backend::Gpu { adapter: 0 })?.device_field("height")?;
    ///     assert_eq!((field.slots.len(), field.components), (3, 1));
    ///     assert!(field.buffer.size() >= 3 * 4);
    /// }
    /// assert!(build(Backend::Serial)?.device_field("height").is_err());
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    ///
    /// # Errors
    /// A simulation that runs on no GPU; an unknown name, or that of a private part; otherwise as [`Simulation::wait`].
    #[cfg(feature = "gpu")]
    pub fn device_field(&mut self, name: &str) -> Result<DeviceField> {
        self.wait()?;
        let (first, part) = self.locate(name)?;
        let components = part.components;
        if first >= self.layout.shape.shared {
            return Err(Error::Invalid(format!(
                "{name} is private: neighbors cannot see it, nor can the host on the device"
            )));
        }
        let Some(Shared { device, queue, buffer }) = self.engine.shared()? else {
            return Err(Error::Invalid("this simulation runs on no GPU: give it `Backend::Gpu`".into()));
        };
        let stride = shared_stride(self.layout.shape.shared);
        let slots = (0..self.vertices()).map(|v| self.layout.slot(v) as u32).collect();
        Ok(DeviceField { device, queue, buffer, first, components, stride, slots })
    }

    /// Names the parts of the state that can be read and written: shared ones first, then private ones.
    pub fn fields(&self) -> Vec<Part> {
        self.parts.clone()
    }

    /// Reads one part of the state, in the order of the mesh's vertices: shape [vertices × components].
    ///
    /// # Errors
    /// An unknown name; the message lists those there are.
    pub fn field(&self, name: &str) -> Result<Field> {
        let (_, part) = self.locate(name)?;
        let mut values = vec![0.0; self.vertices() as usize * part.components];
        let components = part.components;
        self.read_into(name, &mut values)?;
        Ok(Field { name: name.into(), components, values })
    }

    /// Reads one part of the state into numbers of the host, in the order of the mesh's vertices, without allocating: shape
    /// [vertices × components]. Values are rounded to `U`, which may be the precision of the simulation or another.
    ///
    /// ```
    /// # use meshweft::{Mesh, Program, Real, Simulation, Stages, kernels, vertex};
    /// # use meshweft::mesh::generate::generate;
    /// # vertex! { pub struct Height<R> { shared height: R } }
    /// # struct Flat;
    /// # kernels! { for Flat: Height; }
    /// # impl Program for Flat {
    /// #     fn initial(&self, _: &Mesh, v: u32) -> Height<f64> { Height { height: f64::from(v) } }
    /// #     fn step(&self, _: &mut Stages<Self>) {}
    /// # }
    /// let flat = Simulation::builder(generate("chain:3", 1)?, Flat).build()?;
    /// let mut heights = [0.0_f32; 3];
    /// flat.read_into("height", &mut heights)?;
    /// assert_eq!(heights, [0.0, 1.0, 2.0]);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    ///
    /// # Errors
    /// An unknown name, or a slice of another length.
    pub fn read_into<U: Number>(&self, name: &str, values: &mut [U]) -> Result<()> {
        let (first, part) = self.locate(name)?;
        self.check_len(name, part, values.len())?;
        let state = self.state()?;
        for (v, value) in values.chunks_exact_mut(part.components).enumerate() {
            let slot = self.layout.slot(v as u32);
            for (k, x) in value.iter_mut().enumerate() {
                *x = U::from_f64(part.kind.decode(state.real(slot, first + k)));
            }
        }
        Ok(())
    }

    /// Looks at one shared part of the state where it lies, without a copy. On a GPU the state is read back first.
    ///
    /// # Errors
    /// An unknown name; a part that is not shared, or holds integers, whose values do not lie together:
    /// [`Simulation::read_into`] copies them.
    pub fn view(&self, name: &str) -> Result<FieldView<'_, T>> {
        let (first, part) = self.locate(name)?;
        if first >= self.layout.shape.shared || part.kind == Kind::Integer {
            return Err(Error::Invalid(format!(
                "the values of {name} do not lie together: copy them with `read_into`"
            )));
        }
        Ok(FieldView { state: self.state()?, layout: &self.layout, first, components: part.components })
    }

    /// Writes one part of the state, in the order of the mesh's vertices. Values are rounded to the precision.
    ///
    /// # Errors
    /// An unknown name, a wrong number of values, or one that is not finite (names the vertex).
    pub fn set_field<U: Number>(&mut self, name: &str, values: &[U]) -> Result<()> {
        let (first, part) = self.locate(name)?;
        let (components, kind) = (part.components, part.kind);
        self.check_len(name, part, values.len())?;
        if let Some(i) = values.iter().position(|&x| !T::from_f64(x.to_f64()).finite()) {
            return Err(self.refuse::<T>(name, (i / components) as u32, values[i].to_f64()));
        }
        let layout = self.layout.clone();
        self.edit(&mut |state| {
            for (v, value) in values.chunks_exact(components).enumerate() {
                for slot in layout.slots_of(v as u32) {
                    value.iter().enumerate().for_each(|(k, &x)| state.set(slot, first + k, kind.encode(x.to_f64())));
                }
            }
        })
    }

    /// The state of vertex `v` of the mesh.
    ///
    /// # Errors
    /// A GPU that failed, or a kernel that panicked.
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn vertex(&self, v: u32) -> Result<VertexOf<P, T>> {
        let (state, slot) = (self.state()?, self.layout.slot(v));
        Ok(Vertex::join(state.shared::<SharedOf<P, T>>(slot), state.private::<PrivateOf<P, T>>(slot)))
    }

    /// Replaces the state of vertex `v` of the mesh.
    ///
    /// # Errors
    /// A value that is not finite. Otherwise as [`Simulation::vertex`].
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn set_vertex(&mut self, v: u32, vertex: VertexOf<P, T>) -> Result<()> {
        let (shared, private) = vertex.split();
        let mut reals = Vec::new();
        shared.each(|_, x| reals.push(x));
        private.each(|_, x| reals.push(x));
        let kinds = self.kinds();
        if let Some(k) = (0..reals.len()).find(|&k| kinds[k] == Kind::Real && !reals[k].finite()) {
            return Err(self.refuse::<T>(&real_name(&self.parts, k).0, v, reals[k].to_f64()));
        }
        let slots = self.layout.slots_of(v);
        self.edit(&mut |state| {
            for slot in slots.clone() {
                reals.iter().enumerate().for_each(|(k, &x)| state.set(slot, k, x));
            }
        })
    }

    /// Changes the state. A simulation that diverged goes on if that leaves it finite.
    fn edit(&mut self, change: &mut dyn FnMut(&mut crate::layout::ViewMut<'_, T>)) -> Result<()> {
        if let Health::Poisoned(step) = self.health {
            return Err(Error::Poisoned { step });
        }
        let progress = self.engine.settle()?;
        if progress.spoilt && matches!(self.health, Health::Well) {
            self.look()?;
        }
        self.engine.edit(&mut |mut state| change(&mut state))?;
        let progress = self.engine.settle()?;
        self.settled(progress);
        if let Health::Diverged(step) = self.health
            && self.find_fault(step).is_none()
        {
            self.health = Health::Well;
        }
        Ok(())
    }

    fn refuse<U: Number>(&self, name: &str, vertex: u32, value: f64) -> Error {
        Error::Invalid(format!("{name} of vertex {vertex} would be {value:?}, which is not a finite {}", U::NAME))
    }

    fn check_len(&self, name: &str, part: &Part, given: usize) -> Result<()> {
        let (n, components) = (self.vertices() as usize, part.components);
        if given == n * components {
            return Ok(());
        }
        Err(Error::Invalid(format!("{name} takes {n} × {components} values, {given} were given")))
    }

    /// The number of a part's first real, and the part.
    fn locate(&self, name: &str) -> Result<(usize, &Part)> {
        let mut first = 0;
        for part in &self.parts {
            if part.name == name {
                return Ok((first, part));
            }
            first += part.components;
        }
        let names: Vec<_> = self.parts.iter().map(|part| part.name.as_str()).collect();
        Err(Error::Invalid(format!("unknown field {name:?}: one of {}", names.join(", "))))
    }
}
