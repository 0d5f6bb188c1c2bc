use super::check_all;
use crate::methods::finite_volumes::Advection;
use meshweft::Mesh;

#[test]
fn finite_volumes() {
    let prepare = |mesh: Mesh| {
        let dual = mesh.dual().unwrap();
        let program = Advection::along_x(&dual, 0.5);
        (dual.mesh, program)
    };
    check_all("finite_volumes", prepare, |_| Ok(()));
}
