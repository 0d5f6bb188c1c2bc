//! The bytes that host and kernels share: the structs of `layout.wgsl` as the host knows them, field by field.
//!
//! ```
//! use meshweft_shaders::layout::{Range, Star};
//! let words = Range { first: 3, end: 7, ..Range::default() }.with_stars(&[Star { columns: 5, ..Star::default() }]);
//! assert_eq!((&words[..2], words[Range::STARS_AT]), (&[3, 7][..], 5));
//! ```

/// Declares a struct of words.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $field:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $field: u32,)+
        }

        impl $name {
            /// The names of its fields, in order.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($field)),+];
            /// How many there are.
            pub const WORDS: usize = Self::FIELDS.len();

            /// The fields, in order.
            pub fn words(&self) -> Vec<u32> {
                vec![$(self.$field),+]
            }

            /// From the fields in order; those that are missing are zero.
            pub fn from_words(words: &[u32]) -> $name {
                let mut words = words.iter().copied();
                $name { $($field: words.next().unwrap_or(0)),+ }
            }
        }
    };
}

/// The mark of a column of high-degree vertices.
pub const ALONE: u32 = 1 << 31;

words! {
    /// Where the arrays of one star lie in a chunk, in words; data in reals.
    Star {
        /// The first column of each group of vertices side by side.
        columns,
        /// The degrees of their slots, two a word.
        degrees,
        /// The names of their other vertices: in half words where there is a table.
        names,
        /// The data of their elements.
        data,
        /// Of high-degree vertices, pairs of first element and number of elements.
        rows,
        /// The names of their other vertices.
        row_names,
        /// The data of their elements.
        row_data,
        /// Nothing.
        unused,
    }
}

words! {
    /// What one dispatch works on, and where the arrays of its chunk start.
    Range {
        /// The first slot, task of the chunk, or entry of the list of tasks.
        first,
        /// The one after the last.
        end,
        /// Whether tasks are taken from the list.
        listed,
        /// Whether tasks are walked from their ends to their starts.
        backward,
        /// The first slot of the chunk.
        slot0,
        /// Vertices of each group, without padding lanes.
        counts,
        /// Where the tiles of each task start.
        tasks,
        /// Tile after tile.
        tiles,
        /// The number of the vertex in each slot.
        numbers,
        /// A bit for each slot whose vertex keeps its state.
        fixed,
    }
}

impl Range {
    /// Where the stars start.
    pub const STARS_AT: usize = Self::WORDS.next_multiple_of(4);

    /// Its words, with those of the stars.
    pub fn with_stars(&self, stars: &[Star]) -> Vec<u32> {
        let mut words = self.words();
        words.resize(Self::STARS_AT, 0);
        words.extend(stars.iter().flat_map(Star::words));
        words.resize(Self::words_with(stars.len()), 0);
        words
    }

    /// Words of one with so many stars.
    pub const fn words_with(stars: usize) -> usize {
        // No array is empty.
        Self::STARS_AT + Star::WORDS * if stars == 0 { 1 } else { stars }
    }
}

words! {
    /// What one stage is given.
    Given {
        /// Steps taken before this one.
        step,
        /// A bit for each loop that the stage lies in.
        levels,
        /// Of a test, whether its loop begins here.
        begins,
        /// What random numbers are drawn by: it tells stages and rounds apart.
        draw,
    }
}

impl Given {
    /// Its words, with those of the kernel's settings and of the parameters.
    pub fn with(&self, settings: [u32; 4], parameters: &[u32]) -> Vec<u32> {
        let mut words = self.words();
        words.extend(settings);
        words.extend(parameters);
        words.resize(Self::words_with(parameters.len()), 0);
        words
    }

    /// Words of one with so many parameters.
    pub fn words_with(parameters: usize) -> usize {
        Self::WORDS + 4 + parameters.next_multiple_of(4).max(4)
    }
}

words! {
    /// A piece of a task.
    Tile {
        /// Its first slot.
        first,
        /// Number of its slots.
        own,
        /// Where the list of the slots starts that it reads outside.
        halo,
        /// How many those are.
        outside,
        /// Where the list of the first slots of its runs starts, with the end of the last.
        runs,
        /// Number of runs.
        run_count,
        /// Whether its vertices are updated side by side, from a table.
        wide,
        /// Nothing.
        unused,
    }
}

words! {
    /// What a device tells of itself.
    Status {
        /// Not zero once an update came to something that is not finite.
        non_finite,
        /// Not zero from the step after that on.
        frozen,
        /// Steps that were begun before.
        steps,
        /// Steps that were begun in all.
        canary,
        /// A bit for each loop that has ended.
        done,
    }
}

impl Status {
    /// The most loops inside of one another.
    pub const LEVELS: usize = 4;
    /// Where the counts of loops start.
    pub const ITERATIONS_AT: usize = Self::WORDS;
    /// Where the globals start.
    pub const GLOBALS_AT: usize = Self::ITERATIONS_AT + Self::LEVELS;
}

words! {
    /// What a reduction combines.
    Reduction {
        /// Number of values.
        count,
        /// 0 a sum, 1 the smallest, 2 the largest.
        how,
        /// The global that takes the result.
        into,
        /// A bit for each loop that the stage lies in.
        levels,
        /// The bits of what it comes to without values.
        empty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use naga::{Expression, Literal, TypeInner};

    #[test]
    fn every_field_lies_where_kernels_look_for_it() {
        let module = naga::front::wgsl::parse_str(crate::TICK.source).unwrap();
        let check = |name: &str, fields: &[&str], arrays: &[(&str, usize)]| {
            let (_, found) = module.types.iter().find(|(_, found)| found.name.as_deref() == Some(name)).unwrap();
            let TypeInner::Struct { members, .. } = &found.inner else { panic!("{name} is a struct") };
            let found: Vec<(&str, u32)> = members.iter().map(|m| (m.name.as_deref().unwrap(), m.offset)).collect();
            let words = fields.iter().zip(0..).map(|(&field, word)| (field, 4 * word));
            let expected: Vec<(&str, u32)> = words.chain(arrays.iter().map(|&(a, at)| (a, 4 * at as u32))).collect();
            assert_eq!(found, expected, "{name}");
        };
        check("Star", Star::FIELDS, &[]);
        check("Range", Range::FIELDS, &[("stars", Range::STARS_AT)]);
        check("Given", Given::FIELDS, &[("settings", Given::WORDS), ("parameters", Given::WORDS + 4)]);
        check("Tile", Tile::FIELDS, &[]);
        let arrays = [("iterations", Status::ITERATIONS_AT), ("globals", Status::GLOBALS_AT)];
        check("Status", Status::FIELDS, &arrays);
        check("Reduction", Reduction::FIELDS, &[]);
        let (_, alone) = module.constants.iter().find(|(_, c)| c.name.as_deref() == Some("ALONE")).unwrap();
        let value = &module.global_expressions[alone.init];
        assert!(matches!(value, Expression::Literal(Literal::U32(word)) if *word == ALONE), "{value:?}");
    }
}
