//! What an update touches of its vertices.

/// What an update looks at and changes of its vertices: what is worth fetching ahead. The rest of their state stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touches {
    /// A bit for each star.
    stars: u64,
    /// A bit for each private real.
    private: u128,
}

impl Touches {
    pub(crate) const ALL: Touches = Touches { stars: u64::MAX, private: u128::MAX };

    pub(crate) fn of(stars: impl IntoIterator<Item = usize>, private: impl IntoIterator<Item = usize>) -> Touches {
        let mut touches = Touches { stars: 0, private: 0 };
        stars.into_iter().for_each(|star| touches.stars |= 1 << star.min(63));
        private.into_iter().for_each(|k| touches.private |= 1 << k.min(127));
        touches
    }

    /// Whether it looks along a star.
    #[inline(always)]
    pub(crate) fn star(&self, i: usize) -> bool {
        self.stars >> i.min(63) & 1 == 1
    }

    /// Whether it reads private real `k`, other than to keep it, or changes it.
    #[inline(always)]
    pub(crate) fn real(&self, k: usize) -> bool {
        self.private >> k.min(127) & 1 == 1
    }
}
