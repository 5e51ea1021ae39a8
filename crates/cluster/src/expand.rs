//! Following lists that are on several shards.
//!
//! Rows are followed a *window* at a time: each holder follows the lists of its keys, and what it finds is put
//! back in the order of the rows. The rows in front that all shards have finished are
//! handed on; what was found of rows behind is forgotten, and asked for again. A place within a row is
//! remembered only of rows that were asked for alone, so that it means the same to the shard whatever
//! other keys it was asked for together with.
//!
//! Where several lists are to be intersected, the shortest of each row is followed, and the shards of
//! the others are asked which of the ids they hold.

use std::ops::Range;

use jindou_model::{Cursor, GraphRef, IdRanges, Lists, PredicateId, TermId, Unavailable};
use jindou_partition::Split;

use crate::Sharded;
use crate::ask::{of_rows, worse};
use crate::one_sided::{OneSided, ReadLists};
use crate::rows::Holder;

/// Rows of a window, at most.
const WINDOW: usize = 1024;
/// Rows that one call follows, or few more, unless several lists of each are to be intersected that loads of this
/// process reach: its caller looks at its limits after that, whatever was found.
const MOST_FOLLOWED: usize = 1024;
/// Rows of a window of which the lengths of the lists are asked first; of the next ones, twice as many, and so on, until
/// there is no room for more.
const FIRST_LENGTHS: usize = 64;

/// What is asked for.
struct Asked<'a> {
    graph: GraphRef<'a>,
    lists: &'a [Lists<'a>],
    allowed: Option<&'a IdRanges>,
}

/// Lists that are near, and what reads them.
type NearLists<'a> = (&'a OneSided, Vec<ReadLists<'a>>);

/// What was found of the first rows of a window.
struct Window {
    /// The row and id of each, in order.
    rows: Vec<u32>,
    ids: Vec<TermId>,
    /// How far these go.
    to: Cursor,
    /// Why they go no further, if somebody did not answer.
    reason: Option<Unavailable>,
}

/// What all holders answered for the rows of a window.
#[derive(Default)]
struct Found {
    pieces: Vec<Piece>,
    /// Rows of the window, piece by piece.
    places: Vec<u32>,
    /// As the holders gave them, piece by piece: rows by their place among those of the piece.
    rows: Vec<u32>,
    ids: Vec<TermId>,
    /// Why one of them did not answer.
    reason: Option<Unavailable>,
}

/// What one holder answered for its rows.
struct Piece {
    /// Which of the places are its own; the rows rise.
    places: Range<usize>,
    cursor: Cursor,
    /// Which of the ids are its own, and were not taken.
    ids: Range<usize>,
}

impl Sharded {
    /// As [`GraphSource::expand`](jindou_exec::GraphSource::expand).
    pub(crate) fn follow(
        &self,
        graph: GraphRef<'_>,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        (rows, out): (&mut Vec<u32>, &mut Vec<TermId>),
    ) -> Result<(), Unavailable> {
        if lists.iter().all(|list| list.predicate == PredicateId::TYPE) {
            let shared = &self.shared;
            return shared.expand(graph, lists, cursor, allowed, budget, rows, out);
        }
        // Light queries are made of such.
        if let [list] = lists
            && let [key] = list.keys
            && let (read, false) = self.read_in(graph, list.predicate, list.direction)
        {
            let holder = self.holder_of_key(read, (list.predicate, list.direction), *key)?;
            return holder.expand(read, list, cursor, allowed, budget, (rows, out));
        }
        let asked = Asked {
            graph,
            lists,
            allowed,
        };
        let count = lists.first().map_or(0, |list| list.keys.len());
        let begin = *cursor;
        let mut is_alone = cursor.offset > 0;
        let mut followed = 0;
        while cursor.key < count && out.len() < budget && followed < MOST_FOLLOWED {
            let first = cursor.key;
            let room = budget - out.len();
            let end = match is_alone {
                true => cursor.key + 1,
                false => count.min(cursor.key + room.min(WINDOW)),
            };
            if let Some((read, list, reader)) = self.read_whole(&asked, cursor.key..end) {
                let before = *cursor;
                let found = (&mut *rows, &mut *out);
                let expanded = reader.expand(read, &list, cursor, allowed, budget, found);
                followed += cursor.key - first;
                match expanded {
                    Ok(()) if *cursor == before => return Ok(()),
                    // There was no room for the rest.
                    Ok(()) if cursor.key < end => return Ok(()),
                    Ok(()) => is_alone = cursor.offset > 0,
                    Err(why) if *cursor == begin => return Err(why),
                    Err(_) => return Ok(()),
                }
                continue;
            }
            if let Some(all) = self.read_near(&asked, cursor.key..end) {
                let found = (&mut *rows, &mut *out);
                if self.intersect(&all, cursor, end, allowed, budget, found) {
                    is_alone = cursor.offset > 0;
                    // The places of one list may be shared out: see `GraphSource::expand`.
                    if count == 1 {
                        return Ok(());
                    }
                    continue;
                }
            }
            let mut found = self.window(&asked, *cursor, end, room);
            rows.append(&mut found.rows);
            out.append(&mut found.ids);
            let was_alone = end == cursor.key + 1;
            let has_moved = found.to != *cursor;
            *cursor = found.to;
            followed += cursor.key - first;
            is_alone = cursor.offset > 0 || !has_moved;
            if has_moved && cursor.key < end {
                // There was no room for the rest, whose lengths would be asked for again for what is left of it.
                return Ok(());
            }
            match found.reason {
                // What is there may be all that the caller needs.
                _ if has_moved => {}
                Some(why) if was_alone => {
                    return if *cursor == begin { Err(why) } else { Ok(()) };
                }
                None if was_alone => return Ok(()),
                _ => {}
            }
            // The places of a list may be shared out: see `GraphSource::expand`.
            if count == 1 {
                break;
            }
        }
        Ok(())
    }

    /// What reads the lists of these rows, where each has one and nobody is to be asked for any of them.
    fn read_whole<'a>(
        &'a self,
        asked: &Asked<'a>,
        rows: Range<usize>,
    ) -> Option<(GraphRef<'a>, Lists<'a>, Holder<'a>)> {
        let [list] = asked.lists else { return None };
        let (read, false) = self.read_in(asked.graph, list.predicate, list.direction) else {
            return None;
        };
        let segment = (list.predicate, list.direction);
        let reader = self.reader_of(read, segment, &list.keys[rows.clone()])?;
        let keys = &list.keys[..rows.end];
        Some((read, Lists { keys, ..*list }, reader))
    }

    /// The lists of these rows, where each has several and loads of this process reach all of them.
    fn read_near<'a>(&'a self, asked: &Asked<'a>, rows: Range<usize>) -> Option<NearLists<'a>> {
        let mut all = Vec::with_capacity(asked.lists.len());
        let mut reader = None;
        for list in asked.lists {
            let segment = (list.predicate, list.direction);
            let (read, false) = self.read_in(asked.graph, list.predicate, list.direction) else {
                return None;
            };
            let Holder::Read(reading) = self.reader_of(read, segment, &list.keys[rows.clone()])?
            else {
                return None;
            };
            let keys = &list.keys[..rows.end];
            let lists = reading
                .reader
                .lists(reading.segments, &Lists { keys, ..*list });
            lists.are_near().then_some(())?;
            all.push(lists);
            reader = Some(reading.reader);
        }
        Some((reader?, all))
    }

    /// Follows the rows from the cursor's to `end` as far as there is room; false where one was not read, which others
    /// are to be asked for.
    fn intersect(
        &self,
        (reader, lists): &NearLists<'_>,
        cursor: &mut Cursor,
        end: usize,
        allowed: Option<&IdRanges>,
        budget: usize,
        (rows, out): (&mut Vec<u32>, &mut Vec<TermId>),
    ) -> bool {
        let begin = *cursor;
        while cursor.key < end && out.len() < budget {
            let found = (&mut *rows, &mut *out);
            if reader
                .intersect_near(lists, cursor, allowed, budget, found)
                .is_err()
            {
                return *cursor != begin;
            }
            if cursor.offset > 0 {
                break;
            }
        }
        true
    }

    /// Follows the lists of the rows from the cursor's to `end`; of one row alone from its offset on.
    fn window(&self, asked: &Asked<'_>, from: Cursor, end: usize, room: usize) -> Window {
        let nothing = |reason| Window {
            rows: Vec::new(),
            ids: Vec::new(),
            to: from,
            reason: Some(reason),
        };
        let walked = match self.walked(asked, from.key..end, room) {
            Ok(walked) => walked,
            Err(reason) => return nothing(reason),
        };
        let mut found = self.found(asked, from, &walked, room);
        match self.check(asked, from.key, &walked, &mut found) {
            Ok(()) => found,
            Err(reason) => nothing(reason),
        }
    }

    /// Which list of each row is walked, the shortest; of the first rows, for which there is room.
    fn walked(
        &self,
        asked: &Asked<'_>,
        rows: Range<usize>,
        room: usize,
    ) -> Result<Vec<usize>, Unavailable> {
        if asked.lists.len() == 1 {
            return Ok(vec![0; rows.len()]);
        }
        let mut walked = Vec::with_capacity(rows.len());
        let (mut next, mut ids, mut many) = (rows.start, 0, FIRST_LENGTHS);
        while next < rows.end && ids < room as u64 {
            let some = next..rows.end.min(next + many);
            let mut shortest = vec![(u64::MAX, 0); some.len()];
            for (number, list) in asked.lists.iter().enumerate() {
                let keys = &list.keys[some.clone()];
                let lengths = self.lengths(asked.graph, &Lists { keys, ..*list })?;
                for (row, length) in lengths.into_iter().enumerate() {
                    if length < shortest[row].0 {
                        shortest[row] = (length, number);
                    }
                }
            }
            ids += shortest.iter().map(|(length, _)| length).sum::<u64>();
            walked.extend(shortest.iter().map(|(_, number)| number));
            (next, many) = (some.end, 2 * many);
        }
        Ok(walked)
    }

    /// What the walked lists of a window hold.
    fn found(&self, asked: &Asked<'_>, from: Cursor, walked: &[usize], room: usize) -> Window {
        let mut found = Found::default();
        let mut of_list: Vec<u32> = Vec::with_capacity(walked.len());
        for (number, list) in asked.lists.iter().enumerate() {
            of_list.clear();
            let rows = (0..walked.len() as u32).filter(|row| walked[*row as usize] == number);
            of_list.extend(rows);
            let keys = of_list
                .iter()
                .map(|row| list.keys[from.key + *row as usize]);
            let (graph, _) = self.read_in(asked.graph, list.predicate, list.direction);
            let mut ask = |holder: Result<Holder<'_>, Unavailable>,
                           keys: &[TermId],
                           rows: &mut dyn Iterator<Item = u32>| {
                let share = (room * keys.len() / walked.len()).max(1);
                let list = (graph, Lists { keys, ..*list });
                found.ask(list, asked.allowed, holder, rows, from, share);
            };
            if of_list.is_empty() {
                continue;
            }
            if list.predicate == PredicateId::TYPE {
                let keys: Vec<TermId> = keys.collect();
                let shared = Ok(Holder::Graph(&*self.shared));
                ask(shared, &keys, &mut of_list.iter().copied());
                continue;
            }
            Split::lend(|split| {
                let segment = (list.predicate, list.direction);
                self.split(graph, segment, keys, split);
                for (number, part) in split.parts() {
                    let mut rows = part.places.iter().map(|place| of_list[*place as usize]);
                    let holder = self.holder_of_part(graph, segment, number);
                    ask(holder, &part.keys, &mut rows);
                }
            });
        }
        found.joined(from, walked.len())
    }

    /// Keeps what the other lists hold, too, and what is in the graph where that is to be asked.
    fn check(
        &self,
        asked: &Asked<'_>,
        first: usize,
        walked: &[usize],
        found: &mut Window,
    ) -> Result<(), Unavailable> {
        for (number, list) in asked.lists.iter().enumerate() {
            let (_, by_subject) = self.read_in(asked.graph, list.predicate, list.direction);
            let is_open = |row: u32| by_subject || walked[row as usize - first] != number;
            let open = (0..found.rows.len()).filter(|index| is_open(found.rows[*index]));
            let open: Vec<usize> = open.collect();
            if open.is_empty() {
                continue;
            }
            let keys = open
                .iter()
                .map(|index| list.keys[found.rows[*index] as usize]);
            let keys: Vec<TermId> = keys.collect();
            let to: Vec<TermId> = open.iter().map(|index| found.ids[*index]).collect();
            let (mut held, mut graphs) = (Vec::new(), Vec::new());
            let keys = Lists {
                keys: &keys,
                ..*list
            };
            let rows = open.iter().map(|index| found.rows[*index] as usize);
            let graph = of_rows(asked.graph, rows, &mut graphs);
            self.contains_of(graph, &keys, &to, &mut held)?;
            let mut is_kept = vec![true; found.rows.len()];
            open.iter().for_each(|index| is_kept[*index] = false);
            for place in held {
                is_kept[open[place as usize]] = true;
            }
            let mut kept = is_kept.iter();
            found.rows.retain(|_| *kept.next().expect("one for each"));
            let mut kept = is_kept.iter();
            found.ids.retain(|_| *kept.next().expect("one for each"));
        }
        Ok(())
    }
}

impl Found {
    /// Asks one holder for some rows of a window.
    fn ask(
        &mut self,
        (graph, list): (GraphRef<'_>, Lists<'_>),
        allowed: Option<&IdRanges>,
        holder: Result<Holder<'_>, Unavailable>,
        places: &mut dyn Iterator<Item = u32>,
        from: Cursor,
        budget: usize,
    ) {
        let (first, begin) = (self.places.len(), self.ids.len());
        self.places.extend(places);
        let rows = self.places[first..].iter();
        let rows = rows.map(|place| from.key + *place as usize);
        let mut graphs = Vec::new();
        let graph = of_rows(graph, rows, &mut graphs);
        let mut cursor = Cursor {
            key: 0,
            offset: from.offset,
        };
        let answer = holder.and_then(|holder| {
            let found = (&mut self.rows, &mut self.ids);
            holder.expand(graph, &list, &mut cursor, allowed, begin + budget, found)
        });
        if let Err(why) = answer {
            self.reason = Some(worse(self.reason, why));
        }
        self.pieces.push(Piece {
            places: first..self.places.len(),
            cursor,
            ids: begin..self.ids.len(),
        });
    }

    /// The first of `count` rows that all pieces have, in order.
    fn joined(mut self, from: Cursor, count: usize) -> Window {
        // The piece of each row, and its place there.
        let mut place_of = vec![(0, 0); count];
        for (number, piece) in self.pieces.iter().enumerate() {
            for (place, row) in self.places[piece.places.clone()].iter().enumerate() {
                place_of[*row as usize] = (number, place);
            }
        }
        let mut window = Window {
            rows: Vec::with_capacity(self.ids.len()),
            ids: Vec::with_capacity(self.ids.len()),
            to: from,
            reason: self.reason,
        };
        for (number, place) in place_of {
            let piece = &mut self.pieces[number];
            let is_done = place < piece.cursor.key;
            // Of a row that was asked for alone, a part counts.
            if !is_done && count > 1 {
                break;
            }
            let begin = piece.ids.start;
            let of_row = self.rows[piece.ids.clone()].iter();
            let len = of_row.take_while(|row| **row as usize == place).count();
            piece.ids.start += len;
            window.ids.extend_from_slice(&self.ids[begin..begin + len]);
            window.rows.resize(window.ids.len(), window.to.key as u32);
            window.to = match is_done {
                true => Cursor {
                    key: window.to.key + 1,
                    offset: 0,
                },
                false => Cursor {
                    key: window.to.key,
                    offset: piece.cursor.offset,
                },
            };
        }
        window
    }
}
