//! PageRank to a tolerance.

use super::*;

vertex! { pub struct Page<R> { shared rank: R, change: R } }
record! { pub struct Largest<R> { change: R } }
record! { pub struct Surfing<R> { damping: R, pages: R } }
stars! {
    /// To every page that links here, or is linked from here: the share of its rank that comes from there.
    Links[1]: R;
}

#[derive(Clone)]
struct PageRank {
    links: Vec<[u32; 2]>,
    pages: usize,
    tolerance: f64,
}

kernels! {
    for PageRank: Page, Surfing, Largest;
    update Surf |p, own, around| {
        let inflow = around.sum(Links, |[other], share| other.rank * share);
        let rank = (R::lit(1.0) - p.damping) / p.pages + p.damping * inflow;
        Page { rank, change: (rank - own.rank).abs() }
    };
    max Change |_, own, _| own.change;
    sum Total("total", "") |_, own, _| own.rank;
    test Settled[tolerance] |p| p.globals.change.at_most(tolerance);
}

impl Program for PageRank {
    fn parameters(&self, _: f64) -> Surfing<f64> {
        Surfing { damping: 0.85, pages: self.pages as f64 }
    }
    fn stars(&self, _: &Mesh, stars: &mut Stars) -> Result<()> {
        let mut out = vec![0.0; self.pages];
        self.links.iter().for_each(|&[from, _]| out[from as usize] += 1.0);
        stars.add(Links, self.links.clone(), move |i: Incidence<2>| match i.corner {
            0 => 0.0,
            _ => 1.0 / out[i.vertices[1] as usize],
        });
        Ok(())
    }
    fn initial(&self, _: &Mesh, _: u32) -> Page<f64> {
        Page { rank: 1.0 / self.pages as f64, change: 0.0 }
    }
    fn globals(&self) -> Largest<f64> {
        Largest { change: 1.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.until(Settled { tolerance: self.tolerance }, 500, |stages| {
            stages.jacobi(Surf, 1);
            stages.reduce(Change, |g| &mut g.change);
        });
    }
}

#[test]
fn page_rank_settles_at_the_solution_of_its_equations() {
    let mesh = generate("random:60", 5).unwrap();
    let pages = mesh.points().len();
    let n = pages as u32;
    // Each page links to the next, and to a few others; none twice.
    let links: Vec<[u32; 2]> = (0..n)
        .flat_map(|v| [(v + 1) % n, (7 * v + 3) % n, (v * v + 5) % n].map(|u| [v, u]))
        .filter(|[v, u]| v != u)
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    let ranked = |tolerance| PageRank { links: links.clone(), pages, tolerance };
    let mut simulation = after(1, &mesh, &ranked(1e-15), Order::BLOCKED);
    on_gpu(1, &mesh, &ranked(1e-6), Order::BLOCKED, 1e-4);
    assert!((simulation.metric("total").unwrap() - 1.0).abs() < 1e-12);
    assert!((30..100).contains(&simulation.rounds()), "{}", simulation.rounds());
    let out = |v: u32| links.iter().filter(|link| link[0] == v).count() as f64;
    let mut a: Vec<Vec<f64>> = (0..pages).map(|v| (0..pages).map(|u| f64::from(u8::from(u == v))).collect()).collect();
    links.iter().for_each(|&[from, to]| a[to as usize][from as usize] -= 0.85 / out(from));
    let exact = solve(a, vec![0.15 / pages as f64; pages]);
    assert!(distance(&values(&simulation, "rank"), &exact) < 1e-13);
}
