//! The table: one line for each figure, printed as soon as it is measured.

use std::fmt;

/// The goal of a figure, or of its ratio to the floor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goal {
    sense: Sense,
    must: f64,
    aim: f64,
    unit: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Sense {
    AtLeast,
    AtMost,
}

/// One line.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    /// The figure of the daemon.
    pub(crate) figure: String,
    /// The figure without the daemon; empty if there is nothing to compare with.
    pub(crate) floor: String,
    /// The value that the goal is compared with: a ratio or, without a floor, the figure itself.
    pub(crate) value: f64,
    /// Absent: for information only.
    pub(crate) goal: Option<Goal>,
}

impl Goal {
    /// A lower bound of a ratio.
    pub(crate) const fn at_least(must: f64, aim: f64) -> Self {
        Self {
            sense: Sense::AtLeast,
            must,
            aim,
            unit: "",
        }
    }

    /// An upper bound of a ratio.
    pub(crate) const fn at_most(must: f64, aim: f64) -> Self {
        Self {
            sense: Sense::AtMost,
            must,
            aim,
            unit: "",
        }
    }

    /// An upper bound of a figure, in this unit.
    pub(crate) const fn bound(must: f64, aim: f64, unit: &'static str) -> Self {
        Self {
            sense: Sense::AtMost,
            must,
            aim,
            unit,
        }
    }

    fn verdict(&self, value: f64) -> &'static str {
        let meets = |limit: f64| match self.sense {
            Sense::AtLeast => value >= limit,
            Sense::AtMost => value <= limit,
        };
        match (meets(self.must), meets(self.aim)) {
            (_, true) => "aim met",
            (true, false) => "met",
            (false, false) => "SHORT",
        }
    }

    fn limit(&self, limit: f64) -> String {
        let sign = match self.sense {
            Sense::AtLeast => '≥',
            Sense::AtMost => '≤',
        };
        match self.unit {
            "" => format!("{sign} {limit:.2}"),
            unit => format!("{sign} {limit} {unit}"),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio = match self.floor.as_str() {
            "" => String::new(),
            _ => format!("{:.2}", self.value),
        };
        let (must, aim, verdict) = match &self.goal {
            Some(goal) => (
                goal.limit(goal.must),
                goal.limit(goal.aim),
                goal.verdict(self.value),
            ),
            None => Default::default(),
        };
        let Self {
            what,
            figure,
            floor,
            ..
        } = self;
        line(f, &[what, figure, floor, &ratio, &must, &aim, verdict])
    }
}

/// The names of the columns.
#[derive(Debug)]
pub(crate) struct Heading;

impl fmt::Display for Heading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, &["what", "figure", "floor", "ratio", "must", "aim", ""])?;
        write!(f, "\n{}", "-".repeat(128))
    }
}

fn line(f: &mut fmt::Formatter<'_>, cells: &[&str; 7]) -> fmt::Result {
    let [what, figure, floor, ratio, must, aim, verdict] = cells;
    let text =
        format!("{what:<66} {figure:>10} {floor:>10} {ratio:>6} {must:>9} {aim:>9}  {verdict}");
    f.write_str(text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_at_its_limit_and_missed_beyond_it() {
        let faster = Goal::at_least(0.45, 0.65);
        let verdicts = [0.44, 0.45, 0.65].map(|value| faster.verdict(value));
        assert_eq!(verdicts, ["SHORT", "met", "aim met"]);
        let smaller = Goal::bound(160.0, 110.0, "KB");
        let verdicts = [161.0, 160.0, 110.0].map(|value| smaller.verdict(value));
        assert_eq!(verdicts, ["SHORT", "met", "aim met"]);
    }
}
