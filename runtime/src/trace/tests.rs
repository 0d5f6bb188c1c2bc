//! What the tape keeps and how it is written.

use super::*;
use crate::number::{Integer, Length, Real, random};
use crate::program::{StarPlan, Stars};
use crate::{kernels, stars, vertex};
use nalgebra::{Matrix2, Matrix3, Matrix4, SMatrix, Vector3};
use std::marker::PhantomData;

vertex! {
    struct Body<R> { shared x: Vector3<R>, m: Matrix3<R> }
}

/// One real and one integer.
#[derive(Clone, Copy)]
struct Mixed<R: Real>(R, R::Int);

impl<R: Real> Vertex<R> for Mixed<R> {
    type Shared = (R, R::Int);
    type Private = ();
    fn split(self) -> ((R, R::Int), ()) {
        ((self.0, self.1), ())
    }
    fn join((x, i): (R, R::Int), (): ()) -> Self {
        Mixed(x, i)
    }
}

stars! { Edges[1]: R; }

struct Bodies;
struct Pairs;

kernels! { for Bodies: Body; }
kernels! { for Pairs: Mixed; }

/// What is recorded for one program.
struct Around<'a, P>(&'a Recorder<'a>, PhantomData<P>);

impl<P: Kernels> Around<'_, P> {
    fn fold<A: Record<Expr>>(&self, star: Edges, init: A, f: impl Fn(A, [SharedOf<P, Expr>; 1], Expr) -> A) -> A {
        Neighbors::<P, Expr>::fold(self.0, star, init, f)
    }
}

/// A kernel that exists on symbols alone.
fn probe<P: Kernels>(
    scalar: shaders::Scalar,
    run: impl Fn(VertexOf<P, Expr>, &Around<P>) -> VertexOf<P, Expr>,
) -> Result<(Physics, Traced)> {
    let mut stars = Stars::default();
    stars.add(Edges, Vec::<[u32; 2]>::new(), |_| 0.0);
    let stars: Vec<_> = stars.plans.iter().map(StarPlan::common).collect();
    let physics = physics(&Records::of::<P, f32>(&[]), &stars, &BTreeMap::new(), scalar);
    let run = |recorder: &Recorder| vertex::<P>(run(own::<P>(), &Around(recorder, PhantomData)));
    let traced = trace(("probe", Role::Update { is_quiet: false }), &physics, &stars, &run);
    Ok((physics, traced.map_err(|why| Error::Program(format!("kernel probe {why}")))?))
}

/// Its text.
fn traced<P: Kernels>(
    scalar: shaders::Scalar,
    run: impl Fn(VertexOf<P, Expr>, &Around<P>) -> VertexOf<P, Expr>,
) -> Result<String> {
    let (physics, traced) = probe(scalar, run)?;
    let body = traced.body.map_err(Error::Program)?;
    for entry in [shaders::Entry::Phase, shaders::Entry::Tasks] {
        let harness =
            shaders::Harness { width: 8, rows: true, table: None, fixed: true, phase_size: 64, walk_size: 64 };
        let module = shaders::module(&physics, &harness, &body, entry, false);
        shaders::check(&module).unwrap_or_else(|e| panic!("{e}"));
    }
    Ok(body.function().into())
}

fn text(
    run: impl Fn(Vector3<Expr>, Matrix3<Expr>, &Around<Bodies>) -> (Vector3<Expr>, Matrix3<Expr>),
) -> Result<String> {
    traced::<Bodies>(shaders::Scalar::F32, |own, around| {
        let (x, m) = run(own.x, own.m, around);
        Body { x, m }
    })
}

/// A kernel on one real and one integer, which makes another pair.
fn mixed(run: impl Fn(Expr, Integers, &Around<Pairs>) -> (Expr, Integers)) -> Result<String> {
    mixed_over(shaders::Scalar::F32, run)
}

type Integers = <Expr as Real>::Int;

fn mixed_over(
    scalar: shaders::Scalar,
    run: impl Fn(Expr, Integers, &Around<Pairs>) -> (Expr, Integers),
) -> Result<String> {
    traced::<Pairs>(scalar, |Mixed(x, i), around| {
        let (x, i) = run(x, i, around);
        Mixed(x, i)
    })
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
        let sum = neighbors.fold(Edges, x, |sum, [other], w| sum + (other.x - x) * (w * (x[0] * x[1]).sqrt()));
        (sum, m)
    })
    .unwrap();
    let (before, rest) = text.split_once("for (").unwrap();
    assert!(before.contains("sqrt(own.x.x * own.x.y)") && !rest.contains("sqrt"), "{text}");
}

#[test]
fn what_is_kept_is_not_touched_and_what_is_read_or_changed_is() {
    let touched = |run: fn(Body<Expr>, &Around<Bodies>) -> Body<Expr>| {
        let (_, traced) = probe::<Bodies>(shaders::Scalar::F32, run).unwrap();
        (traced.stars, traced.private)
    };
    assert_eq!(touched(|own, _| own), (vec![], vec![]));
    assert_eq!(touched(|own, _| Body { x: own.x * own.m[3], ..own }), (vec![], vec![3]));
    let changes = |mut own: Body<Expr>, around: &Around<Bodies>| {
        own.m[8] = around.fold(Edges, own.m[1], |sum, [other], weight| sum + weight * other.x[0]);
        own
    };
    assert_eq!(touched(changes), (vec![0], vec![1, 8]));
    // What is read on the way alone, inside of a fold.
    let inside = |own: Body<Expr>, around: &Around<Bodies>| {
        let sum = around.fold(Edges, Expr::lit(0.0), |sum, [other], _| sum + own.m[5] * other.x[1]);
        Body { x: own.x * sum, ..own }
    };
    assert_eq!(touched(inside), (vec![0], vec![5]));
}

#[test]
fn accumulators_that_read_each_other_are_assigned_together() {
    // A rotation of what was gathered: written one after the other it would lose a value.
    let text = text(|x, m, neighbors| {
        let turned = neighbors.fold(Edges, x, |x, [_], w| Vector3::new(x[1] + w, x[2], x[0]));
        (turned, m)
    })
    .unwrap();
    let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
    assert!(at("let next_gathered_z = gathered_x;") < at("gathered_x = gathered_y"), "{text}");
}

#[test]
fn folds_inside_of_folds_and_words_of_the_language_are_taken() {
    let text = text(|x, m, neighbors| {
        let sum = neighbors.fold(Edges, x[0], |sum, [other], w| {
            neighbors.fold(Edges, sum * w, |inner, [deep], _| inner + deep.x[0] * other.x[1])
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

#[test]
fn every_function_has_its_words() {
    type Binary = fn(Expr, Expr) -> Expr;
    let binary: [(&str, Binary); 8] = [
        ("pow_exact(own.r0, 1.0f + own.r0)", Real::pow),
        ("atan2_exact(own.r0, 1.0f + own.r0)", Real::atan2),
        ("rem_exact(own.r0, 1.0f + own.r0)", Real::rem),
        ("own.r0 < 1.0f + own.r0", |x, y| Expr::select(x.less(y), x, y)),
        ("1.0f + own.r0 < own.r0", |x, y| Expr::select(x.greater(y), x, y)),
        ("own.r0 <= 1.0f + own.r0", |x, y| Expr::select(x.at_most(y), x, y)),
        ("1.0f + own.r0 <= own.r0", |x, y| Expr::select(x.at_least(y), x, y)),
        ("own.r0 == 1.0f + own.r0", |x, y| Expr::select(x.equals(y), x, y)),
    ];
    for (words, function) in binary {
        // Added where it is used: what is used twice gets a name.
        let text = mixed(|x, i, _| (function(x, Expr::lit(1.0) + x), i)).unwrap();
        let text = text.replace("let e1 = 1.0f + own.r0;", "").replace("e1", "1.0f + own.r0");
        assert!(text.contains(words), "{words}: {text}");
    }
    type Unary = fn(Expr) -> Expr;
    let unary: [(&str, Unary); 9] = [
        ("floor(own.r0)", Real::floor),
        ("exp_exact(own.r0)", Real::exp),
        ("ln_exact(own.r0)", Real::ln),
        ("sin_exact(own.r0)", Real::sin),
        ("cos_exact(own.r0)", Real::cos),
        ("acos_exact(own.r0)", Real::acos),
        ("tanh_exact(own.r0)", Real::tanh),
        ("own.r0 * e1 * (e1 * e1)", |x| x.powi(7)),
        ("select(select(own.r0, -1.0f, own.r0 < 0.0f), 1.0f, 0.0f < own.r0)", Real::sign),
    ];
    for (words, function) in unary {
        let text = mixed(|x, i, _| (function(x), i)).unwrap();
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn literals_fold_in_every_function() {
    let text = mixed(|_, _, _| {
        let x = Expr::lit(0.5);
        let sum = x.ln() + x.pow(x) + x.atan2(x) + x.rem(x) + x.acos() + x.tanh() + x.floor() + x.sign() + x.powi(-2);
        let i = (sum.to_int() + <Expr as Real>::Int::lit(77)).shift_left(2) ^ <Expr as Real>::Int::lit(i32::MIN);
        (Expr::select(x.at_most(x) & x.equals(x), sum + Expr::from_int(i), x), i)
    });
    let [x, i] = {
        let x = 0.5f32;
        let sum = Real::ln(x) + Real::pow(x, x) + Real::atan2(x, x) + Real::rem(x, x) + Real::acos(x) + Real::tanh(x);
        let sum = sum + Real::floor(x) + Real::sign(x) + Real::powi(x, -2);
        let i = (Real::to_int(sum).0 + 77) << 2 ^ i32::MIN;
        [format!("{:?}f", sum + i as f32), format!("slot_of({i}i)")]
    };
    assert_eq!(text.unwrap().lines().nth(1).unwrap().trim(), format!("return New(Shared({x}, {i}), body);"));
}

#[test]
fn integers_come_out_of_slots_and_go_back_as_their_bits() {
    type Int = <Expr as Real>::Int;
    let text = mixed(|x, i, _| {
        let j = ((i + Int::lit(1)) & Int::lit(7)).shift_left(3) ^ (i * i).shift_right_logical(2) | (-i).shift_right(1);
        (
            Expr::select(i.less(j) & !j.equals(i), x, Expr::from_int(j)),
            Int::select(x.greater(Expr::lit(0.0)), j, x.to_int()),
        )
    })
    .unwrap();
    for words in
        ["bitcast<i32>(own.r1)", "& 7i", "<< 3u", ">> 2u)", ">> 1u", "f32(", "integer_of(own.r0)", "slot_of(select("]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    // What is only handed on stays as it is.
    let text = mixed(|x, i, _| (x, i)).unwrap();
    assert!(text.contains("return New(own, body);"), "{text}");
    let text = mixed(|x, i, _| (x + Expr::lit(1.0), i)).unwrap();
    assert!(text.contains("own.r1)") && !text.contains("bitcast"), "{text}");
}

#[test]
fn folds_gather_integers_as_integers() {
    type Int = <Expr as Real>::Int;
    let text = mixed(|x, i, neighbors| {
        let start = (Int::lit(0), i, x);
        let (count, largest, sum) = neighbors.fold(Edges, start, |(count, largest, sum), [(y, j)], w| {
            (count + Int::lit(1), Int::select(largest.less(j), j, largest), sum + y * w)
        });
        (sum / Expr::from_int(count), largest)
    })
    .unwrap();
    for words in ["= 0i;", "+ 1i;", "f32(gathered", "slot_of(gathered"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn hashes_are_traced() {
    type Int = <Expr as Real>::Int;
    let text = mixed(|_, i, _| {
        let counters = [i, Int::lit(3), Int::lit(-1), Int::lit(0)];
        (random::normal::<Expr>(counters) + random::uniform::<Expr>(counters), random::hash(counters)[2])
    })
    .unwrap();
    assert!(text.contains("ln_exact(") && text.contains("cos_exact(") && text.contains(">> 8u"), "{text}");
}

#[test]
fn programs_of_integers_have_one_kind_of_numbers() {
    type Int = <Expr as Real>::Int;
    let text = mixed_over(shaders::Scalar::I32, |x, i, neighbors| {
        let sum = neighbors.fold(Edges, i, |sum, [(y, j)], w| sum + j * (y * w).to_int());
        (Expr::from_int(sum ^ Int::lit(5)).rem(x).floor() + x.sqrt(), x.to_int())
    })
    .unwrap();
    assert!(text.contains("rem_integer(") && text.contains("sqrt_integer(") && !text.contains("bitcast"), "{text}");
    for function in [Real::exp, Real::ln, Real::tanh, Real::acos, |x: Expr| x.pow(x), |x: Expr| x.atan2(x)] {
        let error = mixed_over(shaders::Scalar::I32, |x, i, _| (function(x), i)).unwrap_err().to_string();
        assert!(error.contains("kernel probe") && error.contains("of integers"), "{error}");
    }
}

#[test]
fn comparing_symbols_is_refused() {
    let faults: [fn(Expr) -> bool; 6] = [
        |x| x == Expr::lit(0.0),
        |x| x == x,
        |x| num_traits::Zero::is_zero(&x),
        |x| num_traits::One::is_one(&x),
        |x| Vector3::new(x, x, x) != Vector3::zeros(),
        |x| num_traits::Zero::is_zero(&(x * x - x)),
    ];
    for fault in faults {
        let error = mixed(|x, i, _| (if fault(x) { x } else { x + x }, i)).unwrap_err().to_string();
        assert!(error.contains("kernel probe") && error.contains("R::equals"), "{error}");
    }
    // Literals are known.
    let text = mixed(|x, i, _| (if Expr::lit(2.0) == Expr::lit(1.0) + Expr::lit(1.0) { x } else { x + x }, i)).unwrap();
    assert!(text.contains("return New(own, body);"), "{text}");
    // A fault does not outlive its kernel.
    mixed(|x, i, _| (x + x, i)).unwrap();
}

#[test]
fn what_nalgebra_compares_by_itself_is_not_refused() {
    type Work = fn(Vector3<Expr>, Matrix3<Expr>) -> Vector3<Expr>;
    let works: [(&str, Work); 21] = [
        ("dot", |x, _| x * x.dot(&x)),
        ("cross", |x, m| x.cross(&(m * x))),
        ("length", |x, _| x.unit() * x.length()),
        ("products", |x, m| m * m * x),
        ("product with a transpose", |x, m| m.transpose() * x),
        ("tr_mul", |x, m| m.tr_mul(&x)),
        ("tr_dot", |x, _| x * x.transpose().tr_dot(&x)),
        ("outer product", |x, m| (x * x.transpose() + m) * x),
        ("identity, diagonal, zeros", |x, m| {
            (Matrix3::identity() + Matrix3::from_diagonal(&x) + Matrix3::zeros() - m) * x
        }),
        ("scalars", |x, m| (m * x[0] / x[1]) * -x),
        ("componentwise", |x, _| x.component_mul(&x).component_div(&x)),
        ("sum, trace, mean", |x, m| x * (x.sum() + m.trace())),
        ("rows and columns", |x, m| m.column(0) + m.row(1).transpose() + m.fixed_view::<3, 1>(0, 2) + x),
        ("assignments", |mut x, m| {
            x += m * x;
            x -= x;
            x *= m[(0, 0)];
            x /= m[(1, 1)];
            x
        }),
        ("gemv with symbols", |x, m| {
            let mut y = x;
            y.gemv(x[0], &m, &x, Expr::lit(1.0));
            y.gemv(x[1], &m, &x, Expr::lit(0.0));
            y
        }),
        ("gemm with symbols", |x, m| {
            let mut n = m;
            n.gemm(x[0], &m, &m, Expr::lit(0.0));
            n.gemm_tr(Expr::lit(1.0), &m, &m, Expr::lit(1.0));
            n * x
        }),
        ("axpy", |x, m| {
            let mut y = x;
            y.axpy(m[0], &x, Expr::lit(1.0));
            y
        }),
        ("ger", |x, m| {
            let mut n = m;
            n.ger(x[0], &x, &x, Expr::lit(1.0));
            n * x
        }),
        ("kronecker", |x, m| m.kronecker(&m).fixed_view::<3, 1>(0, 0) + x),
        ("sizes beyond three", |x, m| {
            let big = SMatrix::<Expr, 9, 9>::from_fn(|i, j| m[(i % 3, j % 3)]);
            let four = Matrix4::from_fn(|i, j| m[(i % 3, j % 3)]);
            let two = Matrix2::new(x[0], x[1], x[2], x[0]);
            let scale = (big * big)[(7, 8)] + (four * four * four.column(0))[3] + (two * two.transpose())[(0, 1)];
            x * scale
        }),
        ("map, zip_map, fold", |x, m| {
            x.map(|a| a * a).zip_map(&(m * x), |a, b| a + b) * x.fold(Expr::lit(0.0), |a, b| a + b)
        }),
    ];
    for (name, work) in works {
        if let Err(error) = text(|x, m, _| (work(x, m), m)) {
            panic!("{name}: {error}");
        }
    }
}
