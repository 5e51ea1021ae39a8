//! Which variables are wanted behind each step of a chain?

use jindou_plan::physical::{PlannedStep, Var};
use smallvec::SmallVec;

use crate::table::VarSet;

/// What is wanted behind the first steps of a chain, of ever more of them: each step is looked at
/// twice, however long the chain is.
pub(crate) struct Behind<'a> {
    steps: &'a [PlannedStep],
    passed: usize,
    wanted: VarSet,
    /// How often the steps to come name each variable, and once more if it is wanted behind all.
    named: SmallVec<[u32; 16]>,
}

impl<'a> Behind<'a> {
    /// Before all steps, if `needed` is wanted behind them.
    pub(crate) fn new(steps: &'a [PlannedStep], needed: &VarSet) -> Self {
        let mut this = Self {
            steps,
            passed: 0,
            wanted: VarSet::default(),
            named: SmallVec::new(),
        };
        needed.iter().for_each(|var| this.name(var));
        for planned in steps {
            planned.step.for_each_variable(&mut |var| this.name(var));
        }
        this
    }

    fn name(&mut self, var: Var) {
        if self.named.len() <= var.index() {
            self.named.resize(var.index() + 1, 0);
        }
        self.named[var.index()] += 1;
        self.wanted.insert(var);
    }

    /// The variables wanted behind this many steps, no fewer than before.
    pub(crate) fn behind(&mut self, count: usize) -> &VarSet {
        assert!(
            count >= self.passed,
            "what was passed is not known any more"
        );
        for planned in &self.steps[self.passed..count] {
            planned.step.for_each_variable(&mut |var| {
                self.named[var.index()] -= 1;
                if self.named[var.index()] == 0 {
                    self.wanted.remove(var);
                }
            });
        }
        self.passed = count;
        &self.wanted
    }
}

#[cfg(test)]
mod tests {
    use jindou_plan::expression::Expression;
    use jindou_plan::physical::Step;

    use super::*;
    use crate::steps::needed_before;

    #[test]
    fn what_is_wanted_is_what_later_steps_and_those_behind_all_name() {
        // Each step names its own variable and one or two of those before.
        let steps: Vec<PlannedStep> = (0..40_u16)
            .map(|number| PlannedStep {
                id: 0,
                step: Step::Extend {
                    var: Var(number),
                    expression: Expression::And(vec![
                        Expression::Variable(Var(number * 7 % (number + 1))),
                        Expression::Variable(Var(number / 2)),
                    ]),
                },
                rows: 0.0,
            })
            .collect();
        let needed: VarSet = [Var(3), Var(38), Var(50)].into_iter().collect();
        for stride in [1, 2, 5, 40] {
            let mut behind = Behind::new(&steps, &needed);
            for count in (0..=steps.len()).step_by(stride) {
                let expected = needed_before(&steps[count..], &needed);
                let found: Vec<Var> = behind.behind(count).iter().collect();
                assert_eq!(found, expected.iter().collect::<Vec<_>>(), "{count}");
            }
        }
    }
}
