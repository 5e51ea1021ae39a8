//! Bytes -> steps, with an eye on every number and on the depth.
//!
//! A deserializer around that of the format, and around all that it hands to the types of a plan: each
//! struct, list and choice in another is one deeper, and the number in a type that [`Check::limit`] knows
//! by its name is compared where it is read, so that no place of a plan can be forgotten.

use std::cell::RefCell;
use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, SeqAccess, VariantAccess, Visitor,
};

use super::{PlanSizes, PlanWireError};
use crate::physical::PlannedStep;

/// Structs, lists and choices for each level of a plan, at most: a branch of a union is a list in a list,
/// of structs, with a choice in each.
const NESTED_PER_LEVEL: usize = 4;
/// Those of what has no levels of its own: a variable in a slot in a side in a list.
const NESTED_AT_LEAST: usize = 12;

/// The steps that these bytes are, no deeper than `levels`, with numbers below `sizes`.
pub(super) fn read(
    bytes: &[u8],
    sizes: PlanSizes,
    levels: usize,
) -> Result<Vec<PlannedStep>, PlanWireError> {
    let check = Check {
        sizes,
        levels,
        failure: RefCell::default(),
    };
    let mut format = postcard::Deserializer::from_bytes(bytes);
    let checked = Checked {
        inner: &mut format,
        check: &check,
        left: levels
            .saturating_mul(NESTED_PER_LEVEL)
            .saturating_add(NESTED_AT_LEAST),
        limit: None,
    };
    let steps = Vec::deserialize(checked).map_err(|error| check.reason(&error, bytes.len()))?;
    let rest = format.finalize();
    let rest = rest.map_err(|error| check.reason(&error, bytes.len()))?;
    match rest.len() {
        0 => Ok(steps),
        bytes => Err(PlanWireError::TooLong { bytes }),
    }
}

/// What is looked at, and what was wrong: the format's own errors have no place for it.
struct Check {
    sizes: PlanSizes,
    levels: usize,
    failure: RefCell<Option<PlanWireError>>,
}

/// What a number is of, and how many of these there are.
#[derive(Clone, Copy)]
struct Limit {
    part: &'static str,
    most: u64,
}

impl Check {
    /// That of the numbers in a type of this name.
    fn limit(&self, name: &str) -> Option<Limit> {
        let (part, most) = match name {
            "Var" => ("variables", self.sizes.variables as u64),
            "ConstId" => ("constants", self.sizes.constants as u64),
            "PlanId" => ("steps and operators", self.sizes.ids.into()),
            _ => return None,
        };
        Some(Limit { part, most })
    }

    fn fail<E: serde::de::Error>(&self, error: PlanWireError) -> E {
        let custom = E::custom(&error);
        self.failure.borrow_mut().get_or_insert(error);
        custom
    }

    fn reason(&self, error: &postcard::Error, end: usize) -> PlanWireError {
        match (self.failure.borrow_mut().take(), error) {
            (Some(failure), _) => failure,
            (None, postcard::Error::DeserializeUnexpectedEnd) => PlanWireError::Truncated { end },
            (None, error) => PlanWireError::Malformed {
                reason: error.to_string(),
            },
        }
    }
}

/// A deserializer that is looked at.
struct Checked<'c, D> {
    inner: D,
    check: &'c Check,
    /// Levels of nesting that may follow.
    left: usize,
    /// Of the number that it gives.
    limit: Option<Limit>,
}

impl<'c, D> Checked<'c, D> {
    /// What is inside of this, for a visitor that reads it.
    fn nested<V, E: serde::de::Error>(&self, visitor: V) -> Result<Within<'c, V>, E> {
        let check = self.check;
        let deep = || {
            check.fail(PlanWireError::TooDeep {
                levels: check.levels,
            })
        };
        Ok(Within {
            inner: visitor,
            check,
            left: self.left.checked_sub(1).ok_or_else(deep)?,
            limit: None,
        })
    }
}

macro_rules! plain {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method(visitor)
        }
    )*};
}

macro_rules! number {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            let Some(limit) = self.limit else {
                return self.inner.$method(visitor);
            };
            let check = self.check;
            self.inner.$method(Number { visitor, check, limit })
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Checked<'_, D> {
    type Error = D::Error;

    plain! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32
        deserialize_i64 deserialize_u8 deserialize_u64 deserialize_f32 deserialize_f64
        deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_unit deserialize_identifier deserialize_ignored_any
    }

    number! { deserialize_u16 deserialize_u32 }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let within = self.nested::<_, D::Error>(visitor)?;
        self.inner.deserialize_option(within)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let mut within = self.nested::<_, D::Error>(visitor)?;
        within.limit = self.check.limit(name);
        self.inner.deserialize_newtype_struct(name, within)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let within = self.nested::<_, D::Error>(visitor)?;
        self.inner.deserialize_seq(within)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let within = self.nested::<_, D::Error>(visitor)?;
        self.inner.deserialize_tuple(len, within)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let within = self.nested::<_, D::Error>(visitor)?;
        self.inner.deserialize_tuple_struct(name, len, within)
    }

    fn deserialize_map<V: Visitor<'de>>(self, _: V) -> Result<V::Value, D::Error> {
        Err(D::Error::custom("a plan has no maps"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let within = self.nested::<_, D::Error>(visitor)?;
        self.inner.deserialize_struct(name, fields, within)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let within = self.nested::<_, D::Error>(visitor)?;
        self.inner.deserialize_enum(name, variants, within)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// What reads the inside of something, be it a visitor, a seed or an access: it gives no deserializer away
/// that is not looked at.
struct Within<'c, T> {
    inner: T,
    check: &'c Check,
    left: usize,
    limit: Option<Limit>,
}

impl<'c, T> Within<'c, T> {
    /// The same place, for another.
    fn with<O>(&self, inner: O) -> Within<'c, O> {
        Within {
            inner,
            check: self.check,
            left: self.left,
            limit: self.limit,
        }
    }

    fn checked<D>(&self, inner: D) -> Checked<'c, D> {
        Checked {
            inner,
            check: self.check,
            left: self.left,
            limit: self.limit,
        }
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Within<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        let from = self.checked(from);
        self.inner.visit_some(from)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        let from = self.checked(from);
        self.inner.visit_newtype_struct(from)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let access = self.with(access);
        self.inner.visit_seq(access)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let access = self.with(access);
        self.inner.visit_enum(access)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Within<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        let from = self.checked(from);
        self.inner.deserialize(from)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Within<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let seed = self.with(seed);
        self.inner.next_element_seed(seed)
    }

    /// Not what the bytes say: room is made for what has come.
    fn size_hint(&self) -> Option<usize> {
        None
    }
}

impl<'c, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Within<'c, A> {
    type Error = A::Error;
    type Variant = Within<'c, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let Self {
            inner,
            check,
            left,
            limit,
        } = self;
        let (which, variant) = inner.variant_seed(seed)?;
        let variant = Within {
            inner: variant,
            check,
            left,
            limit,
        };
        Ok((which, variant))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Within<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.with(seed);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = self.with(visitor);
        self.inner.tuple_variant(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.with(visitor);
        self.inner.struct_variant(fields, visitor)
    }
}

/// Passes a number on that is below its limit.
struct Number<'c, V> {
    visitor: V,
    check: &'c Check,
    limit: Limit,
}

impl<V> Number<'_, V> {
    fn check<E: serde::de::Error>(&self, found: u64) -> Result<(), E> {
        let Limit { part, most } = self.limit;
        match found < most {
            true => Ok(()),
            false => Err(self.check.fail(PlanWireError::Number { part, found, most })),
        }
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Number<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_u16<E: serde::de::Error>(self, number: u16) -> Result<V::Value, E> {
        self.check(number.into())?;
        self.visitor.visit_u16(number)
    }

    fn visit_u32<E: serde::de::Error>(self, number: u32) -> Result<V::Value, E> {
        self.check(number.into())?;
        self.visitor.visit_u32(number)
    }
}
