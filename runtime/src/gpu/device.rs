//! Adapters of this machine, and the one that is in use.
//!
//! wgpu 30 swallows errors of a lost device and panics at others by default. Here both are caught where the device is made,
//! and every call that may meet them ends in [`Device::check`]: what comes back is a result or an error, never stale.

use crate::adapter::{Adapter, AdapterKind};
use crate::error::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use wgpu::BufferUsages as Usage;

/// What takes the time between two points of what is recorded.
const CLOCK: wgpu::Features = wgpu::Features::TIMESTAMP_QUERY.union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);
/// How long to wait for work that was submitted before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// The adapters of this machine, the best first: discrete, integrated, virtual, software; by name among equals.
///
/// [`Backend::Gpu`](crate::Backend::Gpu) takes one by its place in this list. Cost: asks the drivers, some 10 ms.
///
/// ```
/// for (number, adapter) in meshweft::adapters().iter().enumerate() {
///     println!("{number}: {} ({}, {})", adapter.name, adapter.kind.name(), adapter.api);
/// }
/// ```
pub fn adapters() -> Vec<Adapter> {
    enumerate().iter().map(describe).collect()
}

/// What the drivers are reached by, once in a process: a loader unloads the drivers with its last instance, and some can be
/// loaded some twenty times only (NVIDIA's 580, by what each leaves of memory of threads). Nothing, if a driver failed to load.
static INSTANCE: LazyLock<Option<wgpu::Instance>> = LazyLock::new(|| {
    // A driver that fails to load must not take the program with it.
    let made = catch_unwind(|| {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
        // No layer in debug builds: one that
        // crashes when two devices work at once (1.3.239 does) takes the program with it. `.ci/run` loads it, a process a device.
        descriptor.flags = wgpu::InstanceFlags::empty();
        wgpu::Instance::new(descriptor)
    });
    made.ok()
});

fn enumerate() -> Vec<wgpu::Adapter> {
    let found = INSTANCE.as_ref().and_then(|instance| {
        let all = AssertUnwindSafe(|| pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all())));
        catch_unwind(all).ok()
    });
    let mut adapters = found.unwrap_or_default();
    adapters.retain(|adapter| {
        let downlevel = adapter.get_downlevel_capabilities();
        downlevel.flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS)
    });
    adapters.sort_by_key(|adapter| {
        let about = describe(adapter);
        (about.kind, about.name, about.api)
    });
    adapters
}

fn describe(adapter: &wgpu::Adapter) -> Adapter {
    let (info, limits) = (adapter.get_info(), adapter.limits());
    #[cfg(test)]
    let limits = {
        let bytes = MEMORY.get().map_or(u64::MAX, |memory| memory.array_bytes);
        let max_storage_buffer_binding_size = limits.max_storage_buffer_binding_size.min(bytes);
        wgpu::Limits { max_storage_buffer_binding_size, ..limits }
    };
    Adapter {
        name: info.name,
        kind: match info.device_type {
            wgpu::DeviceType::DiscreteGpu => AdapterKind::Discrete,
            wgpu::DeviceType::IntegratedGpu => AdapterKind::Integrated,
            wgpu::DeviceType::Cpu => AdapterKind::Software,
            wgpu::DeviceType::VirtualGpu | wgpu::DeviceType::Other => AdapterKind::Virtual,
        },
        api: format!("{:?}", info.backend),
        driver: format!("{} {}", info.driver, info.driver_info).trim().into(),
        binding_bytes: limits.max_storage_buffer_binding_size,
        buffer_bytes: limits.max_buffer_size,
        workgroup_bytes: limits.max_compute_workgroup_storage_size,
        invocations: limits.max_compute_invocations_per_workgroup,
        workgroups: limits.max_compute_workgroups_per_dimension,
        subgroup: [info.subgroup_min_size, info.subgroup_max_size],
        bindings: limits.max_storage_buffers_per_shader_stage,
        timestamps: adapter.features().contains(CLOCK),
    }
}

/// A device in use, and what went wrong with it.
pub(crate) struct Device {
    pub(super) about: Adapter,
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    fault: Arc<Mutex<Option<Fault>>>,
    /// Bytes that are left of what a test lets it have.
    #[cfg(test)]
    left: Mutex<u64>,
}

/// What went wrong with a device.
#[derive(Clone)]
enum Fault {
    /// It has no memory for something.
    Memory,
    /// Anything else.
    Other(String),
}

/// What devices of a thread hold, for tests of what happens when that is little.
#[cfg(test)]
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// Of one array, which a device tells beforehand.
    pub(crate) array_bytes: u64,
    /// Of all, which it does not.
    pub(crate) bytes: u64,
}

#[cfg(test)]
thread_local! {
    /// Of this thread and of workers that it starts.
    pub(crate) static MEMORY: std::cell::Cell<Option<Memory>> = const { std::cell::Cell::new(None) };
}

impl Device {
    /// Opens adapter `number` of [`adapters`].
    pub(crate) fn open(number: usize) -> Result<Device> {
        let adapters = enumerate();
        let Some(adapter) = adapters.get(number) else {
            return Err(Error::Gpu(match adapters.len() {
                0 => "this machine has no GPU, and no driver of a software one; `--backend cpu` runs everywhere".into(),
                n => format!("there is no adapter {number}: `meshweft doctor` lists the {n} of this machine, from 0"),
            }));
        };
        let about = describe(adapter);
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("meshweft"),
            required_features: if about.timestamps { CLOCK } else { wgpu::Features::empty() },
            required_limits: adapter.limits(),
            ..Default::default()
        };
        let opened = catch_unwind(AssertUnwindSafe(|| pollster::block_on(adapter.request_device(&descriptor))));
        let (device, queue) = opened
            .map_err(|_| Error::Gpu(format!("the driver of {} failed", about.name)))?
            .map_err(|e| Error::Gpu(format!("cannot open {}: {e}", about.name)))?;
        let fault: Arc<Mutex<Option<Fault>>> = Arc::default();
        let note = |fault: &Arc<Mutex<Option<Fault>>>| {
            let fault = Arc::clone(fault);
            move |new: Fault| {
                fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(new);
            }
        };
        let lost = note(&fault);
        device.set_device_lost_callback(move |reason, text| {
            lost(Fault::Other(format!("the device was lost ({reason:?}) {text}")));
        });
        let failed = note(&fault);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            failed(match error {
                wgpu::Error::OutOfMemory { .. } => Fault::Memory,
                other => Fault::Other(other.to_string()),
            });
        }));
        Ok(Device {
            about,
            device,
            queue,
            fault,
            #[cfg(test)]
            left: Mutex::new(MEMORY.get().map_or(u64::MAX, |memory| memory.bytes)),
        })
    }

    /// How many vertices it updates in lockstep, at least: the width of groups.
    pub(crate) fn width(&self) -> usize {
        self.about.subgroup[0].clamp(8, 64).next_power_of_two() as usize
    }

    /// What went wrong so far, if anything did.
    pub(super) fn check(&self) -> Result<()> {
        match &*self.fault.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some(fault) => Err(self.error(fault)),
        }
    }

    /// Records a fault: nothing runs on this device any more.
    pub(super) fn fail(&self, fault: &str) -> Error {
        let mut known = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        self.error(known.get_or_insert_with(|| Fault::Other(fault.into())))
    }

    fn error(&self, fault: &Fault) -> Error {
        match fault {
            Fault::Memory => Error::TooLarge(format!("{} is out of memory", self.about.name)),
            Fault::Other(text) => Error::Gpu(format!("{}: {text}", self.about.name)),
        }
    }

    /// Calls the driver; a panic in there is a fault of the device.
    pub(super) fn guard<A>(&self, call: impl FnOnce() -> A) -> Result<A> {
        self.check()?;
        let result = catch_unwind(AssertUnwindSafe(call)).map_err(|_| self.fail("the driver failed"))?;
        self.check()?;
        Ok(result)
    }

    /// Waits until what was submitted is done.
    pub(super) fn wait(&self, submission: Option<wgpu::SubmissionIndex>) -> Result<()> {
        let wait = wgpu::PollType::Wait { submission_index: submission, timeout: Some(PATIENCE) };
        match self.guard(|| self.device.poll(wait))? {
            Ok(_) => Ok(()),
            Err(e) => Err(self.fail(&format!("no answer within {} s ({e})", PATIENCE.as_secs()))),
        }
    }

    /// An array on the device.
    ///
    /// # Errors
    /// One that is larger than the device can hold, or than a kernel can see of one.
    pub(super) fn buffer(&self, what: &str, bytes: u64, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer> {
        // Empty arrays cannot be bound; sizes are whole words, and whole quads for arrays of them.
        let size = bytes.next_multiple_of(16).max(16);
        let most = match usage.contains(wgpu::BufferUsages::STORAGE) {
            true => self.about.binding_bytes.min(self.about.buffer_bytes),
            false => self.about.buffer_bytes,
        };
        if size > most {
            return Err(Error::TooLarge(format!(
                "{what} takes {size} bytes, and {} holds {most} in one array; cut the mesh, or use the CPU",
                self.about.name
            )));
        }
        #[cfg(test)]
        {
            let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            *left = left.checked_sub(size).ok_or_else(|| self.error(&Fault::Memory))?;
        }
        self.guard(|| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(what),
                size,
                usage,
                mapped_at_creation: false,
            })
        })
    }
}

/// Bytes that are sent or read back at once.
pub(super) const STAGING: u64 = 64 << 20;

impl Device {
    /// An array with a content that does not change.
    pub(super) fn array(&self, what: &str, bytes: &[u8]) -> Result<wgpu::Buffer> {
        let usage = Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC;
        let buffer = self.buffer(what, bytes.len() as u64, usage)?;
        self.write(&buffer, bytes)?;
        Ok(buffer)
    }

    /// Sends an array, piece by piece: what is written waits in memory of the same size until it is submitted.
    pub(super) fn write(&self, buffer: &wgpu::Buffer, bytes: &[u8]) -> Result<()> {
        self.guard(|| {
            for (i, piece) in bytes.chunks(STAGING as usize).enumerate() {
                self.queue.write_buffer(buffer, i as u64 * STAGING, piece);
                self.queue.submit([]);
            }
        })
    }

    /// Compiles an entry point.
    pub(super) fn compile(
        &self,
        name: &str,
        text: &str,
        entry: &str,
        layout: Option<&wgpu::PipelineLayout>,
    ) -> Result<wgpu::ComputePipeline> {
        let compiled = self.guard(|| {
            let source = wgpu::ShaderSource::Wgsl(text.into());
            let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some(name), source });
            self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(name),
                layout,
                module: &module,
                entry_point: Some(entry),
                compilation_options: wgpu::PipelineCompilationOptions {
                    // Every kernel writes its workgroup memory before it reads it.
                    zero_initialize_workgroup_memory: false,
                    ..Default::default()
                },
                cache: None,
            })
        });
        compiled.map_err(|e| Error::Gpu(format!("kernel {name}: {e}")))
    }

    /// A kernel that needs no program, with its arrays.
    pub(super) fn kernel(
        &self,
        kernel: meshweft_shaders::Kernel,
        arrays: &[&wgpu::Buffer],
    ) -> Result<(wgpu::ComputePipeline, wgpu::BindGroup)> {
        let pipeline = self.compile(kernel.name, kernel.source, kernel.name, None)?;
        let group = self.bind(&pipeline, arrays)?;
        Ok((pipeline, group))
    }

    /// Binds the whole of some arrays, in order, for a pipeline of our own.
    pub(super) fn bind(&self, pipeline: &wgpu::ComputePipeline, arrays: &[&wgpu::Buffer]) -> Result<wgpu::BindGroup> {
        self.guard(|| {
            let resources = arrays.iter().map(|array| array.as_entire_binding());
            let entries: Vec<_> =
                (0..).zip(resources).map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource }).collect();
            let layout = &pipeline.get_bind_group_layout(0);
            self.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries })
        })
    }

    /// Reads an array back through a staging buffer, piece by piece.
    pub(super) fn read(&self, staging: &wgpu::Buffer, from: &wgpu::Buffer, to: &mut [u8]) -> Result<()> {
        for (i, piece) in to.chunks_mut(staging.size() as usize).enumerate() {
            let (offset, len) = (i as u64 * staging.size(), piece.len() as u64);
            let (submission, arrived) = self.guard(|| {
                let mut encoder = self.device.create_command_encoder(&Default::default());
                encoder.copy_buffer_to_buffer(from, offset, staging, 0, Some(len));
                let submission = self.queue.submit([encoder.finish()]);
                (submission, map(staging, len))
            })?;
            self.wait(Some(submission))?;
            if mapped(&arrived) != Some(true) {
                return Err(self.fail("an array could not be read back"));
            }
            let copied = self.guard(|| {
                let view = staging.get_mapped_range(..len);
                let copied = view.is_ok();
                if let Ok(view) = view {
                    piece.copy_from_slice(&view);
                }
                staging.unmap();
                copied
            })?;
            if !copied {
                return Err(self.fail("an array could not be seen"));
            }
        }
        Ok(())
    }
}

/// Asks for a buffer to be mapped, and notes when it is.
pub(super) fn map(buffer: &wgpu::Buffer, bytes: u64) -> Arc<AtomicU8> {
    let arrived = Arc::new(AtomicU8::new(0));
    let note = Arc::clone(&arrived);
    buffer.map_async(wgpu::MapMode::Read, ..bytes, move |result| {
        note.store(if result.is_ok() { 1 } else { 2 }, Ordering::Release);
    });
    arrived
}

/// Whether a buffer was mapped; nothing while it is under way.
pub(super) fn mapped(arrived: &AtomicU8) -> Option<bool> {
    match arrived.load(Ordering::Acquire) {
        0 => None,
        state => Some(state == 1),
    }
}
