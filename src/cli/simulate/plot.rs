//! The figures as a drawing: useful work, late requests and the fate of t0, against the load.
//!
//! Plain SVG by hand: three charts of lines with the load on a logarithmic axis, and a legend.
//! Lengths are pixels of the drawing.

use std::fmt::Write;

use super::report::{Report, Steady};

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 240.0;
const MARGIN: f64 = 50.0;
/// Loads at the ends of the axis, in capacities.
const LOAD_LEAST: f64 = 0.8;
const LOAD_MOST: f64 = 33.0;
/// One for each rejector; told apart by those who do not see red or green.
const COLOURS: [&str; 7] =
    ["#0072b2", "#e69f00", "#56b4e9", "#cc79a7", "#009e73", "#d55e00", "#555555"];

struct Chart {
    title: &'static str,
    figure: fn(&Steady) -> f64,
    /// What the upper end of the axis stands for.
    most: f64,
}

const CHARTS: [Chart; 3] = [
    Chart { title: "useful work", figure: |row| row.useful, most: 1.0 },
    Chart { title: "late for each served", figure: |row| row.late_per_served, most: 2.0 },
    Chart { title: "t0 served", figure: |row| row.served_share[0], most: 1.0 },
];

/// The drawing.
pub(super) fn svg(report: &Report) -> String {
    let (width, height) = (CHARTS.len() as f64 * (WIDTH + MARGIN) + MARGIN, HEIGHT + 110.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let mut names: Vec<&str> = report.steady.iter().map(|row| row.rejector).collect();
    names.dedup();
    for (number, chart) in CHARTS.iter().enumerate() {
        let left = MARGIN + number as f64 * (WIDTH + MARGIN);
        axes(&mut svg, chart, left);
        for (name, colour) in names.iter().zip(COLOURS) {
            let rows = report.steady.iter().filter(|row| row.rejector == *name);
            let points: Vec<String> =
                rows.map(|row| point(left, row.load, (chart.figure)(row) / chart.most)).collect();
            line(&mut svg, &points, colour);
        }
    }
    legend(&mut svg, &names);
    svg + "</svg>\n"
}

fn axes(svg: &mut String, chart: &Chart, left: f64) {
    let (top, bottom) = (30.0, 30.0 + HEIGHT);
    let right = left + WIDTH;
    write_to(
        svg,
        format_args!(
            "<text x=\"{left}\" y=\"18\" font-weight=\"bold\">{}</text>\n\
         <path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#000\"/>\n",
            chart.title
        ),
    );
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let (y, x) = (bottom - share * HEIGHT, left - 6.0);
        write_to(
            svg,
            format_args!(
                "<text x=\"{x}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n\
             <path d=\"M{left} {y:.1}H{right}\" stroke=\"#ddd\"/>\n",
                y + 4.0,
                share * chart.most
            ),
        );
    }
    for load in [1.0, 2.0, 5.0, 10.0, 30.0] {
        write_to(
            svg,
            format_args!(
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{load}x</text>\n",
                across(left, load),
                bottom + 16.0
            ),
        );
    }
}

fn across(left: f64, load: f64) -> f64 {
    left + WIDTH * (load / LOAD_LEAST).ln() / (LOAD_MOST / LOAD_LEAST).ln()
}

/// A point of a line; what is beyond the axis is drawn at its end.
fn point(left: f64, load: f64, share: f64) -> String {
    format!("{:.1},{:.1}", across(left, load), 30.0 + HEIGHT * (1.0 - share.clamp(0.0, 1.0)))
}

fn line(svg: &mut String, points: &[String], colour: &str) {
    write_to(
        svg,
        format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n",
            points.join(" ")
        ),
    );
}

fn legend(svg: &mut String, names: &[&str]) {
    let y = HEIGHT + 80.0;
    for (number, (name, colour)) in names.iter().zip(COLOURS).enumerate() {
        let x = MARGIN + number as f64 * 130.0;
        write_to(
            svg,
            format_args!(
                "<path d=\"M{x} {y}h24\" stroke=\"{colour}\" stroke-width=\"3\"/>\n\
             <text x=\"{}\" y=\"{}\">{name}</text>\n",
                x + 30.0,
                y + 4.0
            ),
        );
    }
}

fn write_to(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("a string takes what it is given");
}

#[cfg(test)]
mod tests {
    use crate::load::{Measured, Shield};

    use super::*;

    #[test]
    fn every_rejector_has_a_line_in_every_chart_within_the_drawing() {
        let mut report = Report::new(1, 2);
        for shield in Shield::ALL {
            for load in [0.9, 30.0] {
                report.steady.push(Steady::new(shield, load, &Measured::default()));
            }
        }
        let svg = svg(&report);
        assert_eq!(svg.matches("<polyline").count(), Shield::ALL.len() * CHARTS.len());
        assert_eq!(svg.matches("feed_forward").count(), 1);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(point(0.0, LOAD_MOST, 5.0), format!("{WIDTH:.1},30.0"));
    }
}
