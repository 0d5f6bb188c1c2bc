use super::check;
use crate::methods::ising::Ising;

#[test]
fn ising() {
    check("ising", || Ising { beta: 0.4 });
}
