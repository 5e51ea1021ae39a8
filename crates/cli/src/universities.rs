//! How does generated data reach a loader without a file? As text that is made while it is read.

use std::io::{self, Read};

use anyhow::Context as _;
use jindou_datagen::lubm::Lubm;
use jindou_engine::ingest::{Format, Source};

/// The universities, a source each.
///
/// # Errors
/// More universities than there can be.
pub(crate) fn sources(data: Lubm) -> anyhow::Result<Vec<Source>> {
    let indices = data.indices().context("the data cannot be generated")?;
    let sources = indices.map(|university| {
        let text = UniversityText {
            data,
            university,
            text: None,
        };
        Source::reader(format!("university{university}.nt"), text).with_format(Format::NTriples)
    });
    Ok(sources.collect())
}

/// One university as text, made when it is first read: one is held at a time, not all.
struct UniversityText {
    data: Lubm,
    university: u32,
    text: Option<io::Cursor<String>>,
}

impl Read for UniversityText {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let text = self.text.get_or_insert_with(|| {
            let mut text = String::new();
            self.data.append_university(self.university, &mut text);
            io::Cursor::new(text)
        });
        text.read(buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_university_reads_as_it_is_written() {
        let data = Lubm::new(1, 0);
        let mut read = String::new();
        let mut text = UniversityText {
            data,
            university: 0,
            text: None,
        };
        text.read_to_string(&mut read).unwrap();
        let mut written = Vec::new();
        data.write_university(0, &mut written).unwrap();
        assert!(read.as_bytes() == written, "the two texts differ");
    }
}
