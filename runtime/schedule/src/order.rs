//! The identity of an order.

use crate::error::Error;
use meshweft_mesh::Curve;
use std::fmt;
use std::str::FromStr;

/// A total order of the vertices: a curve that numbers them, and the key by which they are sorted.
///
/// It is the whole identity of a result: the same mesh, program and order have the same bits on any number of threads, lanes
/// and hosts. It is printed and parsed as one word, `morton/blocked:4096`, of which only the key must be given.
///
/// ```
/// use meshweft_mesh::Curve;
/// use meshweft_schedule::Order;
/// let order: Order = "hilbert/blocked:512".parse()?;
/// assert_eq!(order, Order::blocked(512).along(Curve::Hilbert));
/// assert_eq!("color".parse::<Order>()?.to_string(), "morton/color");
/// # Ok::<(), meshweft_schedule::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Order {
    /// What numbers the vertices.
    pub curve: Curve,
    /// What sorts them.
    pub key: Key,
}

/// By which key vertices are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// By color, then along the curve.
    Color,
    /// By breadth-first level, then color, then along the curve.
    LevelColor,
    /// By color, then breadth-first level, then along the curve.
    ColorLevel,
    /// Along the curve. Every vertex waits for its own predecessors; ready vertices start in the order of the curve.
    PriorityDag,
    /// By color of the block, block, color inside the block, then along the curve; blocks are runs of the curve. Every
    /// block waits for its own predecessors.
    Blocked {
        /// Vertices a block; 0 takes what suits mesh and backend.
        size: u32,
    },
    /// Along the curve, double-buffered: every vertex reads old values only.
    Jacobi,
    /// By a key of the host's own (`Builder::order_by` of the runtime), then along the curve.
    Own,
}

impl Default for Key {
    fn default() -> Key {
        Key::Blocked { size: 0 }
    }
}

impl Key {
    /// The name of the key, without the size of its blocks.
    pub const fn name(self) -> &'static str {
        match self {
            Key::Color => "color",
            Key::LevelColor => "level-color",
            Key::ColorLevel => "color-level",
            Key::PriorityDag => "priority-dag",
            Key::Blocked { .. } => "blocked",
            Key::Jacobi => "jacobi",
            Key::Own => "own",
        }
    }

    /// Whether sweeps read the old values of all neighbors, which then move at the same time.
    pub const fn is_double_buffered(self) -> bool {
        matches!(self, Key::Jacobi)
    }
}

impl Order {
    /// [`Key::Color`] along the Morton curve.
    pub const COLOR: Order = Order::by(Key::Color);
    /// [`Key::LevelColor`] along the Morton curve.
    pub const LEVEL_COLOR: Order = Order::by(Key::LevelColor);
    /// [`Key::ColorLevel`] along the Morton curve.
    pub const COLOR_LEVEL: Order = Order::by(Key::ColorLevel);
    /// [`Key::PriorityDag`] along the Morton curve.
    pub const PRIORITY_DAG: Order = Order::by(Key::PriorityDag);
    /// [`Key::Blocked`] along the Morton curve, with the size of blocks that suits mesh and backend: the default.
    pub const BLOCKED: Order = Order::blocked(0);
    /// [`Key::Jacobi`] along the Morton curve.
    pub const JACOBI: Order = Order::by(Key::Jacobi);
    /// All keys along the Morton curve, but that of the host's own.
    pub const ALL: [Order; 6] =
        [Order::COLOR, Order::LEVEL_COLOR, Order::COLOR_LEVEL, Order::PRIORITY_DAG, Order::BLOCKED, Order::JACOBI];

    const fn by(key: Key) -> Order {
        Order { curve: Curve::Morton, key }
    }

    /// Blocks of `size` vertices along the Morton curve; 0 takes what suits mesh and backend.
    pub const fn blocked(size: u32) -> Order {
        Order::by(Key::Blocked { size })
    }

    /// The same key along another curve.
    pub const fn along(self, curve: Curve) -> Order {
        Order { curve, ..self }
    }

    /// The same with the size of blocks written out: `grain` where it is open.
    pub fn resolved(self, grain: u32) -> Order {
        match self.key {
            Key::Blocked { size: 0 } => Order { key: Key::Blocked { size: grain }, ..self },
            _ => self,
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (curve, key) = (self.curve, self.key.name());
        f.pad(&match self.key {
            Key::Blocked { size } if size > 0 => format!("{curve}/{key}:{size}"),
            _ => format!("{curve}/{key}"),
        })
    }
}

impl FromStr for Order {
    type Err = Error;

    /// Takes `[CURVE/]KEY`, and for blocks `[CURVE/]blocked[:SIZE]`, in both spellings of color.
    ///
    /// ```
    /// use meshweft_schedule::Order;
    /// assert_eq!("level-colour".parse::<Order>()?, Order::LEVEL_COLOR);
    /// assert!("fastest".parse::<Order>().is_err());
    /// assert!("blocked:0".parse::<Order>().is_err());
    /// # Ok::<(), meshweft_schedule::Error>(())
    /// ```
    fn from_str(name: &str) -> Result<Order, Error> {
        let spelled = name.to_ascii_lowercase().replace("colour", "color").replace('_', "-");
        let (curve, key) = match spelled.split_once('/') {
            Some((curve, key)) => (curve.parse()?, key),
            None => (Curve::default(), &spelled[..]),
        };
        let (key, size) = match key.split_once(':') {
            Some((key, size)) => (key, Some(size)),
            None => (key, None),
        };
        let Some(order) = Order::ALL.into_iter().find(|order| order.key.name() == key) else {
            let known = Order::ALL.map(|order| order.key.name()).join(", ");
            return Err(Error::Invalid(format!(
                "unknown order {name:?}: one of {known}, with the curve before it (hilbert/color) and the size of blocks \
                 behind (blocked:4096) if they are not to be the default"
            )));
        };
        match (order.key, size) {
            (_, None) => Ok(order.along(curve)),
            (Key::Blocked { .. }, Some(size)) => match size.parse() {
                Ok(size) if size > 0 => Ok(Order::blocked(size).along(curve)),
                _ => Err(Error::Invalid(format!("order {name:?}: a block holds 1 to {} vertices", u32::MAX))),
            },
            (key, Some(_)) => {
                Err(Error::Invalid(format!("order {name:?}: {} has no size, only blocked has", key.name())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_parses_to_the_same_order_and_what_is_not_an_order_says_why() {
        for curve in Curve::ALL {
            for order in Order::ALL.into_iter().chain([Order::blocked(1), Order::blocked(u32::MAX)]) {
                let order = order.along(curve);
                assert_eq!(order.to_string().parse::<Order>().unwrap(), order);
            }
        }
        for (name, part) in [
            ("", "unknown order"),
            ("own", "unknown order"),
            ("peano/color", "unknown curve"),
            ("color:3", "only blocked"),
            ("blocked:0", "1 to 4294967295"),
            ("blocked:4294967296", "1 to 4294967295"),
            ("blocked:-1", "1 to"),
            ("blocked:", "1 to"),
        ] {
            let error = name.parse::<Order>().unwrap_err().to_string();
            assert!(error.contains(part), "{name}: {error}");
        }
        assert_eq!(Order::BLOCKED.resolved(64), Order::blocked(64));
        assert_eq!(Order::blocked(8).resolved(64), Order::blocked(8));
    }
}
