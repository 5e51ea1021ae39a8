//! What must a peer know to reach memory or a bell of another node, and how does that travel?

pub use jindou_model::NodeId;

use crate::FabricError;

/// The longest name that a fabric may give to its memory, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 4096;
/// Node, length of the memory, length of the name.
const KEY_HEADER_BYTES: usize = 4 + 8 + 4;

/// What a peer needs to address a registered memory; travels as bytes.
///
/// A key is good until its [`Registration`](crate::remote::Registration) is dropped or its node
/// ends. No later memory of any node has the same key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemoryKey {
    node: NodeId,
    length: u64,
    name: Box<[u8]>,
}

impl MemoryKey {
    pub(crate) fn new(node: NodeId, length: u64, name: &[u8]) -> Self {
        assert!(name.len() <= MAX_NAME_BYTES, "a key of a memory is short");
        let name = name.into();
        Self { node, length, name }
    }

    /// The owner of the memory.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Bytes of the memory.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// What the owner's fabric calls the memory.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// The key as bytes, for [`MemoryKey::from_bytes`] on a node of the same build.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(KEY_HEADER_BYTES + self.name.len());
        bytes.extend(self.node.0.to_le_bytes());
        bytes.extend(self.length.to_le_bytes());
        bytes.extend((self.name.len() as u32).to_le_bytes());
        bytes.extend(&self.name);
        bytes
    }

    /// The key that [`MemoryKey::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`FabricError::Malformed`] if the bytes are no such key, and nothing else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FabricError> {
        let mut fields = Fields::new(bytes, "key of a memory");
        let node = NodeId(fields.u32()?);
        let length = fields.u64()?;
        let name_bytes = fields.u32()? as usize;
        if name_bytes > MAX_NAME_BYTES {
            return Err(fields.malformed());
        }
        let name = fields.bytes(name_bytes)?;
        fields.end()?;
        Ok(Self::new(node, length, name))
    }
}

/// Where a [`Doorbell`](crate::remote::Doorbell) hangs: what a peer needs to ring it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BellAddress {
    /// The node that waits.
    pub node: NodeId,
    /// The bell's number there; 0 is none's.
    pub number: u64,
}

impl BellAddress {
    /// Bytes of an address.
    pub const BYTES: usize = 12;

    /// The address as bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.node.0.to_le_bytes());
        bytes[4..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    /// The address that [`BellAddress::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`FabricError::Malformed`] if the bytes are no such address, and nothing else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FabricError> {
        let mut fields = Fields::new(bytes, "address of a bell");
        let node = NodeId(fields.u32()?);
        let number = fields.u64()?;
        fields.end()?;
        Ok(Self { node, number })
    }
}

/// Reads numbers from bytes that came from elsewhere.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(rest: &'a [u8], what: &'static str) -> Self {
        Self { rest, what }
    }

    pub(crate) fn malformed(&self) -> FabricError {
        FabricError::Malformed(self.what)
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], FabricError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(FabricError::Malformed(self.what))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// All that was not read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FabricError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(self.malformed())?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*bytes))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, FabricError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(self.malformed())?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    pub(crate) fn end(&self) -> Result<(), FabricError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.malformed())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_addresses_come_back_from_their_bytes_and_from_no_others() {
        let key = MemoryKey::new(NodeId(7), 1 << 40, b"name");
        let bytes = key.to_bytes();
        assert_eq!(MemoryKey::from_bytes(&bytes), Ok(key));
        for length in 0..bytes.len() {
            assert!(MemoryKey::from_bytes(&bytes[..length]).is_err());
        }
        let longer = [&bytes[..], b"x"].concat();
        assert!(MemoryKey::from_bytes(&longer).is_err());
        let mut endless = bytes;
        endless[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(MemoryKey::from_bytes(&endless).is_err());

        let (node, number) = (NodeId(3), 9);
        let bell = BellAddress { node, number };
        assert_eq!(BellAddress::from_bytes(&bell.to_bytes()), Ok(bell));
        assert!(BellAddress::from_bytes(&bell.to_bytes()[1..]).is_err());
    }
}
