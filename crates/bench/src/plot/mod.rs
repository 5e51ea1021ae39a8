//! How is a figure of several lines drawn, as a file that any browser shows?
//!
//! A [`Chart`] is written as SVG by its `Display`: two axes, linear or logarithmic, lines with points, and a
//! legend. Text is left to the fonts of whoever looks at it.

mod axis;

use std::fmt::{self, Display, Formatter};

pub use axis::Axis;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 500.0;
/// Left, right (with the legend), top and bottom of the plot.
const LEFT: f64 = 84.0;
const RIGHT: f64 = WIDTH - 190.0;
const TOP: f64 = 72.0;
const BOTTOM: f64 = HEIGHT - 64.0;
/// Colours that are told apart by whoever sees fewer (Okabe and Ito).
const COLOURS: [&str; 7] = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
];
/// Points beyond this number are not marked one by one.
const MOST_MARKS: usize = 20;

/// A line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What the legend says; one without a name is not in it.
    pub name: String,
    /// Its points, in the order of x.
    pub points: Vec<(f64, f64)>,
    /// Lines of one number have one colour.
    pub colour: usize,
    /// Whether it is drawn in dashes.
    pub is_dashed: bool,
}

/// Lines over two axes.
///
/// ```
/// use jindou_bench::plot::{Axis, Chart, Series};
///
/// let chart = Chart {
///     title: "Latency by rate".to_owned(),
///     subtitle: "one thread".to_owned(),
///     x: Axis::log("rate, tuples/s"),
///     y: Axis::log("latency, us"),
///     series: vec![Series {
///         name: "L1".to_owned(),
///         points: vec![(33_000.0, 5.0), (67_000.0, 6.0)],
///         colour: 0,
///         is_dashed: false,
///     }],
/// };
/// assert!(chart.to_string().starts_with("<svg "));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// How that was measured.
    pub subtitle: String,
    /// The axis from left to right,
    pub x: Axis,
    /// and that from the bottom up.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

impl Display for Chart {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x = self.x.over(points().map(|point| point.0), (LEFT, RIGHT));
        let y = self.y.over(points().map(|point| point.1), (BOTTOM, TOP));
        writeln!(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"Helvetica, Arial, sans-serif\">"
        )?;
        writeln!(f, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>")?;
        write_text(
            f,
            (LEFT, 30.0),
            "font-size=\"18\" font-weight=\"bold\"",
            &self.title,
        )?;
        write_text(
            f,
            (LEFT, 52.0),
            "font-size=\"12\" fill=\"#555\"",
            &self.subtitle,
        )?;
        write_grid(f, &x, &y)?;
        self.write_labels(f)?;
        for series in &self.series {
            series.write(f, &x, &y)?;
        }
        self.write_legend(f)?;
        writeln!(f, "</svg>")
    }
}

impl Chart {
    fn write_labels(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let middle = f64::midpoint(LEFT, RIGHT);
        let style = "font-size=\"13\" text-anchor=\"middle\"";
        write_text(f, (middle, HEIGHT - 20.0), style, &self.x.label)?;
        let middle = f64::midpoint(TOP, BOTTOM);
        let style = format!("{style} transform=\"rotate(-90 22 {middle})\"");
        write_text(f, (22.0, middle), &style, &self.y.label)
    }

    fn write_legend(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let left = RIGHT + 18.0;
        let named = self.series.iter().filter(|series| !series.name.is_empty());
        for (number, series) in named.enumerate() {
            let y = TOP + 10.0 + 22.0 * number as f64;
            writeln!(
                f,
                "<line x1=\"{left}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" {}/>",
                left + 30.0,
                series.stroke()
            )?;
            write_text(f, (left + 38.0, y + 4.0), "font-size=\"12\"", &series.name)?;
        }
        Ok(())
    }
}

impl Series {
    fn stroke(&self) -> String {
        let colour = COLOURS[self.colour % COLOURS.len()];
        let dashes = match self.is_dashed {
            true => " stroke-dasharray=\"6 4\"",
            false => "",
        };
        format!("stroke=\"{colour}\" stroke-width=\"2\" fill=\"none\"{dashes}")
    }

    fn write(&self, f: &mut Formatter<'_>, x: &axis::Placed, y: &axis::Placed) -> fmt::Result {
        let places: Vec<(f64, f64)> = self
            .points
            .iter()
            .map(|point| (x.place(point.0), y.place(point.1)))
            .collect();
        let text: Vec<String> = places
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        writeln!(
            f,
            "<polyline points=\"{}\" {}/>",
            text.join(" "),
            self.stroke()
        )?;
        if places.len() > MOST_MARKS {
            return Ok(());
        }
        let colour = COLOURS[self.colour % COLOURS.len()];
        for (x, y) in places {
            writeln!(
                f,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>"
            )?;
        }
        Ok(())
    }
}

fn write_grid(f: &mut Formatter<'_>, x: &axis::Placed, y: &axis::Placed) -> fmt::Result {
    let small = "font-size=\"12\" fill=\"#333\"";
    for (at, label) in x.ticks() {
        write_line(f, (at, TOP), (at, BOTTOM), "#e3e3e3")?;
        let style = format!("{small} text-anchor=\"middle\"");
        write_text(f, (at, BOTTOM + 18.0), &style, &label)?;
    }
    for (at, label) in y.ticks() {
        write_line(f, (LEFT, at), (RIGHT, at), "#e3e3e3")?;
        let style = format!("{small} text-anchor=\"end\"");
        write_text(f, (LEFT - 8.0, at + 4.0), &style, &label)?;
    }
    write_line(f, (LEFT, BOTTOM), (RIGHT, BOTTOM), "#333")?;
    write_line(f, (LEFT, TOP), (LEFT, BOTTOM), "#333")
}

fn write_line(
    f: &mut Formatter<'_>,
    from: (f64, f64),
    to: (f64, f64),
    colour: &str,
) -> fmt::Result {
    writeln!(
        f,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>",
        from.0, from.1, to.0, to.1
    )
}

fn write_text(f: &mut Formatter<'_>, at: (f64, f64), style: &str, text: &str) -> fmt::Result {
    write!(f, "<text x=\"{:.1}\" y=\"{:.1}\" {style}>", at.0, at.1)?;
    for letter in text.chars() {
        match letter {
            '<' => f.write_str("&lt;")?,
            '>' => f.write_str("&gt;")?,
            '&' => f.write_str("&amp;")?,
            other => write!(f, "{other}")?,
        }
    }
    writeln!(f, "</text>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_lies_within_the_plot() {
        let series = |colour, is_dashed, points: &[(f64, f64)]| Series {
            name: format!("<{colour}>"),
            points: points.to_vec(),
            colour,
            is_dashed,
        };
        let chart = Chart {
            title: "a & b".to_owned(),
            subtitle: String::new(),
            x: Axis::log("x"),
            y: Axis::linear("y"),
            series: vec![
                series(0, false, &[(1.0, 0.0), (10.0, 50.0)]),
                series(9, true, &[(0.0, 3.0), (70_000.0, 100.0)]),
            ],
        };
        let text = chart.to_string();
        assert!(
            text.contains("a &amp; b") && text.contains("&lt;9&gt;"),
            "{text}"
        );
        assert!(text.contains("stroke-dasharray") && text.ends_with("</svg>\n"));
        let mut circles = 0;
        for circle in text.lines().filter(|line| line.starts_with("<circle")) {
            let number = |name: &str| -> f64 {
                let (_, rest) = circle.split_once(name).unwrap();
                rest.split('"').nth(1).unwrap().parse().unwrap()
            };
            assert!((LEFT..=RIGHT).contains(&number("cx=")), "{circle}");
            assert!((TOP..=BOTTOM).contains(&number("cy=")), "{circle}");
            circles += 1;
        }
        assert_eq!(circles, 4);
    }
}
