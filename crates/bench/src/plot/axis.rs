//! Where on an axis is a value, and which values are marked there?

/// Marks of a linear axis, about.
const LINEAR_MARKS: f64 = 6.0;

/// An axis of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    is_log: bool,
    /// The values to mark; chosen by what is shown if there are none.
    marks: Vec<f64>,
}

impl Axis {
    /// One on which equal distances are equal differences. It begins at zero.
    #[must_use]
    pub fn linear(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            is_log: false,
            marks: Vec::new(),
        }
    }

    /// One on which equal distances are equal ratios. Values that are not positive are at its beginning.
    #[must_use]
    pub fn log(label: impl Into<String>) -> Self {
        Self {
            is_log: true,
            ..Self::linear(label)
        }
    }

    /// The same with these values marked.
    #[must_use]
    pub fn with_marks(mut self, marks: impl IntoIterator<Item = f64>) -> Self {
        self.marks = marks.into_iter().collect();
        self
    }

    /// The axis that shows some values, from one place to another.
    pub(super) fn over(&self, values: impl Iterator<Item = f64>, places: (f64, f64)) -> Placed {
        let usable = |value: &f64| value.is_finite() && (*value > 0.0 || !self.is_log);
        let values = values.chain(self.marks.iter().copied()).filter(usable);
        let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let (least, most) = match (least <= most, self.is_log) {
            (false, true) => (1.0, 10.0),
            (false, false) => (0.0, 1.0),
            (true, true) if self.marks.is_empty() => (floor_125(least), ceiling_125(most)),
            // Some room beside the first and the last mark.
            (true, true) => (least / 1.1, most * 1.1),
            (true, false) => (0.0, most),
        };
        Placed {
            is_log: self.is_log,
            from: least,
            until: if most > least { most } else { least + 1.0 },
            marks: self.marks.clone(),
            places,
        }
    }
}

/// An axis that shows values from one to another.
#[derive(Debug)]
pub(super) struct Placed {
    is_log: bool,
    from: f64,
    until: f64,
    marks: Vec<f64>,
    places: (f64, f64),
}

impl Placed {
    /// Where a value is.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = value.clamp(self.from, self.until);
        let part = match self.is_log {
            true => (value / self.from).ln() / (self.until / self.from).ln(),
            false => (value - self.from) / (self.until - self.from),
        };
        self.places.0 + part * (self.places.1 - self.places.0)
    }

    /// Where which values are marked.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let chosen = match (self.marks.is_empty(), self.is_log) {
            (false, _) => self.marks.clone(),
            (true, true) => self.log_marks(),
            (true, false) => self.linear_marks(),
        };
        let marks = chosen.into_iter();
        marks
            .map(|value| (self.place(value), number(value)))
            .collect()
    }

    fn log_marks(&self) -> Vec<f64> {
        let (first, last) = (self.from.log10().floor(), self.until.log10().ceil());
        // Many decades are marked by their powers of ten alone.
        let steps: &[f64] = match last - first > 4.0 {
            true => &[1.0],
            false => &[1.0, 2.0, 5.0],
        };
        let decades = (first as i32..=last as i32).map(|power| 10_f64.powi(power));
        let all = decades.flat_map(|decade| steps.iter().map(move |step| step * decade));
        let is_shown = |value: &f64| (self.from * 0.999..=self.until * 1.001).contains(value);
        all.filter(is_shown).collect()
    }

    fn linear_marks(&self) -> Vec<f64> {
        let step = ceiling_125((self.until - self.from) / LINEAR_MARKS);
        let count = ((self.until - self.from) / step).floor() as u32;
        (0..=count)
            .map(|number| self.from + f64::from(number) * step)
            .collect()
    }
}

/// The largest 1, 2 or 5 times a power of ten that is no greater.
fn floor_125(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let step = [5.0, 2.0].into_iter().find(|step| step * decade <= value);
    step.unwrap_or(1.0) * decade
}

/// The smallest that is no less.
fn ceiling_125(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let step = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|step| step * decade >= value);
    step.unwrap_or(10.0) * decade
}

/// A value in few letters.
fn number(value: f64) -> String {
    let (scaled, unit) = match value {
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e3 => (value / 1e3, "k"),
        value => (value, ""),
    };
    let digits = if scaled < 10.0 { 3 } else { 1 };
    let text = format!("{scaled:.digits$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_in_order() {
        let axis = Axis::log("us").over([3.0, 812.0].into_iter(), (0.0, 100.0));
        let labels: Vec<String> = axis.ticks().into_iter().map(|tick| tick.1).collect();
        assert_eq!(
            labels,
            ["2", "5", "10", "20", "50", "100", "200", "500", "1k"]
        );
        let axis = Axis::linear("%").over([0.0, 100.0].into_iter(), (100.0, 0.0));
        let ticks = axis.ticks();
        assert_eq!(ticks[0], (100.0, "0".to_owned()));
        assert_eq!(ticks.last(), Some(&(0.0, "100".to_owned())));
        let marked = Axis::log("rate").with_marks([33e3, 533e3]);
        let ticks = marked.over([33e3].into_iter(), (0.0, 1.0)).ticks();
        assert_eq!(ticks[1].1, "533k");
        assert!(ticks[0].0 > 0.0 && ticks[1].0 < 1.0);
    }

    #[test]
    fn an_axis_of_nothing_is_one_all_the_same() {
        for axis in [Axis::log("x"), Axis::linear("x")] {
            let placed = axis.over(std::iter::empty(), (0.0, 10.0));
            assert!(!placed.ticks().is_empty());
            assert!((0.0..=10.0).contains(&placed.place(f64::MAX)));
        }
        assert_eq!(number(0.05), "0.05");
        assert_eq!(number(1_500_000.0), "1.5M");
    }
}
