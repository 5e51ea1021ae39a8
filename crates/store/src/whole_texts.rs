//! What does a node's part know of the order of texts, of which it has not all?
//!
//! What the strings of the bulk load tell of that order beside their numbers: of which kind each is. And where the
//! literals lie that came later: their positions among those of the bulk load.

mod verify;

use std::sync::Arc;

use jindou_dictionary::DictionaryError;

use crate::StoreError;
use crate::delta::Snapshot;
use crate::image::{ImageReader, ImageWriter};
use crate::kind_column::{KeyKinds, KindBuilder, KindColumn};
use crate::later_order::OrderVersion;
use crate::tables::TermTables;

/// The order of the texts of a whole.
#[derive(Clone, Debug)]
pub(crate) struct WholeTexts {
    /// Of the vertices that are in the order of their texts within their runs.
    pub(crate) vertices: KindColumn,
    /// Of the literals of the bulk load.
    pub(crate) literals: KindColumn,
    /// The order of those that came later.
    pub(crate) later: Arc<OrderVersion>,
}

impl WholeTexts {
    /// Those of a bulk load.
    pub(crate) fn of_load(vertices: KindColumn, literals: KindColumn) -> Self {
        let later = Arc::new(OrderVersion::empty(literals.len()));
        Self {
            vertices,
            literals,
            later,
        }
    }

    /// Those of a snapshot that has the strings. Costs a pass over those of the bulk load, and the order of those that
    /// came later, if that is not known yet.
    ///
    /// Where many more numbers were given than there are literals, the order of these is not known: such a part
    /// compares their texts.
    pub(crate) fn of(snapshot: &Snapshot) -> Result<Self, DictionaryError> {
        let base = snapshot.base();
        let ground = base.literals.ground().len();
        let literals = kinds_of(&base.literals, ground, KeyKinds::LITERALS)?;
        let vertices = kinds_of(&base.vertices, base.ordered_vertices(), KeyKinds::VERTICES)?;
        let later = snapshot.text_order().extended(&mut |_| true);
        Ok(Self {
            later: later.map_or_else(
                || Arc::new(OrderVersion::empty(ground)),
                |order| Arc::clone(order.version()),
            ),
            ..Self::of_load(vertices, literals)
        })
    }

    /// Bytes that it maps.
    pub(crate) fn bytes(&self) -> usize {
        self.vertices.bytes() + self.literals.bytes()
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        self.vertices.write(image);
        self.literals.write(image);
        self.later.write(image);
    }

    /// Those of a store that has given so many numbers to vertices and to literals.
    pub(crate) fn read(
        image: &mut ImageReader,
        [vertices, literals]: [u64; 2],
    ) -> Result<Self, StoreError> {
        let read = Self {
            vertices: KindColumn::read(image, KeyKinds::VERTICES, vertices)?,
            literals: KindColumn::read(image, KeyKinds::LITERALS, literals)?,
            later: Arc::new(OrderVersion::read(image, literals)?),
        };
        match read.literals.len() == read.later.first() {
            true => Ok(read),
            false => Err(image.corrupt("literals are in no order, or in two")),
        }
    }
}

/// The kinds of the first strings of the table of a bulk load.
fn kinds_of(
    tables: &TermTables,
    count: u64,
    kinds: KeyKinds,
) -> Result<KindColumn, DictionaryError> {
    let mut builder = KindBuilder::new(kinds);
    let mut decoder = tables.ground().decoder();
    for number in 0..count {
        builder.push_key(decoder.get(number)?);
    }
    Ok(builder.finish())
}
