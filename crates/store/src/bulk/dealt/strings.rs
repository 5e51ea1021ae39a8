//! Strings as they came from other nodes.

use super::failed::Failed;
use super::wire::Reader;

/// Strings in pieces of messages, by number in the order in which they came. One costs its bytes and nine more.
#[derive(Default)]
pub(super) struct Strings {
    pieces: Vec<Vec<u8>>,
    /// The piece of each, and where it begins there, with its length before it.
    places: Vec<(u32, u32)>,
}

impl Strings {
    /// Adds a piece of a message; `read` reads its strings one after the other, each with what stands before it.
    pub(super) fn add<'b>(
        &mut self,
        bytes: &'b [u8],
        mut read: impl FnMut(&mut Reader<'b>) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        let piece = self.pieces.len() as u32;
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            read(&mut reader)?;
            let place = u32::try_from(bytes.len() - reader.len());
            let place = place.map_err(|_| Failed::too_large("a piece of strings has 4 GiB"))?;
            reader.string()?;
            self.places.push((piece, place));
        }
        self.pieces.push(bytes.to_vec());
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The string of a number.
    #[inline]
    pub(super) fn get(&self, number: usize) -> &[u8] {
        let (piece, place) = self.places[number];
        let mut reader = Reader::new(&self.pieces[piece as usize][place as usize..]);
        match reader.string() {
            Ok(string) => string,
            Err(_) => unreachable!("it was read before"),
        }
    }
}
