//! What is known of a GPU.

/// What an adapter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdapterKind {
    /// A card with memory of its own.
    Discrete,
    /// Part of the processor.
    Integrated,
    /// Behind a hypervisor, or unknown.
    Virtual,
    /// A program on the CPU that behaves like a GPU: for tests.
    Software,
}

impl AdapterKind {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            AdapterKind::Discrete => "discrete",
            AdapterKind::Integrated => "integrated",
            AdapterKind::Virtual => "virtual",
            AdapterKind::Software => "software",
        }
    }
}

/// A GPU of this machine, as its driver describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: AdapterKind,
    /// By which interface it is reached: Vulkan, Metal, Dx12.
    pub api: String,
    /// Name and version of the driver.
    pub driver: String,
    /// Bytes that one kernel can see of one array.
    pub binding_bytes: u64,
    /// Bytes of the largest array.
    pub buffer_bytes: u64,
    /// Bytes of memory that a workgroup shares.
    pub workgroup_bytes: u32,
    /// The most invocations of a workgroup.
    pub invocations: u32,
    /// The most workgroups of a dispatch in one dimension.
    pub workgroups: u32,
    /// Invocations that run in lockstep, at least and at most.
    pub subgroup: [u32; 2],
    /// Arrays that one kernel can see.
    pub bindings: u32,
    /// Whether it can tell the time.
    pub timestamps: bool,
}

/// What has been asked of a GPU since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Kernels that were launched.
    pub dispatches: u64,
    /// How often work was handed over.
    pub submissions: u64,
    /// Seconds in which the device was at work on what is known to be done; 0 if it cannot tell the time.
    pub busy_s: f64,
}
