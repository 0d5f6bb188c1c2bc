use super::*;

vertex! {
    struct Numbers<R> {
        x: R,
        y: R,
        n: R::Int,
        bits: R::Int,
        a: [R; 4],
        b: [R; 4],
        c: [R; 4],
        d: [R; 4],
        e: [R; 4],
    }
}
struct Functions;

kernels! {
    for Functions: Numbers;
    map Compute |p, own| {
        let (x, y, n) = (own.x, own.y, own.n);
        let [one, half] = [1.0, 0.5].map(R::lit);
        let int = |of| R::Int::lit(of);
        let size = x.abs() + half;
        let is_low = n.less(int(7)) | n.equals(int(7));
        let mixed = (n.shift_left(3) ^ n.shift_right(1)) | (n & int(5));
        let tenths: R::Int = (x * R::lit(10.0)).to_int();
        let bits = mixed * int(0x0123_4567) + tenths - R::Int::select(!n.equals(int(3)) & is_low, n, int(1));
        Numbers {
            x: one - x * half,
            y: y - R::lit(0.25),
            n: R::Int::select((-n).less(n - int(7)), n - int(7), -n),
            bits,
            a: [x.exp(), size.ln(), x.sin(), y.cos()],
            b: [x.tanh(), y.max(-one).min(one).acos(), y.atan2(x), size.sqrt()],
            c: [size.pow(y), x.powi(5), size.powi(-2), R::lit(2.0).pow(x)],
            d: [x.floor(), x.rem(size), (y / size).floor(), x.sign()],
            e: [
                x.min(y),
                x.max(R::lit(0.25)),
                R::from_int(n * p.step()),
                R::select(!x.less(y) | x.equals(y), R::lit(3.0), -x),
            ],
        }
    };
}

impl Program for Functions {
    fn initial(&self, _: &Mesh, v: u32) -> Numbers<f64> {
        let [x, y] = [f64::from(v % 13) / 4.0 - 1.5, f64::from(v % 7) / 3.0 - 1.0];
        let zeros = [0.0; 4];
        let n = Int((v % 17) as i32 - 8);
        Numbers { x, y, n, bits: Int(0), a: zeros, b: zeros, c: zeros, d: zeros, e: zeros }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.map(Compute);
    }
}

#[test]
fn functions() {
    check("functions", || Functions);
}
