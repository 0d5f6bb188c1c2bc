//! The names of the orders.

use crate::error::Error;
use std::fmt;
use std::str::FromStr;

/// A total order of the vertices: by which key they are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// By color, then along the curve. Phases: the colors.
    Color,
    /// By breadth-first level, then color, then along the curve. Phases: the colors of each level in turn.
    LevelColor,
    /// By color, then breadth-first level, then along the curve. Phases: the colors.
    ColorLevel,
    /// Along the curve. Every vertex waits for its own predecessors; ready vertices start in the order of the curve.
    PriorityDag,
    /// By color of the block, block, color inside the block, then along the curve; blocks are runs of the curve. Every
    /// block waits for its own predecessors.
    #[default]
    Blocked,
    /// Along the curve, double-buffered: every vertex reads old values only.
    Jacobi,
}

impl Order {
    /// All orders.
    pub const ALL: [Order; 6] =
        [Order::Color, Order::LevelColor, Order::ColorLevel, Order::PriorityDag, Order::Blocked, Order::Jacobi];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Order::Color => "color",
            Order::LevelColor => "level-color",
            Order::ColorLevel => "color-level",
            Order::PriorityDag => "priority-dag",
            Order::Blocked => "blocked",
            Order::Jacobi => "jacobi",
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Order {
    type Err = Error;

    /// Takes both spellings, `color` and `colour`.
    ///
    /// ```
    /// use meshweft::Order;
    /// assert_eq!("level-colour".parse::<Order>()?, Order::LevelColor);
    /// assert!("fastest".parse::<Order>().is_err());
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    fn from_str(name: &str) -> Result<Order, Error> {
        let spelled = name.to_ascii_lowercase().replace("colour", "color").replace('_', "-");
        Order::ALL.into_iter().find(|order| order.name() == spelled).ok_or_else(|| {
            Error::Invalid(format!("unknown order {name:?}: one of {}", Order::ALL.map(Order::name).join(", ")))
        })
    }
}
