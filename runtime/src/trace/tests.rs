//! What the tape keeps and how it is written.

use super::*;
use crate::program::Real;
use nalgebra::{Matrix3, Vector3};

fn physics() -> Physics {
    let part = |name: &str, reals| vec![(name.to_string(), reals)];
    Physics {
        scalar: Scalar::F32,
        parameters: shaders::Record::new("Parameters", &part("dt", 1), Scalar::F32),
        shared: shaders::Record::new("Shared", &part("x", 3), Scalar::F32),
        private: shaders::Record::new("Private", &part("m", 9), Scalar::F32),
        stars: vec![shaders::Star {
            name: "Edges".into(),
            others: 1,
            data: shaders::Record::new("Data0", &part("w", 1), Scalar::F32),
        }],
    }
}

struct Edges;
impl Star<1> for Edges {
    const INDEX: usize = 0;
    type Data<R: Real> = R;
}

fn text(run: impl FnOnce(Vector3<Expr>, Matrix3<Expr>, &Recorder) -> (Vector3<Expr>, Matrix3<Expr>)) -> Result<String> {
    let body = update(&physics(), "probe", |neighbors| run(own(), private(), neighbors))?;
    let harness = shaders::Harness { width: 8, rows: true, table: None, phase_size: 64, walk_size: 64 };
    let module = shaders::module(&physics(), &harness, &body, shaders::Entry::Phase, false);
    shaders::check(&module).unwrap_or_else(|e| panic!("{e}"));
    Ok(body.function().into())
}

#[test]
fn matrices_fold_what_is_literally_zero_or_one() {
    let text = text(|x, m, _| (Matrix3::identity() * x + Vector3::zeros(), m)).unwrap();
    assert!(text.contains("return New(own, body);"), "{text}");
    let text = self::text(|x, m, _| (m * x, m)).unwrap();
    assert_eq!(text.matches('*').count(), 9, "{text}");
}

#[test]
fn what_does_not_depend_on_the_neighbor_leaves_the_loop_and_order_of_sums_stays() {
    let text = text(|x, m, neighbors| {
        let sum = neighbors
            .fold(Edges, x, |sum, [other]: [Vector3<Expr>; 1], w: Expr| sum + (other - x) * (w * (x[0] * x[1]).sqrt()));
        (sum, m)
    })
    .unwrap();
    let (before, rest) = text.split_once("for (").unwrap();
    assert!(before.contains("sqrt(own.x.x * own.x.y)") && !rest.contains("sqrt"), "{text}");
}

#[test]
fn accumulators_that_read_each_other_are_assigned_together() {
    // A rotation of what was gathered: written one after the other it would lose a value.
    let text = text(|x, m, neighbors| {
        let turned = neighbors.fold(Edges, x, |x, [_]: [Vector3<Expr>; 1], w: Expr| Vector3::new(x[1] + w, x[2], x[0]));
        (turned, m)
    })
    .unwrap();
    let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
    assert!(at("let next_gathered_z = gathered_x;") < at("gathered_x = gathered_y"), "{text}");
}

#[test]
fn folds_inside_of_folds_and_words_of_the_language_are_taken() {
    let text = text(|x, m, neighbors| {
        let sum = neighbors.fold(Edges, x[0], |sum, [other]: [Vector3<Expr>; 1], w: Expr| {
            neighbors.fold(Edges, sum * w, |inner, [deep]: [Vector3<Expr>; 1], _: Expr| inner + deep[0] * other[1])
        });
        (Vector3::new(sum, x[1], x[2]), m)
    })
    .unwrap();
    assert_eq!(text.matches("for (").count(), 2, "{text}");
}

#[test]
fn infinity_is_refused_with_the_name_of_the_kernel() {
    let error = text(|x, m, _| (x * Expr::lit(f64::INFINITY), m)).unwrap_err().to_string();
    assert!(error.contains("kernel probe") && error.contains("inf"), "{error}");
}
