//! What the records of a program consist of, as plain data.

use super::{Kernels, PrivateOf, SharedOf};
use crate::number::{Kind, Number, Part, Real, Record};

/// The parts of a record, in the order of its reals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(pub(crate) Vec<Part>);

/// The records of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Records {
    pub(crate) shared: Fields,
    pub(crate) private: Fields,
    pub(crate) parameters: Fields,
    pub(crate) globals: Fields,
    /// What is wrong with one of them, if something is.
    pub(crate) fault: Option<String>,
}

impl Fields {
    pub(crate) fn of<A: Record<T>, T: Number>() -> Fields {
        Fields(A::parts(""))
    }

    /// Number of reals.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|part| part.components).sum()
    }

    /// What each real is.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.0.iter().flat_map(|part| std::iter::repeat_n(part.kind, part.components)).collect()
    }

    /// The number of a part's first real, and the part.
    ///
    /// # Errors
    /// No part of that name: which there are.
    pub(crate) fn locate(&self, name: &str) -> Result<(usize, &Part), String> {
        let firsts = self.0.iter().scan(0, |end, part| Some(std::mem::replace(end, *end + part.components)));
        let known = || self.0.iter().map(|part| part.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = firsts.zip(&self.0).find(|(_, part)| part.name == name);
        found.ok_or_else(|| format!("{name:?}: one of {}", known()))
    }

    /// The name of the part that real `k` belongs to, and which of its components it is.
    pub(crate) fn name(&self, mut k: usize) -> (&str, usize) {
        for part in &self.0 {
            if k < part.components {
                return (&part.name, k);
            }
            k -= part.components;
        }
        unreachable!("real {k} lies in some part")
    }

    /// The name and value of the first real that is not finite.
    pub(crate) fn first_not_finite<T: Number>(&self, reals: &[T]) -> Option<(&str, f64)> {
        let kinds = self.kinds();
        let k = (0..reals.len()).find(|&k| kinds[k] == Kind::Real && !reals[k].finite())?;
        Some((self.name(k).0, reals[k].to_f64()))
    }
}

/// The records, in the order in which [`lengths`] counts their reals.
const NAMES: [&str; 4] = ["shared state", "private state", "parameters", "globals"];

impl Records {
    /// Those of a program whose state is stored as `T`. `others`: their [`lengths`] over the other number types that kernels run on.
    pub(crate) fn of<P: Kernels, T: Number>(others: &[[usize; 4]]) -> Records {
        let lies = [
            lie::<SharedOf<P, T>, T>(),
            lie::<PrivateOf<P, T>, T>(),
            lie::<P::Parameters<T>, T>(),
            lie::<P::Globals<T>, T>(),
        ];
        Records {
            shared: Fields::of::<SharedOf<P, T>, T>(),
            private: Fields::of::<PrivateOf<P, T>, T>(),
            parameters: Fields::of::<P::Parameters<T>, T>(),
            globals: Fields::of::<P::Globals<T>, T>(),
            fault: None,
        }
        .checked(lengths::<P, f64>(), others, lies)
    }

    /// Those of a program that is data: parts of the shared state, the private state, parameters and globals.
    pub(crate) fn of_parts(parts: [&[Part]; 4]) -> Records {
        let [shared, private, parameters, globals] = parts.map(|parts| Fields(parts.to_vec()));
        let mut records = Records { shared, private, parameters, globals, fault: None };
        records.fault = records.twice();
        records
    }

    /// Notes the first thing that is wrong.
    fn checked(mut self, lengths: [usize; 4], others: &[[usize; 4]], lies: [Option<String>; 4]) -> Records {
        let varies = |i: &usize| others.iter().any(|other| other[*i] != lengths[*i]);
        let of_type = (0..4).find(varies).map(|i| {
            let what = NAMES[i];
            format!(
                "the number of reals of the {what} depends on the number type: `Record::LEN` must be the same for all"
            )
        });
        let of_record =
            NAMES.iter().zip(lies).find_map(|(what, lie)| Some(format!("the record of the {what} {}", lie?)));
        self.fault = of_type.or(of_record).or_else(|| self.twice());
        self
    }

    /// The parts of the state: shared ones first, then private ones.
    pub(crate) fn state(&self) -> Fields {
        Fields(self.shared.0.iter().chain(&self.private.0).cloned().collect())
    }

    /// Two fields of one name.
    fn twice(&self) -> Option<String> {
        let parts = self.state().0;
        let is_twice = |i: &usize| parts[..*i].iter().any(|other| other.name == parts[*i].name);
        let i = (0..parts.len()).find(is_twice)?;
        Some(format!("two fields of a vertex are called {}: each needs a name of its own", parts[i].name))
    }

    /// Numbers of reals of shared state, private state, parameters and globals.
    pub(crate) fn lengths(&self) -> [usize; 4] {
        [&self.shared, &self.private, &self.parameters, &self.globals].map(Fields::len)
    }
}

/// What a record written by hand says of itself that is not so: engines cut the state by its length, and name reals by its parts.
fn lie<A: Record<T>, T: Number>() -> Option<String> {
    let (mut asked, mut given) = (Vec::new(), Vec::new());
    let ones = A::build(|k| {
        asked.push(k);
        T::from_f64(1.0)
    });
    ones.each(|k, _| given.push(k));
    lie_of(A::LEN, &Fields::of::<A, T>(), [&asked, &given], &A::kind)
}

fn lie_of(len: usize, fields: &Fields, visits: [&[usize]; 2], kind: &dyn Fn(usize) -> Kind) -> Option<String> {
    if len != fields.len() {
        return Some(format!("has {len} reals by `Record::LEN`, but {} by `Record::parts`", fields.len()));
    }
    let ascending: Vec<usize> = (0..len).collect();
    if let Some(i) = visits.iter().position(|visit| **visit != ascending) {
        let (what, seen) = (["build", "each"][i], visits[i]);
        return Some(format!("has {len} reals, but `Record::{what}` visits {seen:?}: each once, in ascending order"));
    }
    let k = fields.kinds().iter().enumerate().position(|(k, &known)| kind(k) != known)?;
    Some(format!("says another kind of real {k} by `Record::kind` than by `Record::parts`"))
}

/// The lengths of the records over a number type.
pub(crate) fn lengths<P: Kernels, R: Real>() -> [usize; 4] {
    [<SharedOf<P, R>>::LEN, <PrivateOf<P, R>>::LEN, <P::Parameters<R>>::LEN, <P::Globals<R>>::LEN]
}
