//! How deep do the definitions of a JSON-LD context's terms hang on one another?

use std::collections::HashMap;

/// The terms of one context, each with the names that its definition may make the parser look up.
#[derive(Default)]
pub(crate) struct Terms {
    numbers: HashMap<String, usize>,
    terms: Vec<Term>,
    /// The term whose definition is being read.
    latest: Option<usize>,
}

/// What the definitions of a context come to that hang one on the next.
#[derive(Default)]
pub(crate) struct Chain {
    /// How many there are.
    pub(crate) definitions: usize,
    /// The length of the longest IRI that they may make.
    pub(crate) name_bytes: u64,
}

#[derive(Default)]
struct Term {
    /// Names of terms, if there are such.
    names: Vec<String>,
    /// How deep the contexts within its definition are.
    within: usize,
}

impl Terms {
    /// The definition of a term begins.
    pub(crate) fn define(&mut self, name: String) {
        let terms = &mut self.terms;
        let number = *self.numbers.entry(name.clone()).or_insert_with(|| {
            terms.push(Term::default());
            terms.len() - 1
        });
        self.latest = Some(number);
        self.refer(&name);
    }

    /// The definition of the latest term has this text.
    pub(crate) fn refer(&mut self, text: &str) {
        let Some(latest) = self.latest else {
            return;
        };
        let names = &mut self.terms[latest].names;
        names.push(text.to_owned());
        // What stands before a colon may be a term, too; of a text that begins with one, what
        // stands before the next.
        if let Some((prefix, rest)) = text.split_once(':') {
            let second = rest.split_once(':').filter(|_| prefix.is_empty());
            names.push(second.map_or(prefix, |(prefix, _)| prefix).to_owned());
        }
    }

    /// The definition of the latest term has a context that is so deep.
    pub(crate) fn hold(&mut self, depth: usize) {
        if let Some(latest) = self.latest {
            let within = &mut self.terms[latest].within;
            *within = depth.max(*within);
        }
    }

    /// The term whose definition is being read.
    pub(crate) fn latest(&self) -> Option<&str> {
        let names = &self.terms[self.latest?].names;
        names.first().map(String::as_str)
    }

    /// The most definitions that hang one on the next. Those in a circle, or that hang on one, are
    /// taken to hang on one another all.
    pub(crate) fn chain(self) -> Chain {
        let Self { numbers, terms, .. } = self;
        let mut waiting_for = vec![0_usize; terms.len()];
        let mut needed_by = vec![Vec::new(); terms.len()];
        for (number, term) in terms.iter().enumerate() {
            let needs = term.names.iter().filter_map(|name| numbers.get(name));
            for &needed in needs.filter(|&&needed| needed != number) {
                waiting_for[number] += 1;
                needed_by[needed].push(number);
            }
        }
        let is_free = |number: &usize| waiting_for[*number] == 0;
        let mut free: Vec<usize> = (0..terms.len()).filter(is_free).collect();
        // The depth of what a definition needs, then of itself, too.
        let mut depths = vec![0_usize; terms.len()];
        let mut deepest = 0;
        let mut lengths = vec![0_u64; terms.len()];
        let mut longest = 0;
        let mut done = 0;
        while let Some(number) = free.pop() {
            done += 1;
            depths[number] += 1 + terms[number].within;
            deepest = deepest.max(depths[number]);
            lengths[number] += terms[number].name_bytes();
            longest = longest.max(lengths[number]);
            for &next in &needed_by[number] {
                depths[next] = depths[next].max(depths[number]);
                lengths[next] = lengths[next].max(lengths[number]);
                waiting_for[next] -= 1;
                if waiting_for[next] == 0 {
                    free.push(next);
                }
            }
        }
        let in_circles = |number: &usize| waiting_for[*number] > 0;
        if done < terms.len() {
            let circles = (0..terms.len()).filter(in_circles);
            deepest += circles.map(|n| 1 + terms[n].within).sum::<usize>();
            let circles = (0..terms.len()).filter(in_circles);
            longest += circles.map(|n| terms[n].name_bytes()).sum::<u64>();
        }
        // What these say is put in front of others.
        let prefixes = ["@vocab", "@base"].map(|name| numbers.get(name));
        let prefixes = prefixes.into_iter().flatten();
        Chain {
            definitions: deepest,
            name_bytes: longest + prefixes.map(|&n| terms[n].name_bytes()).sum::<u64>(),
        }
    }
}

impl Term {
    /// The length of the longest text of the definition.
    fn name_bytes(&self) -> u64 {
        let lengths = self.names.iter().map(String::len);
        lengths.max().unwrap_or(0) as u64
    }
}
