//! The chart components with input that a run file can bring about: nothing at all, one point, zeros, numbers
//! that are none, texts that try to break out. Colleagues of every suite rely on it.

use sqlitmus_core::statistics::Interval;
use sqlitmus_report::svg::{
    Axis, Bar, Bars, BarsBody, BarsRow, Cell, Chart, CrossingMark, Data, Frame, Further, HeatMap,
    HeatPanel, LineChart, Mark, Point, RatioScale, RoundMark, Rounds, RoundsRow, Scale, Scatter,
    ScatterPoint, Series, Shape, Stack, Stacks, in_page, plain, standalone,
};

const HOSTILE: &str = "</svg><script>alert(\"1\")</script> & 'x' データベース";

const NUMBERS: [f64; 9] = [
    0.0,
    -1.0,
    1.0,
    1e-300,
    1e300,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    2.5,
];

/// Lists of numbers: none, one of each kind, all of them, all the same.
fn lists() -> Vec<Vec<f64>> {
    let mut lists = vec![
        Vec::new(),
        NUMBERS.to_vec(),
        vec![0.0; 3],
        vec![f64::NAN; 2],
    ];
    lists.extend(NUMBERS.map(|number| vec![number]));
    lists
}

fn charts(numbers: &[f64]) -> Vec<Box<dyn Chart>> {
    let title = || HOSTILE.to_owned();
    let points = || {
        let points = numbers.iter().map(|number| Point {
            x: *number,
            y: *number,
            interval: Some((*number, *number)),
        });
        points.collect::<Vec<_>>()
    };
    let mut charts: Vec<Box<dyn Chart>> = Vec::new();
    for scale in [Scale::Linear, Scale::Logarithmic, Scale::Nines] {
        charts.push(Box::new(LineChart {
            id: "line".to_owned(),
            title: title(),
            x: Axis::new(HOSTILE, scale, plain),
            y: Axis::new(HOSTILE, scale, plain),
            reference: Some((1.0, title())),
            marked: Vec::new(),
            crossings: numbers
                .iter()
                .map(|number| CrossingMark {
                    series: 0,
                    x: *number,
                    interval: (*number, *number),
                })
                .collect(),
            series: (0..10)
                .map(|index| Series {
                    label: title(),
                    strong: index == 0,
                    published: index == 1,
                    points: points(),
                })
                .collect(),
        }));
        charts.push(Box::new(Scatter {
            id: "scatter".to_owned(),
            title: title(),
            x: Axis::new(HOSTILE, scale, plain),
            y: Axis::new(HOSTILE, scale, plain),
            further: Some(Further {
                area: title(),
                tiers: vec![title(), title()],
            }),
            points: (0usize..)
                .zip(numbers)
                .map(|(place, number)| ScatterPoint {
                    label: title(),
                    strong: true,
                    x: *number,
                    y: 1.0,
                    area: Some(*number),
                    tier: place % 2,
                })
                .collect(),
        }));
    }
    charts.push(Box::new(HeatMap {
        id: "heat".to_owned(),
        title: title(),
        rows_heading: title(),
        columns_heading: title(),
        rows: vec![title(), "8192".to_owned()],
        columns: numbers.iter().map(|number| plain(*number)).collect(),
        panels: vec![
            HeatPanel {
                title: title(),
                cells: vec![
                    numbers
                        .iter()
                        .map(|number| {
                            Some(Cell {
                                ratio: *number,
                                text: plain(*number),
                                hover: title(),
                            })
                        })
                        .collect(),
                ],
            },
            HeatPanel {
                title: title(),
                cells: Vec::new(),
            },
        ],
    }));
    charts.push(Box::new(Stacks {
        id: "stacks".to_owned(),
        title: title(),
        heading: title(),
        format: plain,
        parts: vec![title(), "rest".to_owned()],
        rest: Some(1),
        as_shares: numbers.len() % 2 == 1,
        rows: vec![Stack {
            label: title(),
            strong: true,
            sizes: numbers.to_vec(),
        }],
    }));
    charts.push(Box::new(rounds(numbers)));
    charts.push(Box::new(bars(numbers)));
    charts
}

fn rounds(numbers: &[f64]) -> Rounds {
    let row = |middle: Option<f64>| RoundsRow {
        label: HOSTILE.to_owned(),
        strong: false,
        middle,
        marks: numbers
            .iter()
            .enumerate()
            .map(|(round, number)| RoundMark {
                round: if round == 1 { u32::MAX } else { round as u32 },
                value: Some(*number),
                left_out: (round == 2).then(|| HOSTILE.to_owned()),
            })
            .collect(),
    };
    Rounds {
        id: "rounds".to_owned(),
        title: HOSTILE.to_owned(),
        unit: "ns".to_owned(),
        format: plain,
        rows: vec![row(None), row(Some(0.0)), row(numbers.first().copied())],
    }
}

fn bars(numbers: &[f64]) -> Bars {
    let mark = |number: f64, shape: Shape| Mark {
        ratio: number,
        interval: Some(Interval {
            low: number,
            high: number,
        }),
        shape,
        class: "good",
        text: HOSTILE.to_owned(),
    };
    let row = |body: BarsBody| BarsRow {
        label: HOSTILE.to_owned(),
        strong: true,
        hover: HOSTILE.to_owned(),
        tags: vec![("run", "1".to_owned())],
        body,
    };
    let figures = numbers.iter().map(|number| {
        row(BarsBody::Figures {
            bar: Bar {
                solid: *number,
                light: *number,
                figure: HOSTILE.to_owned(),
                series: Some(11),
            },
            marks: vec![vec![
                mark(*number, Shape::Ours),
                mark(*number, Shape::Settled),
                mark(*number, Shape::Published),
                mark(*number, Shape::Itself),
            ]],
        })
    });
    let others = [
        row(BarsBody::Heading),
        row(BarsBody::Trouble {
            text: HOSTILE.to_owned(),
            failed: true,
        }),
    ];
    Bars {
        id: "bars".to_owned(),
        title: HOSTILE.to_owned(),
        bars: HOSTILE.to_owned(),
        scales: vec![RatioScale {
            heading: HOSTILE.to_owned(),
            noise_floor: numbers.first().copied(),
        }],
        rows: others.into_iter().chain(figures).collect(),
        data: Data::default(),
    }
}

#[test]
fn no_input_brings_a_chart_down_or_into_disorder() {
    for numbers in lists() {
        for chart in charts(&numbers) {
            for text in [
                in_page(chart.as_ref()).into_string(),
                standalone(chart.as_ref()),
            ] {
                assert!(
                    !text.contains("NaN") && !text.contains("inf\""),
                    "{}: {text}",
                    chart.id()
                );
                assert!(!text.contains("<script"), "{}", chart.id());
                let attributes = text.split('"').skip(1).step_by(2);
                for value in
                    attributes.filter(|value| value.starts_with("M") && value.ends_with('Z'))
                {
                    assert!(!value.contains('<'), "{value}");
                }
            }
            assert!(!chart.data().csv().contains("NaN"));
            for frame in [Frame::Wide, Frame::Narrow] {
                let height = chart.draw(frame).height;
                assert!(height.is_finite() && height > 0.0, "{}", chart.id());
            }
        }
    }
}

#[test]
fn every_coordinate_is_inside_its_chart() {
    for numbers in lists() {
        for chart in charts(&numbers) {
            for frame in [Frame::Wide, Frame::Narrow] {
                let drawing = chart.draw(frame);
                let text = drawing.content.into_string();
                for (attribute, most) in [("cx", frame.width()), ("cy", drawing.height)] {
                    for rest in text.split(&format!(" {attribute}=\"")).skip(1) {
                        let value: f64 = rest
                            .split('"')
                            .next()
                            .expect("a value")
                            .parse()
                            .expect("a number");
                        assert!(
                            (-30.0..=most + 1.0).contains(&value),
                            "{}: {attribute} {value}",
                            chart.id()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_file_of_its_own_is_well_formed() {
    for chart in charts(&[1.0, 2.0, 3.0]) {
        let file = standalone(chart.as_ref());
        assert!(file.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns="));
        let mut open = Vec::new();
        for tag in file.split('<').skip(2) {
            let name: String = tag
                .trim_start_matches('/')
                .chars()
                .take_while(char::is_ascii_alphanumeric)
                .collect();
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name), "{}", chart.id());
            } else if !tag.split('>').next().is_some_and(|tag| tag.ends_with('/')) {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "{}: {open:?}", chart.id());
    }
}

#[test]
fn a_heat_map_shows_its_figures_and_the_published_ones_beside() {
    let cell = |ratio: f64| {
        Some(Cell {
            ratio,
            text: plain(ratio),
            hover: plain(ratio),
        })
    };
    let map = HeatMap {
        id: "heat".to_owned(),
        title: "Ratios".to_owned(),
        rows_heading: "page size".to_owned(),
        columns_heading: "blob size".to_owned(),
        rows: vec!["4096".to_owned()],
        columns: vec!["10 kB".to_owned(), "1 MB".to_owned()],
        panels: vec![
            HeatPanel {
                title: "this machine".to_owned(),
                cells: vec![vec![cell(2.1), None]],
            },
            HeatPanel {
                title: "published".to_owned(),
                cells: vec![vec![cell(2.261), cell(0.487)]],
            },
        ],
    };
    let text = in_page(&map).into_string();
    for shown in [
        "this machine",
        "published",
        ">2.1<",
        ">0.487<",
        "4096, 1 MB: not measured",
    ] {
        assert!(text.contains(shown), "{shown}");
    }
    assert!(map.data().csv().contains("published,4096,1 MB,0.487"));
}
