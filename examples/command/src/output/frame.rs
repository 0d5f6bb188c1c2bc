//! The state of a run at one step.

use crate::{Column, Run};
use anyhow::Result;
use meshweft_mesh::{Cells, Field};

/// The state of a run at one step, as pictures show it.
pub(super) struct Frame {
    pub(super) moment: Moment,
    pub(super) points: Vec<[f64; 3]>,
    pub(super) fields: Vec<Field>,
    /// The cells, if those are others than at the start.
    pub(super) cells: Option<Cells>,
}

impl Frame {
    /// What a run shows when its state has these fields.
    ///
    /// # Errors
    /// A field that is missing.
    pub(super) fn of(run: &Run, moment: Moment, fields: Vec<Field>) -> Result<Frame> {
        let cells = run.look().cells.as_ref().map(|now| (now.0)(&fields));
        Ok(Frame { moment, points: run.points(&fields)?, fields, cells })
    }

    /// The same with zeros for what stands for nothing: the largest number there is would leave no colors for the others.
    pub(super) fn drawable(&self, columns: &[Column]) -> Frame {
        let mut fields = self.fields.clone();
        for field in &mut fields {
            let nothing = columns.iter().find(|column| column.field == field.name).and_then(|column| column.nothing);
            if let Some((nothing, _)) = nothing {
                field.values.iter_mut().filter(|x| **x == nothing).for_each(|x| *x = 0.0);
            }
        }
        Frame { moment: self.moment, points: self.points.clone(), fields, cells: self.cells.clone() }
    }
}

/// One step of a run.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) step: u64,
    pub(super) time: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_nothing_is_drawn_as_zero_and_the_rest_as_it_is() {
        let field = |name: &str| Field { name: name.into(), components: 1, values: vec![3.0, 9.0, 0.5] };
        let fields = vec![field("level"), field("flow")];
        let frame = Frame { moment: Moment { step: 0, time: 0.0 }, points: vec![[0.0; 3]; 3], fields, cells: None };
        let drawn = frame.drawable(&[Column { field: "level", is_vertex: false, nothing: Some((9.0, "-1")) }]);
        assert_eq!([&drawn.fields[0].values[..], &drawn.fields[1].values[..]], [[3.0, 0.0, 0.5], [3.0, 9.0, 0.5]]);
    }
}
