use super::check;
use crate::methods::gray_scott::GrayScott;

#[test]
fn gray_scott() {
    check("gray_scott", || GrayScott { noise: 1e-3 });
}
