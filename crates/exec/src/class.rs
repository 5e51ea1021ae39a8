//! Is a query light or heavy, wherever parts of it run?

use serde::{Deserialize, Serialize};

/// Whether others are not to wait for a query. A node of a cluster runs what other nodes' queries ask of it as it
/// runs its own queries of that class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum QueryClass {
    /// It takes little: it waits for no heavy one.
    #[default]
    Light,
    /// It may take long.
    Heavy,
}

impl QueryClass {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Light, Self::Heavy];
}

/// One thing for light queries, and one for heavy ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByClass<T> {
    /// For light ones.
    pub light: T,
    /// For heavy ones.
    pub heavy: T,
}

impl<T> ByClass<T> {
    /// What `make` makes for each class.
    pub fn new(mut make: impl FnMut(QueryClass) -> T) -> Self {
        Self {
            light: make(QueryClass::Light),
            heavy: make(QueryClass::Heavy),
        }
    }

    /// What `make` makes for each class.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn try_new<E>(mut make: impl FnMut(QueryClass) -> Result<T, E>) -> Result<Self, E> {
        Ok(Self {
            light: make(QueryClass::Light)?,
            heavy: make(QueryClass::Heavy)?,
        })
    }

    /// What `change` makes of each.
    pub fn map<U>(self, mut change: impl FnMut(QueryClass, T) -> U) -> ByClass<U> {
        ByClass {
            light: change(QueryClass::Light, self.light),
            heavy: change(QueryClass::Heavy, self.heavy),
        }
    }

    /// What `change` makes of each.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn try_map<U, E>(
        self,
        mut change: impl FnMut(QueryClass, T) -> Result<U, E>,
    ) -> Result<ByClass<U>, E> {
        Ok(ByClass {
            light: change(QueryClass::Light, self.light)?,
            heavy: change(QueryClass::Heavy, self.heavy)?,
        })
    }

    /// That of a class.
    pub fn of(&self, class: QueryClass) -> &T {
        match class {
            QueryClass::Light => &self.light,
            QueryClass::Heavy => &self.heavy,
        }
    }
}
