//! Strings as they came from other nodes.

use super::failed::Failed;
use super::wire::Reader;

/// Strings in pieces of messages, by number in the order in which they came. One costs its bytes and thirteen more.
#[derive(Default)]
pub(super) struct Strings {
    pieces: Vec<Vec<u8>>,
    places: Vec<Place>,
}

/// The piece of a string, where it begins there, and its length: whoever sorts strings looks at each many times.
#[derive(Clone, Copy)]
struct Place {
    piece: u32,
    begin: u32,
    length: u32,
}

impl Strings {
    /// Adds a piece of a message; `read` reads its strings one after the other, each with what stands before it.
    pub(super) fn add<'b>(
        &mut self,
        bytes: &'b [u8],
        mut read: impl FnMut(&mut Reader<'b>) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        let piece = self.pieces.len() as u32;
        // No round is as long, and so no piece.
        u32::try_from(bytes.len())
            .map_err(|_| Failed::too_large("a piece of strings has 4 GiB"))?;
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            read(&mut reader)?;
            let length = reader.string()?.len();
            self.places.push(Place {
                piece,
                begin: (bytes.len() - reader.len() - length) as u32,
                length: length as u32,
            });
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
        let Place {
            piece,
            begin,
            length,
        } = self.places[number];
        &self.pieces[piece as usize][begin as usize..][..length as usize]
    }
}
