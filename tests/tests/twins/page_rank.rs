use super::*;

vertex! { struct Page<R> { shared share: R, rank: R, change: R, degree: R } }
record! { struct Globals<R> { change: R } }
stars! { Links[1]; }
struct PageRank {
    links: Arc<Vec<[u32; 2]>>,
}

kernels! {
    for PageRank: Page, (), Globals;
    map Divide |_, own| Page { share: own.rank / own.degree, ..own };
    update Gather[jump] |_, own, around| {
        let rank = jump + R::lit(0.85) * around.sum(Links, |[other], ()| other.share);
        Page { rank, change: (rank - own.rank).abs(), ..own }
    };
    sum Change |_, own, _| own.change;
    test Settled |p| p.globals.change.less(R::lit(1e-6));
}

impl Program for PageRank {
    fn stars(&self, _: &Mesh, stars: &mut Stars) -> Result<()> {
        stars.add_directed(Links, self.links.clone(), |_| ());
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Page<f64> {
        let degree = self.links.iter().filter(|link| link[0] == v).count().max(1);
        Page { share: 0.0, rank: 1.0 / 50.0, change: 1.0, degree: degree as f64 }
    }
    fn globals(&self) -> Globals<f64> {
        Globals { change: 1.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.until(Settled, 200, |stages| {
            stages.map(Divide);
            stages.jacobi(Gather { jump: 0.15 / 50.0 }, 1);
            stages.reduce(Change, |g| &mut g.change);
        });
    }
}

#[test]
fn page_rank() {
    let links = (0..50).flat_map(|v: u32| (0..1 + v % 3).map(move |k| [v, (v * v + 3 * k + 1) % 50]));
    let links: Arc<Vec<[u32; 2]>> = Arc::new(links.filter(|[a, b]| a != b).collect());
    let prepare = |_| (Mesh::from_graph(50, links.to_vec()).unwrap(), PageRank { links: links.clone() });
    check_all("page_rank", prepare, |_| Ok(()));
}
