//! Rounds in waves: each runs the tasks that are ready, and lists those that will be.

use super::{Gpu, Trace};
use crate::error::Result;
use crate::gpu::plan::{ROUNDS, waves};
use meshweft_shaders::Entry;
use std::any::TypeId;

/// The lists of ready tasks, and what hands them from wave to wave.
pub(super) struct Waves {
    pub(super) initial: wgpu::Buffer,
    pub(super) bytes: u64,
    pub(super) indirect: wgpu::Buffer,
    pub(super) publish: (wgpu::ComputePipeline, wgpu::BindGroup),
    /// Rounds for which the records are written, and the waves they take.
    pub(super) rounds: usize,
    pub(super) waves: u32,
    pub(super) tasks: u32,
}

impl Gpu {
    /// Runs rounds in waves of ready tasks.
    pub(super) fn run_waves(
        &mut self,
        kernel: (TypeId, &str),
        graph: &meshweft_mesh::Graph,
        rounds: usize,
        body: Trace,
    ) -> Result<()> {
        let pipeline = self.pipeline(kernel, Entry::Ready, false, body)?;
        if self.frontier.as_ref().is_some_and(|waves| waves.rounds != rounds) {
            // What was recorded before still reads the old number.
            self.queue.submit(&self.device, false)?;
            for offset in self.lists.waves {
                let at = u64::from(offset) + 4 * ROUNDS as u64;
                let bytes = (rounds as u32).to_le_bytes();
                self.device.guard(|| self.device.queue.write_buffer(&self.ranges, at, &bytes))?;
            }
        }
        let Some(frontier) = &mut self.frontier else { return Ok(()) };
        if frontier.rounds != rounds {
            (frontier.rounds, frontier.waves) = (rounds, waves(graph, rounds));
        }
        let (initial, bytes, indirect) = (frontier.initial.clone(), frontier.bytes, frontier.indirect.clone());
        let (publish, publish_group) = frontier.publish.clone();
        let (waves, tasks) = (frontier.waves, frontier.tasks);
        self.queue.expect_tasks(tasks.wrapping_mul(rounds as u32));
        let to = self.frontier_buffer.clone();
        self.queue.copy(&self.device, &initial, &to, bytes)?;
        let group = self.groups[0][self.current].clone();
        for wave in 0..waves {
            self.queue.dispatch(&self.device, |pass| {
                pass.set_pipeline(&publish);
                pass.set_bind_group(0, &publish_group, &[]);
                pass.dispatch_workgroups(1, 1, 1);
            })?;
            let range = self.lists.waves[wave as usize % 2];
            self.queue.dispatch(&self.device, |pass| {
                pass.set_pipeline(&pipeline);
                pass.set_bind_group(0, &group, &[range]);
                pass.dispatch_workgroups_indirect(&indirect, 0);
            })?;
        }
        Ok(())
    }
}
