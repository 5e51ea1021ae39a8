//! How are the fields of steps written that are of other crates' types, or that are numbers of the plan?

/// The number of a step or operator: [`super::checked`] knows it by the name of its type.
pub(crate) mod plan_id {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct PlanId(u32);

    pub(crate) fn serialize<S: Serializer>(id: &u32, to: S) -> Result<S::Ok, S::Error> {
        PlanId(*id).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
        PlanId::deserialize(from).map(|id| id.0)
    }
}

/// A direction: true for `In`.
pub(crate) mod direction {
    use jindou_model::Direction;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        direction: &Direction,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        (*direction == Direction::In).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Direction, D::Error> {
        Ok(match bool::deserialize(from)? {
            true => Direction::In,
            false => Direction::Out,
        })
    }
}

/// What is counted: true for terms.
pub(crate) mod counted {
    use jindou_model::Counted;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(counted: &Counted, to: S) -> Result<S::Ok, S::Error> {
        (*counted == Counted::Terms).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Counted, D::Error> {
        Ok(match bool::deserialize(from)? {
            true => Counted::Terms,
            false => Counted::Edges,
        })
    }
}

/// An IRI, as its text.
pub(crate) mod iri {
    use oxrdf::NamedNode;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        iri: &Option<NamedNode>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        iri.as_ref().map(NamedNode::as_str).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<NamedNode>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(NamedNode::new)
            .transpose()
            .map_err(D::Error::custom)
    }
}
