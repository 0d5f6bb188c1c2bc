use super::picture::decode;
use super::*;

const BLUE: [u8; 3] = [60, 100, 190];
const SIZE: Size = Size { width: 160, height: 120 };

/// A square sheet of n × n points over [0, 1]², at the height that `height` gives.
fn sheet(n: usize, height: impl Fn(f64, f64) -> f64) -> (Vec<[f64; 3]>, Vec<[u32; 3]>) {
    let at = |i: usize| i as f64 / (n - 1) as f64;
    let points = (0..n * n).map(|v| [at(v % n), at(v / n), height(at(v % n), at(v / n))]).collect();
    let square = |s: usize| {
        let v = (s / (n - 1) * n + s % (n - 1)) as u32;
        let n = n as u32;
        [[v, v + 1, v + n + 1], [v, v + n + 1, v + n]]
    };
    (points, (0..(n - 1) * (n - 1)).flat_map(square).collect())
}

fn at(picture: &Picture, x: f64, y: f64) -> [u8; 3] {
    let (x, y) = ((x * f64::from(picture.width())) as usize, (y * f64::from(picture.height())) as usize);
    let i = 3 * (y * picture.width() as usize + x);
    [picture.rgb[i], picture.rgb[i + 1], picture.rgb[i + 2]]
}

fn unit_box() -> [[f64; 3]; 2] {
    [[0.0; 3], [1.0; 3]]
}

#[test]
fn a_surface_has_its_color_and_the_background_stays() {
    let (points, triangles) = sheet(4, |_, _| 0.0);
    let scene = Scene { points: &points, triangles: &triangles, coloring: Coloring::Plain(BLUE), ..Scene::default() };
    let picture = render(&scene, &Camera::framing([[0.0; 3], [1.0, 1.0, 0.0]], Up::Z), SIZE);
    let [red, green, blue] = at(&picture, 0.5, 0.5);
    assert!(blue > green && green > red && blue > 130, "{red} {green} {blue}");
    assert!(at(&picture, 0.02, 0.5).iter().all(|&x| x > 200));
}

#[test]
fn a_field_seen_from_above_has_the_colors_of_its_map() {
    let (points, triangles) = sheet(9, |_, _| 0.0);
    let values: Vec<f64> = points.iter().map(|p| p[0]).collect();
    let coloring = Coloring::Scalar { label: "x (m)", values: &values, range: [0.0, 1.0], map: ColorMap::Viridis };
    let scene = Scene { points: &points, triangles: &triangles, coloring, ..Scene::default() };
    let picture = render(&scene, &Camera::framing([[0.0; 3], [1.0, 1.0, 0.0]], Up::Z), SIZE);
    for x in [0.1, 0.5, 0.9] {
        // Any pixel of the row with about that color will do: the margins are not the business of this test.
        let expected = ColorMap::Viridis.color(x as f32).map(|x| x * 255.0);
        let hit = (0..SIZE.width).any(|i| {
            let color = at(&picture, f64::from(i) / f64::from(SIZE.width), 0.5);
            (0..3).all(|k| (f32::from(color[k]) - expected[k]).abs() < 22.0)
        });
        assert!(hit, "{expected:?} at {x}");
    }
}

#[test]
fn the_nearer_triangle_hides_the_farther() {
    // Two squares seen from above: the upper one is listed first, then last.
    let square = |z: f64| [[0.0, 0.0, z], [1.0, 0.0, z], [0.0, 1.0, z], [1.0, 1.0, z]];
    let points = [square(1.0), square(0.0)].concat();
    let faces = |v: u32| [[v, v + 1, v + 2], [v + 1, v + 3, v + 2]];
    let values = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    let camera = Camera::framing(unit_box(), Up::Z).seen_from(-90.0, 90.0);
    for triangles in [[faces(0), faces(4)].concat(), [faces(4), faces(0)].concat()] {
        let coloring = Coloring::Scalar { label: "", values: &values, range: [0.0, 1.0], map: ColorMap::Coolwarm };
        let scene = Scene { points: &points, triangles: &triangles, coloring, ..Scene::default() };
        let [red, _, blue] = at(&render(&scene, &camera, SIZE), 0.4, 0.5);
        assert!(red > blue + 50, "{red} {blue}");
    }
}

#[test]
fn the_face_of_a_cut_has_the_colors_of_its_map_in_the_shade_too() {
    // A wall with its back to the lamp, under a roof.
    let points = [[0.9, 0.0, 0.0], [0.9, 1.0, 0.0], [0.9, 1.0, 1.0], [0.9, 0.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]];
    let wall = [[0, 1, 2], [0, 2, 3]];
    let roof = [[2, 3, 4], [2, 4, 5]];
    let (values, expected) = ([0.5; 6], ColorMap::Viridis.color(0.5).map(|x| x * 255.0));
    let off = |triangles: &[[u32; 3]], faces: &[[u32; 3]]| {
        let coloring = Coloring::Scalar { label: "", values: &values, range: [0.0, 1.0], map: ColorMap::Viridis };
        let scene = Scene { points: &points, triangles, faces, coloring, ..Scene::default() };
        let color = at(&render(&scene, &Camera::framing(unit_box(), Up::Z).seen_from(0.0, 0.0), SIZE), 0.4, 0.6);
        (0..3).map(|k| (f32::from(color[k]) - expected[k]).abs()).fold(0.0, f32::max)
    };
    let (face, surface) = (off(&roof, &wall), off(&[wall, roof].concat(), &[]));
    assert!(face < 32.0 && face < 0.6 * surface, "{face} of 256 off, and {surface} where it is no face");
}

#[test]
fn a_ball_throws_a_shadow_on_the_ground() {
    let props = |ball: bool| {
        let ground = Prop::Ground { height: 0.0 };
        let center = [0.5; 3];
        if ball { vec![ground, Prop::Ball { center, radius: 0.4 }] } else { vec![ground] }
    };
    let camera = Camera::framing(unit_box(), Up::Z);
    let light = |ball| {
        let picture = render(&Scene { props: props(ball), ..Scene::default() }, &camera, SIZE);
        picture.rgb.chunks_exact(3).skip(160 * 95).map(|p| u32::from(p[1])).sum::<u32>()
    };
    assert!(light(true) < light(false) - 1000);
}

#[test]
fn the_ground_hides_what_is_below_it() {
    let (points, triangles) = sheet(4, |_, _| 0.0);
    let camera = Camera::framing(unit_box(), Up::Z);
    let blue = |height: f64| {
        let props = vec![Prop::Ground { height }];
        let coloring = Coloring::Plain([20, 20, 250]);
        let scene = Scene { points: &points, triangles: &triangles, coloring, props, ..Scene::default() };
        render(&scene, &camera, SIZE).rgb.chunks_exact(3).filter(|p| p[2] > p[0].saturating_add(60)).count()
    };
    assert!(blue(-0.1) > 1000);
    assert_eq!(blue(0.1), 0);
}

#[test]
fn lines_dots_and_text_leave_ink() {
    let points = [[0.0, 0.5, 0.0], [1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.5, 0.0, 0.0]];
    let camera = Camera::framing([[0.0; 3], [1.0, 1.0, 0.0]], Up::Z);
    let bare = render(&Scene::default(), &camera, SIZE);
    let ink = |scene: Scene| {
        let picture = render(&scene, &camera, SIZE);
        let same = picture.rgb.chunks_exact(3).zip(bare.rgb.chunks_exact(3)).filter(|(a, b)| a == b).count();
        (160 * 120 - same, at(&picture, 0.5, 0.5))
    };
    let (dots, middle) = ink(Scene { points: &points, ..Scene::default() });
    assert!((20..400).contains(&dots) && middle == at(&bare, 0.5, 0.5), "{dots}");
    let (lines, middle) = ink(Scene { points: &points, edges: &[[0, 1], [2, 3]], ..Scene::default() });
    assert!(lines > dots + 200 && middle != at(&bare, 0.5, 0.5), "{lines}");
    assert!(ink(Scene { caption: "t = 1 s", ..Scene::default() }).0 > 50);
}

#[test]
fn threads_do_not_change_a_byte() {
    let (points, triangles) = sheet(40, |x, y| 0.2 * (9.0 * x).sin() * (7.0 * y).cos());
    let values: Vec<f64> = points.iter().map(|p| p[2]).collect();
    let coloring = Coloring::Scalar { label: "z (m)", values: &values, range: [-0.2, 0.2], map: ColorMap::Coolwarm };
    let scene = Scene {
        points: &points,
        triangles: &triangles,
        edges: &[[0, 1599], [39, 1560]],
        coloring,
        props: vec![Prop::Ground { height: -0.3 }, Prop::Ball { center: [0.5, 0.5, 0.4], radius: 0.2 }],
        caption: "sheet  t = 0.5 s",
        ..Scene::default()
    };
    let camera = Camera::framing([[0.0, 0.0, -0.3], [1.0, 1.0, 0.6]], Up::Z);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let picture = render(&scene, &camera, SIZE);
            let folder = tempfile::tempdir().unwrap();
            let mut animation = Animation::new(4);
            animation.push(&vec![picture.clone(); 3]).unwrap();
            animation.finish(&folder.path().join("a.gif")).unwrap();
            (picture, std::fs::read(folder.path().join("a.gif")).unwrap())
        })
    };
    assert!(run(1) == run(4));
}

#[test]
fn an_exposure_takes_the_colors_of_any_numbers() {
    let (points, triangles) = sheet(20, |x, y| 0.2 * (9.0 * x).sin() * (7.0 * y).cos());
    let kinds = [("one".to_string(), BLUE), ("other".to_string(), [200, 90, 30])];
    let scalar = |values| Coloring::Scalar { label: "z (m)", values, range: [-0.2, 0.2], map: ColorMap::Coolwarm };
    let [rising, falling] = [1.0, -1.0].map(|sign| points.iter().map(|p| sign * p[2]).collect::<Vec<f64>>());
    let of: Vec<u32> = (0..400).map(|v| v / 7 % 3).collect();
    let camera = Camera::framing([[0.0, 0.0, -0.3], [1.0, 1.0, 0.6]], Up::Z);
    let scene = |coloring, caption| Scene {
        points: &points,
        triangles: &triangles[40..],
        faces: &triangles[..40],
        edges: &[[0, 399], [19, 380]],
        coloring,
        props: vec![Prop::Ground { height: -0.3 }, Prop::Ball { center: [0.5, 0.5, 0.4], radius: 0.2 }],
        caption,
    };
    let cases = [
        [Coloring::Plain(BLUE), Coloring::Plain(BLUE)],
        [scalar(&rising), scalar(&falling)],
        [scalar(&[]), scalar(&[f64::NAN; 400])],
        [Coloring::Kinds { of: &[], kinds: &kinds }, Coloring::Kinds { of: &of, kinds: &kinds }],
    ];
    for [exposed, coloring] in cases {
        let exposure = Exposure::new(&scene(exposed, "t = 0 s"), &camera, SIZE);
        let scene = scene(coloring, "t = 1 s");
        assert!(exposure.develop(&scene) == render(&scene, &camera, SIZE));
    }
}

#[test]
fn a_png_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("picture.png");
    let scene = Scene { caption: "nothing", ..Scene::default() };
    let picture = render(&scene, &Camera::framing(unit_box(), Up::Y), SIZE);
    picture.write_png(&path).unwrap();
    picture.write_png(&path).unwrap();
    assert_eq!(decode(&std::fs::read(&path).unwrap()).unwrap(), picture.rgb);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");

    let error = picture.write_png(&folder.path().join("no/such.png")).unwrap_err();
    assert!(error.to_string().contains("such.png"), "{error}");
}

#[test]
fn a_gif_has_all_frames_and_about_their_colors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.gif");
    let mut animation = Animation::new(5);
    let mut last = None;
    for i in 0..20 {
        let (points, triangles) = sheet(12, |x, _| 0.3 * (6.0 * x + f64::from(i / 2)).sin()); // every state twice
        let scene = Scene { points: &points, triangles: &triangles, ..Scene::default() };
        let picture = render(&scene, &Camera::framing([[0.0, 0.0, -0.3], [1.0, 1.0, 0.3]], Up::Z), SIZE);
        animation.push(std::slice::from_ref(&picture)).unwrap();
        last = Some(picture);
    }
    assert_eq!(animation.len(), 20);
    let other = render(&Scene::default(), &Camera::framing(unit_box(), Up::Z), Size { width: 10, height: 10 });
    assert!(animation.push(&[other]).unwrap_err().to_string().contains("160 × 120"));
    animation.finish(&path).unwrap();

    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    let mut reader = options.read_info(std::fs::File::open(&path).unwrap()).unwrap();
    assert_eq!((reader.width(), reader.height()), (160, 120));
    let mut screen = vec![0u8; 3 * 160 * 120];
    let mut frames = 0;
    while let Some(frame) = reader.read_next_frame().unwrap() {
        assert_eq!(frame.delay, 5);
        for (i, p) in frame.buffer.chunks_exact(4).enumerate().filter(|(_, p)| p[3] > 0) {
            let (x, y) =
                (i % frame.width as usize + frame.left as usize, i / frame.width as usize + frame.top as usize);
            screen[3 * (y * 160 + x)..][..3].copy_from_slice(&p[..3]);
        }
        frames += 1;
    }
    assert_eq!(frames, 20);
    let expected = last.unwrap().rgb;
    let off: u64 = screen.iter().zip(&expected).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    assert!((off as f64) < 4.0 * expected.len() as f64, "mean error {}", off as f64 / expected.len() as f64);
}

#[test]
fn an_animation_without_frames_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Animation::new(4).is_empty());
    assert!(Animation::new(4).finish(&folder.path().join("none.gif")).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn degenerate_scenes_are_drawn_without_panic() {
    let nan = f64::NAN;
    let points: [&[[f64; 3]]; 6] = [
        &[],
        &[[1.0, 2.0, 3.0]],
        &[[nan; 3], [0.0; 3], [f64::INFINITY, 0.0, 0.0], [1.0; 3]],
        &[[1e300, 0.0, 0.0], [-1e300, 1e300, 0.0], [0.0, 0.0, 1e300]],
        &[[1e-310, 0.0, 0.0], [0.0, 1e-310, 0.0], [0.0; 3]],
        &[[0.0, 0.0, 0.0], [0.0, -1e5, 3.0], [0.0, -40.0, 3.0], [5.0, 5.0, 5.0]],
    ];
    let boxes = [unit_box(), [[nan; 3]; 2], [[3.0; 3]; 2], [[f64::MIN; 3], [f64::MAX; 3]], [[0.0; 3], [1e-320; 3]]];
    let values = [nan, 1.0, f64::INFINITY];
    for points in points {
        for bounds in boxes {
            for (range, map) in
                [([0.0, 1.0], ColorMap::Plasma), ([1.0, 1.0], ColorMap::Coolwarm), ([nan, 0.0], ColorMap::Viridis)]
            {
                let scene = Scene {
                    points,
                    triangles: if range[0] == 1.0 { &[] } else { &[[0, 1, 2], [2, 2, 2], [1, 2, 3], [7, 8, 9]] },
                    edges: &[[0, 0], [0, 1], [2, 1], [5, 0]],
                    coloring: Coloring::Scalar { label: "?\n\u{1F9F6}", values: &values, range, map },
                    props: vec![
                        Prop::Ground { height: bounds[0][2] },
                        Prop::Ball { center: bounds[0], radius: -1.0 },
                        Prop::Ball { center: [0.0; 3], radius: 1e9 },
                    ],
                    faces: &[[0, 1, 2], [9, 9, 9]],
                    caption: "degenerate",
                };
                for up in [Up::Z, Up::Y] {
                    let camera = Camera::framing(bounds, up).seen_from(nan, 20.0);
                    render(&scene, &camera, Size { width: 24, height: 18 });
                }
            }
        }
    }
    let empty = render(&Scene::default(), &Camera::framing(unit_box(), Up::Z), Size { width: 0, height: 0 });
    assert_eq!((empty.width(), empty.height()), (1, 1));
}
