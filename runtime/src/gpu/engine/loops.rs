//! Stages that repeat until a test holds on the device.

use super::{Scene, Work, levels};
use crate::error::{Error, Result};
use crate::layout::State;
use crate::number::Number;
use crate::step::{Settings, Stage, draw};
use meshweft_schedule::Rule;
use meshweft_shaders::layout::Status as Words;

/// Iterations that are asked for before the host looks whether they are enough, at most.
const BATCH: u32 = 64;

/// Refuses loops too deep inside of one another.
pub(super) fn check(stages: &[Stage]) -> Result<()> {
    let found = depth(stages);
    if found > Words::LEVELS {
        return Err(Error::Program(format!(
            "a step has {found} loops inside of one another, and a GPU knows {} at most: `--backend cpu` runs it",
            Words::LEVELS
        )));
    }
    Ok(())
}

fn depth(stages: &[Stage]) -> usize {
    let inside = stages.iter().map(|stage| match stage {
        Stage::Until { stages, .. } => 1 + depth(stages),
        _ => 0,
    });
    inside.max().unwrap_or(0)
}

/// What an iteration adds: exchanges of the two arrays, rounds, and rounds that an order bound. Loops inside count by themselves.
fn iteration(stages: &[Stage]) -> [u64; 3] {
    stages.iter().fold([0; 3], |[swaps, rounds, swept], stage| match *stage {
        Stage::Update { rule: Rule::AtOnce, rounds: n, .. } => [swaps + u64::from(n), rounds + u64::from(n), swept],
        Stage::Update { rule: Rule::InOrder | Rule::Backward, rounds: n, .. } => {
            [swaps, rounds + u64::from(n), swept + u64::from(n)]
        }
        _ => [swaps, rounds, swept],
    })
}

/// Whether the host looks at the state in the middle of some stages.
fn is_watched(stages: &[Stage]) -> bool {
    stages.iter().any(|stage| matches!(stage, Stage::Until { .. } | Stage::Fixpoint { .. }))
}

impl Work {
    /// Repeats an update until a round changes nothing, at most `most` times. The host compares the states of two rounds.
    pub(super) fn fixpoint<T: Number>(
        &mut self,
        scene: Scene<T>,
        kernel: usize,
        settings: &Settings,
        most: u32,
    ) -> Result<()> {
        let bits =
            |state: State<T>| [state.shared, state.private].map(|reals| bytemuck::cast_slice::<T, u8>(&reals).to_vec());
        self.queue.settle(&self.device)?;
        let mut before = bits(self.arrays.download(&self.device, scene.domain)?);
        for round in 0..most {
            self.update(scene, kernel, settings, (None, Rule::AtOnce, 1))?;
            let words = self.queue.settle(&self.device)?.words;
            // Frozen, or in a loop that is over, kernels do nothing.
            if words.frozen != 0 || words.done & levels(scene.depth) != 0 {
                break;
            }
            let after = bits(self.arrays.download(&self.device, scene.domain)?);
            if after == before || round + 1 == most {
                self.loops.note(kernel, round + 1, most, round + 1 < most);
                break;
            }
            before = after;
        }
        Ok(())
    }

    /// Repeats stages until a test holds, at most `most` times. Batches of iterations double, so that at most as many are asked
    /// for in vain as run.
    pub(super) fn until<T: Number>(
        &mut self,
        scene: Scene<T>,
        (test, settings): (usize, &Settings),
        most: u32,
        stages: &[Stage],
    ) -> Result<()> {
        let inside = Scene { depth: scene.depth + 1, ..scene };
        // The host looks in the middle of such iterations: they go one by one.
        let batch_most = if is_watched(stages) { 1 } else { BATCH };
        let (mut asked, mut batch) = (0, 1);
        while asked < most {
            let before = (self.arrays.current(), self.rounds);
            let count = batch.min(most - asked);
            for i in 0..count {
                let given = self.given(scene, settings, asked + i == 0)?;
                self.once(test, given)?;
                let draw = draw(scene.draw, (asked + i) as usize);
                self.stages(Scene { draw, ..inside }, stages)?;
            }
            if asked + count == most {
                // It goes round no more, and tells whether it has arrived.
                let given = self.given(scene, settings, false)?;
                self.once(test, given)?;
            }
            let status = self.queue.settle(&self.device)?;
            // Frozen, every kernel passes the state on as it is.
            if status.words.frozen != 0 {
                return Ok(());
            }
            let is_outside = status.words.done & levels(scene.depth) != 0;
            let all = if is_outside { 0 } else { status.iterations[scene.depth] };
            let ran = all.saturating_sub(asked).min(count);
            if !is_outside && (ran < count || asked + count == most) {
                let held = status.words.done & (1 << scene.depth) != 0;
                self.loops.note(test, asked + ran, most, held);
            }
            if ran < count {
                // The device did not do the rest.
                let [swaps, rounds, swept] = iteration(stages).map(|each| each * u64::from(ran));
                self.arrays.set_current(before.0 ^ (swaps % 2 == 1));
                self.rounds = [before.1[0] + rounds, before.1[1] + swept];
                return Ok(());
            }
            asked += count;
            batch = (2 * batch).min(batch_most);
        }
        Ok(())
    }
}
