//! Late tuples that are kept aside: the last ones, up to a number and up to a number of bytes.

use std::collections::VecDeque;

/// Lines that are kept.
const MOST_LINES: usize = 1_000;
/// Bytes that they take.
const MOST_BYTES: u64 = 1 << 20;
/// And this part of the memory of their stream, if that is less.
const PART_OF_MEMORY: u64 = 16;
/// Bytes of a line beside its text.
const LINE_BYTES: u64 = size_of::<Box<str>>() as u64;

/// Lines of time, tab and statement.
#[derive(Debug)]
pub(super) struct LateLines {
    lines: VecDeque<Box<str>>,
    bytes: u64,
    most_bytes: u64,
}

impl LateLines {
    /// Those of a stream with so much memory.
    pub(super) fn of_memory(memory_bytes: u64) -> Self {
        Self {
            lines: VecDeque::new(),
            bytes: 0,
            most_bytes: MOST_BYTES.min(memory_bytes / PART_OF_MEMORY),
        }
    }

    /// Bytes that they take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps a line, for which the oldest ones leave; not one that is too long by itself.
    pub(super) fn keep(&mut self, line: String) {
        let bytes = size(&line);
        if bytes > self.most_bytes {
            return;
        }
        while self.lines.len() >= MOST_LINES || self.bytes + bytes > self.most_bytes {
            let oldest = self.lines.pop_front().expect("it would fit alone");
            self.bytes -= size(&oldest);
        }
        self.lines.push_back(line.into_boxed_str());
        self.bytes += bytes;
    }

    /// All of them, the oldest first.
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| &**line).collect()
    }
}

fn size(line: &str) -> u64 {
    line.len() as u64 + LINE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_up_to_a_number() {
        let mut late = LateLines::of_memory(u64::MAX);
        (0..1_500).for_each(|line| late.keep(format!("{line}\n")));
        let text = late.text();
        assert_eq!(text.lines().count(), 1_000);
        assert!(text.starts_with("500\n") && text.ends_with("1499\n"));
    }

    #[test]
    fn lines_take_no_more_than_a_part_of_the_memory() {
        let mut late = LateLines::of_memory(1 << 20);
        late.keep("first\n".to_owned());
        late.keep("x".repeat(8 << 20));
        assert_eq!(late.text(), "first\n");
        for line in 0..100 {
            late.keep(format!("{line} {}\n", "y".repeat(10_000)));
            assert!(late.bytes() <= 1 << 16);
        }
        let text = late.text();
        let numbers: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert_eq!(numbers, ["94", "95", "96", "97", "98", "99"]);
        let mut none = LateLines::of_memory(0);
        none.keep("a\n".to_owned());
        assert_eq!((none.bytes(), none.text()), (0, String::new()));
    }
}
