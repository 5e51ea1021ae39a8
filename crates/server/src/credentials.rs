//! Who may use the server? The file of credentials says so.
//!
//! A line is `NAME:ROLE:HASH`, where the hash of the password is a PHC string of Argon2, or
//! `token:NAME:ROLE:HASH`, where it is the SHA-256 of a token in hexadecimal digits. A password may be
//! guessed, which a slow hash makes dear; a token is 256 random bits, which nobody guesses. Empty lines
//! and those that begin with `#` say nothing.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use argon2::password_hash::{PasswordHash, PasswordHasher, SaltString};
use argon2::{Argon2, Params, PasswordVerifier};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::files::read_bounded;
use crate::watched::Watched;

/// The largest file of credentials, in bytes.
const MOST_FILE_BYTES: u64 = 1 << 20;
/// The most memory that verifying a password may take, in KiB.
const MOST_HASH_KIB: u32 = 256 << 10;
/// And how often it may pass over that memory.
const MOST_HASH_PASSES: u32 = 16;
const SALT_BYTES: usize = 16;
const TOKEN_BYTES: usize = 32;
/// What begins a line about a token; no user has this name.
const TOKEN: &str = "token";

/// What somebody may do; each may do what those before may, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Ask queries, and read graphs and streams.
    Read,
    /// Change the data, and feed streams.
    Write,
    /// Define streams and continuous queries, watch the server, and end others' queries.
    Admin,
}

impl Role {
    /// Its name in a file of credentials.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no role.
#[derive(Debug, thiserror::Error)]
#[error("a role is read, write or admin")]
pub struct NoRole;

impl FromStr for Role {
    type Err = NoRole;

    fn from_str(name: &str) -> Result<Self, NoRole> {
        let all = [Self::Read, Self::Write, Self::Admin];
        let role = all.into_iter().find(|role| role.name() == name);
        role.ok_or(NoRole)
    }
}

/// Why a file of credentials cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A line of it is wrong.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong, which has nothing of a hash.
        reason: String,
    },
    /// It has no lines: nobody could log in, and those who try would count as guessing.
    #[error(
        "{} names nobody; `jindou hash-password` writes a line for somebody", path.display()
    )]
    Nobody {
        /// The file.
        path: PathBuf,
    },
}

/// Somebody of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: Arc<str>,
    pub(crate) role: Role,
}

/// The line that somebody claims to be: that of a name, or of a token by its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    Name(Arc<str>),
    Token([u8; 32]),
}

/// The hash of a token.
pub(crate) fn hash_token(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// What a file says.
#[derive(Default)]
pub(crate) struct Entries {
    /// With the hashes of their passwords.
    users: HashMap<Arc<str>, (User, String)>,
    /// The hash that takes longest to verify, and what it costs: memory in KiB times passes.
    dearest: Option<(u64, String)>,
    /// By the hashes of tokens. How long one is looked for tells of the hash at most, and nobody finds a
    /// token by its hash.
    tokens: HashMap<[u8; 32], User>,
}

/// A file of credentials, as it was when it was last read; clones share it.
#[derive(Clone)]
pub struct Credentials(Arc<Watched<Entries, CredentialsError>>);

impl fmt::Debug for Credentials {
    /// The file's name: hashes belong in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = self.0.paths();
        f.debug_tuple("Credentials").field(&paths).finish()
    }
}

impl Credentials {
    /// Reads a file.
    ///
    /// # Errors
    /// A file that cannot be read, and the first line that is wrong.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, CredentialsError> {
        let watched = Watched::new([path.into()], |paths| read(&paths[0]))?;
        Ok(Self(Arc::new(watched)))
    }

    /// Reads the file again. One that cannot be used changes nothing.
    ///
    /// # Errors
    /// As [`Credentials::read`].
    pub fn reread(&self) -> Result<(), CredentialsError> {
        self.0.reread()
    }

    /// Reads the file again if it has changed since it was last tried; `None` if it has not.
    pub(crate) fn reread_if_changed(&self) -> Option<Result<(), CredentialsError>> {
        self.0.reread_if_changed()
    }

    /// What the file says now; another value once it was read again.
    pub(crate) fn entries(&self) -> Arc<Entries> {
        self.0.value()
    }
}

impl Entries {
    /// Who has this password. Takes some ten milliseconds. For a name that is not there the dearest hash of
    /// the file is verified: to be refused takes as long then, which would tell names otherwise.
    pub(crate) fn user(&self, name: &str, password: &[u8]) -> Option<User> {
        let known = self.users.get(name);
        // Without users there is no name to tell.
        let hash = known.map(|(_, hash)| hash);
        let hash = hash.or(self.dearest.as_ref().map(|(_, hash)| hash))?;
        let hash = PasswordHash::new(hash).expect("it was parsed when the file was read");
        let is_right = Argon2::default().verify_password(password, &hash).is_ok();
        known.filter(|_| is_right).map(|(user, _)| user.clone())
    }

    /// Who has the token of this hash.
    pub(crate) fn bearer(&self, hash: &[u8; 32]) -> Option<User> {
        self.tokens.get(hash).cloned()
    }

    /// Whether another file says the same of a line.
    pub(crate) fn says_as(&self, other: &Self, claim: &Claim) -> bool {
        match claim {
            Claim::Name(name) => self.users.get(name) == other.users.get(name),
            Claim::Token(hash) => self.tokens.get(hash) == other.tokens.get(hash),
        }
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let (is_token, rest) = match line.strip_prefix("token:") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let mut parts = rest.splitn(3, ':');
        let (Some(name), Some(role), Some(hash)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(
                "a line is NAME:ROLE:HASH or token:NAME:ROLE:HASH, as `jindou hash-password` \
                        prints"
                    .to_owned(),
            );
        };
        check_name(name)?;
        let role: Role = role.parse().map_err(|e: NoRole| e.to_string())?;
        let name: Arc<str> = name.into();
        let user = User {
            name: Arc::clone(&name),
            role,
        };
        if is_token {
            let hash = digest(hash).ok_or("the hash of a token is 64 hexadecimal digits")?;
            self.tokens.insert(hash, user);
            return Ok(());
        }
        let cost = check_hash(hash)?;
        if self.dearest.as_ref().is_none_or(|(most, _)| cost > *most) {
            self.dearest = Some((cost, hash.to_owned()));
        }
        let before = self
            .users
            .insert(Arc::clone(&name), (user, hash.to_owned()));
        match before {
            None => Ok(()),
            Some(_) => Err(format!("there is a line for {name} already")),
        }
    }
}

/// Fails if nobody may have this name.
///
/// # Errors
/// The rule.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_name = !name.is_empty()
        && name != TOKEN
        && !name.starts_with('#')
        && !name.contains(|c: char| c == ':' || c.is_control() || c.is_whitespace());
    match is_name {
        true => Ok(()),
        false => Err("a name has no colon and no space, and is neither empty nor `token`".into()),
    }
}

/// What a hash costs to verify: memory in KiB times passes.
///
/// # Errors
/// What is wrong with it, or too dear.
fn check_hash(hash: &str) -> Result<u64, String> {
    let wrong = |what: &dyn fmt::Display| format!("no PHC string of Argon2: {what}");
    let parsed = PasswordHash::new(hash).map_err(|error| wrong(&error))?;
    argon2::Algorithm::try_from(parsed.algorithm).map_err(|error| wrong(&error))?;
    let parameters = Params::try_from(&parsed).map_err(|error| wrong(&error))?;
    if parsed.salt.is_none() || parsed.hash.is_none() {
        return Err(wrong(&"salt or hash is missing"));
    }
    let (memory_kib, passes) = (parameters.m_cost(), parameters.t_cost());
    if memory_kib > MOST_HASH_KIB {
        return Err(format!(
            "verifying would take more than {MOST_HASH_KIB} KiB"
        ));
    }
    if passes > MOST_HASH_PASSES {
        return Err(format!(
            "verifying would take more than {MOST_HASH_PASSES} passes"
        ));
    }
    Ok(u64::from(memory_kib) * u64::from(passes))
}

fn digest(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

fn read(path: &Path) -> Result<Entries, CredentialsError> {
    let failed = |source| CredentialsError::Io {
        path: path.to_owned(),
        source,
    };
    let bytes = read_bounded(path, MOST_FILE_BYTES).map_err(failed)?;
    let text = String::from_utf8(bytes).map_err(|error| failed(io::Error::other(error)))?;
    let mut entries = Entries::default();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        entries.add(line).map_err(|reason| CredentialsError::Line {
            path: path.to_owned(),
            line: number + 1,
            reason,
        })?;
    }
    // Who writes a file anew may have emptied it first.
    if entries.users.is_empty() && entries.tokens.is_empty() {
        let path = path.to_owned();
        return Err(CredentialsError::Nobody { path });
    }
    Ok(entries)
}

/// The hash of a password, as a file of credentials has it. Takes some ten milliseconds.
///
/// # Errors
/// A system without random numbers, and passwords that Argon2 does not take.
pub fn hash_password(password: &[u8]) -> io::Result<String> {
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(io::Error::other)?;
    let failed = |error| io::Error::other(format!("the password cannot be hashed: {error}"));
    let salt = SaltString::encode_b64(&salt).map_err(failed)?;
    let hash = Argon2::default().hash_password(password, &salt);
    Ok(hash.map_err(failed)?.to_string())
}

/// A new token, and its hash as a file of credentials has it.
///
/// # Errors
/// A system without random numbers.
pub fn new_token() -> io::Result<(String, String)> {
    use fmt::Write;
    let mut secret = [0; TOKEN_BYTES];
    getrandom::fill(&mut secret).map_err(io::Error::other)?;
    let token = URL_SAFE_NO_PAD.encode(secret);
    let mut hash = String::new();
    for byte in Sha256::digest(token.as_bytes()) {
        write!(hash, "{byte:02x}").expect("a String takes all");
    }
    Ok((token, hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Entries, CredentialsError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("users");
        std::fs::write(&path, text).expect("written");
        read(&path)
    }

    #[test]
    fn users_and_tokens_are_found_by_what_they_know() {
        let hash = hash_password(b"pa:ss").expect("a hash");
        let (token, token_hash) = new_token().expect("a token");
        let text = format!("# who\n\nann:write:{hash}\n token:bot:read:{token_hash}\n");
        let entries = of(&text).expect("it is right");
        let ann = entries.user("ann", b"pa:ss").expect("it is hers");
        assert_eq!((&*ann.name, ann.role), ("ann", Role::Write));
        assert_eq!(entries.user("ann", b"pa:s"), None);
        assert_eq!(entries.user("bob", b"pa:ss"), None);
        let bearer = |token: &str| entries.bearer(&hash_token(token.as_bytes()));
        let bot = bearer(&token).expect("it is its");
        assert_eq!((&*bot.name, bot.role), ("bot", Role::Read));
        assert_eq!(bearer(&token_hash), None);
    }

    #[test]
    fn a_line_has_changed_where_its_hash_its_role_or_its_being_there_has() {
        let (one, other) = (hash_password(b"1"), hash_password(b"1"));
        let (one, other) = (one.expect("a hash"), other.expect("a hash"));
        let (token, token_hash) = new_token().expect("a token");
        let before = of(&format!(
            "ann:read:{one}\nbob:read:{one}\ncat:read:{one}\ndan:read:{one}"
        ));
        let after = of(&format!(
            "ann:read:{one}\nbob:read:{other}\ncat:write:{one}\neve:read:{one}\ntoken:t:read:{token_hash}"
        ));
        let (before, after) = (before.expect("it is right"), after.expect("it is right"));
        let same = |claim: &Claim| {
            let same = after.says_as(&before, claim);
            assert_eq!(before.says_as(&after, claim), same);
            same
        };
        let names = ["ann", "bob", "cat", "dan", "eve", "nobody"];
        let found = names.map(|name| same(&Claim::Name(name.into())));
        assert_eq!(found, [true, false, false, false, false, true]);
        assert!(!same(&Claim::Token(hash_token(token.as_bytes()))));
        assert!(same(&Claim::Token(hash_token(b"another"))));
    }

    #[test]
    fn a_name_that_is_not_there_costs_what_the_dearest_of_the_file_does() {
        let hash = |m: u32, t: u32| {
            format!("$argon2id$v=19$m={m},t={t},p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA")
        };
        let (cheap, dear, other) = (hash(64, 2), hash(128, 16), hash(1024, 1));
        let text = format!("a:read:{cheap}\nb:read:{dear}\nc:read:{other}\n");
        let entries = of(&text).expect("it is right");
        assert_eq!(entries.dearest, Some((128 * 16, dear)));
        assert_eq!(entries.user("nobody", b"x"), None);
    }

    #[test]
    fn a_file_that_names_nobody_is_refused() {
        for text in ["", "\n", "# nobody\n"] {
            let refused = of(text).err();
            assert!(
                matches!(refused, Some(CredentialsError::Nobody { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn a_wrong_line_is_told_with_its_number_and_without_its_hash() {
        let hash = hash_password(b"x").expect("a hash");
        let twice = format!("a:read:{hash}\na:admin:{hash}");
        let dear = "\na:read:$argon2id$v=19$m=4194304,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA";
        let slow = "\na:read:$argon2id$v=19$m=19456,t=1000000,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA";
        let plain = "\na:read:secret";
        let role = format!("\na:root:{hash}");
        for (text, said) in [
            ("#\na:read", "line 2: a line is NAME:ROLE:HASH"),
            (plain, "line 2: no PHC string of Argon2"),
            (&role, "line 2: a role is read, write or admin"),
            ("\n:read:x", "line 2: a name has"),
            ("\ntoken:t:read:12", "line 2: the hash of a token"),
            (&twice, "line 2: there is a line for a already"),
            (dear, "line 2: verifying would take more than 262144 KiB"),
            (slow, "line 2: verifying would take more than 16 passes"),
        ] {
            let error = of(text).err().expect(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
