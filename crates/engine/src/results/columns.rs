//! Which arrays do terms become in Arrow and Parquet?
//!
//! A *term column* is a struct of four strings: `kind` (`iri`, `blank` or `literal`), `value` (the
//! IRI, the blank node as `_:label`, or the lexical form), `datatype` (of every literal, also of
//! strings and of text with a language) and `language`. An unbound variable is a null struct.
//! Nothing of a term is lost. `kind`, `datatype` and `language` are dictionary-encoded; values are
//! not, since a batch's own dictionary of values would have to be sent again with each batch, and
//! Parquet makes its own.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::{ArrowDictionaryKeyType, Int8Type, Int32Type};
use arrow_array::{ArrayRef, DictionaryArray, PrimitiveArray, StringArray, StructArray};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, Field, Fields};
use oxrdf::vocab::{rdf, xsd};

use super::{ResultsError, TermText};

/// Values of a dictionary that outlive a batch; a larger one begins anew with the next batch,
/// since a dictionary that has grown is written again as a whole.
const LASTING_VALUES: usize = 1024;
/// The longest value. With a batch's other values before it, offsets still fit 32 bits.
const LONGEST_VALUE_BYTES: usize = 1 << 30;

const KINDS: [&str; 3] = ["iri", "blank", "literal"];

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Terms of any kind, or nothing.
    Term,
    /// IRIs and blank nodes, most of them different.
    Node,
    /// IRIs and blank nodes of which few are different, or nothing.
    RepeatedNode,
}

/// A column of the batch under way.
pub(super) enum Column {
    Term(Box<TermColumn>),
    Node(StringBuilder),
    RepeatedNode(Repeated),
}

impl Column {
    pub(super) fn new(shape: Shape) -> Self {
        match shape {
            Shape::Term => Self::Term(Box::default()),
            Shape::Node => Self::Node(StringBuilder::new()),
            Shape::RepeatedNode => Self::RepeatedNode(Repeated::default()),
        }
    }

    /// The field of a column of this name.
    pub(super) fn field(shape: Shape, name: &str, nullable: bool) -> Field {
        let data_type = match shape {
            Shape::Term => DataType::Struct(term_fields()),
            Shape::Node => DataType::Utf8,
            Shape::RepeatedNode => dictionary_type(DataType::Int32),
        };
        Field::new(name, data_type, nullable)
    }

    /// Appends a cell; gives the bytes of its text.
    ///
    /// # Panics
    /// If a column of nodes is given a literal.
    pub(super) fn push(&mut self, cell: Option<TermText<'_>>) -> Result<usize, ResultsError> {
        let length = match cell {
            None => 0,
            Some(TermText::Iri(text) | TermText::Literal { value: text, .. }) => text.len(),
            Some(TermText::Blank(label)) => label.len() + 2,
        };
        if length > LONGEST_VALUE_BYTES {
            return Err(ResultsError::TooLong { bytes: length });
        }
        match (self, cell) {
            (Self::Term(column), cell) => column.push(cell),
            (Self::Node(column), Some(cell)) => with_node(cell, |text| column.append_value(text)),
            (Self::Node(column), None) => column.append_null(),
            (Self::RepeatedNode(column), Some(cell)) => {
                with_node(cell, |text| column.push(Some(text)));
            }
            (Self::RepeatedNode(column), None) => column.push(None),
        }
        Ok(length)
    }

    /// The cells so far as an array; the column is empty then.
    pub(super) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Term(column) => Arc::new(column.finish()),
            Self::Node(column) => Arc::new(column.finish()),
            Self::RepeatedNode(column) => Arc::new(column.finish()),
        }
    }
}

/// Calls `take` with the IRI, or with the blank node as `_:label`.
fn with_node(node: TermText<'_>, take: impl FnOnce(&str)) {
    match node {
        TermText::Iri(iri) => take(iri),
        TermText::Blank(label) => take(&format!("_:{label}")),
        TermText::Literal { value, .. } => panic!("the literal {value:?} stands for a node"),
    }
}

fn dictionary_type(keys: DataType) -> DataType {
    DataType::Dictionary(Box::new(keys), Box::new(DataType::Utf8))
}

fn term_fields() -> Fields {
    Fields::from(vec![
        Field::new("kind", dictionary_type(DataType::Int8), true),
        Field::new("value", DataType::Utf8, true),
        Field::new("datatype", dictionary_type(DataType::Int32), true),
        Field::new("language", dictionary_type(DataType::Int32), true),
    ])
}

/// The terms of one batch. Where nothing is bound, the fields are null like the struct: readers
/// that take a struct apart then need not look at its own nulls.
pub(super) struct TermColumn {
    fields: Fields,
    kinds: Vec<Option<i8>>,
    kind_names: ArrayRef,
    values: StringBuilder,
    datatypes: Repeated,
    languages: Repeated,
    bound: NullBufferBuilder,
}

impl Default for TermColumn {
    fn default() -> Self {
        Self {
            fields: term_fields(),
            kinds: Vec::new(),
            kind_names: Arc::new(StringArray::from_iter_values(KINDS)),
            values: StringBuilder::new(),
            datatypes: Repeated::default(),
            languages: Repeated::default(),
            bound: NullBufferBuilder::new(0),
        }
    }
}

impl TermColumn {
    fn push(&mut self, cell: Option<TermText<'_>>) {
        self.bound.append(cell.is_some());
        let (kind, datatype, language) = match cell {
            None => {
                self.values.append_null();
                (None, None, None)
            }
            Some(TermText::Iri(iri)) => {
                self.values.append_value(iri);
                (Some(0), None, None)
            }
            Some(node @ TermText::Blank(_)) => {
                with_node(node, |text| self.values.append_value(text));
                (Some(1), None, None)
            }
            Some(TermText::Literal {
                value,
                language,
                datatype,
            }) => {
                self.values.append_value(value);
                let datatype = match (language, datatype) {
                    (Some(_), _) => rdf::LANG_STRING.as_str(),
                    (None, Some(datatype)) => datatype,
                    (None, None) => xsd::STRING.as_str(),
                };
                (Some(2), Some(datatype), language)
            }
        };
        self.kinds.push(kind);
        self.datatypes.push(datatype);
        self.languages.push(language);
    }

    fn finish(&mut self) -> StructArray {
        let kinds = dictionary::<Int8Type>(std::mem::take(&mut self.kinds), &self.kind_names);
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(kinds),
            Arc::new(self.values.finish()),
            Arc::new(self.datatypes.finish()),
            Arc::new(self.languages.finish()),
        ];
        StructArray::new(self.fields.clone(), arrays, self.bound.finish())
    }
}

fn dictionary<K: ArrowDictionaryKeyType>(
    keys: Vec<Option<K::Native>>,
    values: &ArrayRef,
) -> DictionaryArray<K> {
    let keys: PrimitiveArray<K> = keys.into_iter().collect();
    DictionaryArray::new(keys, Arc::clone(values))
}

/// Strings of which few are different.
pub(super) struct Repeated {
    keys: Vec<Option<i32>>,
    numbers: HashMap<Box<str>, i32>,
    /// The last string: columns often hold runs.
    last: Option<(Box<str>, i32)>,
    values: StringBuilder,
    /// The values as an array, while none is added.
    array: Option<ArrayRef>,
}

impl Default for Repeated {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            numbers: HashMap::new(),
            last: None,
            values: StringBuilder::new(),
            array: None,
        }
    }
}

impl Repeated {
    fn push(&mut self, text: Option<&str>) {
        let key = text.map(|text| match &self.last {
            Some((last, number)) if **last == *text => *number,
            _ => {
                let number = self.number(text);
                self.last = Some((text.into(), number));
                number
            }
        });
        self.keys.push(key);
    }

    fn number(&mut self, text: &str) -> i32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = i32::try_from(self.numbers.len()).expect("a batch has fewer rows");
        self.numbers.insert(text.into(), number);
        self.values.append_value(text);
        self.array = None;
        number
    }

    fn finish(&mut self) -> DictionaryArray<Int32Type> {
        let values = &mut self.values;
        let array = self
            .array
            .get_or_insert_with(|| Arc::new(values.finish_cloned()));
        let finished = dictionary(std::mem::take(&mut self.keys), array);
        if self.numbers.len() > LASTING_VALUES {
            *self = Self::default();
        }
        finished
    }
}
