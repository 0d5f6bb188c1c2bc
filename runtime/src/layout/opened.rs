//! The lists of all stars of a tile, looked up once for all of its vertices.

/// What was looked up of each star.
pub(crate) struct Opened<A> {
    /// Of most programs, without an allocation a tile.
    few: [A; FEW],
    count: usize,
    many: Vec<A>,
}

const FEW: usize = 4;

impl<A: Copy> Opened<A> {
    #[inline(always)]
    pub(super) fn new<S>(stars: &[S], nothing: A, open: impl Fn(usize) -> A) -> Opened<A> {
        let (mut few, count) = ([nothing; FEW], stars.len());
        if count > FEW {
            return Opened { few, count: 0, many: (0..count).map(open).collect() };
        }
        for (i, place) in few[..count].iter_mut().enumerate() {
            *place = open(i);
        }
        Opened { few, count, many: Vec::new() }
    }

    #[inline(always)]
    pub(crate) fn stars(&self) -> &[A] {
        if self.many.is_empty() { &self.few[..self.count] } else { &self.many }
    }
}
