//! Where may an option of `jindou serve` come from? The command line, the environment, or a file.
//!
//! Earlier sources take precedence. What a file gives becomes part of the command line where neither of
//! the others names the option, so that all that holds between options holds whichever source gives them.
//! A variable that is empty is as one that is not set: who runs containers and services often cannot unset
//! one.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};
use jindou_server::read_bounded;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::values::parse_address;

/// The largest file of options, in bytes.
const MOST_BYTES: u64 = 1 << 20;
/// The option that names the file.
const CONFIG: &str = "config";
/// An option that says part of what another does: where that is given with more weight, it is not asked.
const PART: &str = "port";
const WHOLE: &str = "bind";
/// The option that makes a server speak TLS.
const CERTIFICATE: &str = "tls-certificate";
/// How alike a name must be to one that is not there, to be suggested; from 0 to 1.
const ALIKE: f64 = 0.7;
/// How all variables begin.
const BEGINNING: &str = "JINDOU_";
/// The filter of the program's own lines.
const LOG_FILTER: &str = "JINDOU_LOG";
/// What tests and builds of this program are asked by, which run it with the same environment.
const OF_TESTS: [&str; 24] = [
    "BATCHES",
    "BIN",
    "CASES",
    "COMMIT",
    "CRASHES",
    "CRASH_SEED",
    "CRASH_STATES",
    "ELSEWHERE",
    "FABRIC_CHILD",
    "FORKS",
    "FUZZ_CASES",
    "FUZZ_SEED",
    "NODES",
    "REWRITE_PLANS",
    "SECONDS",
    "SEED",
    "SHARDS",
    "SMALL_DEVICE",
    "SYNTAX_TEXTS",
    "WINDOW_SEED",
    "WINDOW_SEEDS",
    "WRITE_MESSAGES",
    "KILLS",
    "MEMBERS",
];
/// How more of these begin, and those that Kubernetes sets for a service that is called so, too.
const OF_OTHERS: [&str; 3] = ["KILL_", "SERVICE_", "PORT_"];

/// Lets the environment give each option that the command line does not: `JINDOU_BIND` is `--bind`. The
/// line is to be without what a file adds, which has less weight than the environment.
pub(crate) fn with_variables(command: Command, line: &[OsString]) -> Command {
    let has_whole = command
        .get_arguments()
        .any(|argument| argument.get_long() == Some(WHOLE) && is_on(line, argument));
    command.mut_args(|argument| {
        let Some(long) = argument.get_long() else {
            return argument;
        };
        if long == PART && has_whole {
            return argument;
        }
        let variable = variable(long);
        if value_of(&variable).is_none() {
            return argument;
        }
        let repeats = matches!(argument.get_action(), ArgAction::Append);
        // A variable has one value only, so one of an option that may be repeated is a list.
        let is_list = repeats && !is_on(line, &argument);
        let argument = argument.env(variable).hide_env(true);
        match is_list {
            true => argument.value_delimiter(','),
            false => argument,
        }
    })
}

/// The command and those below it without their variables that are empty.
pub(crate) fn without_empty(command: Command) -> Command {
    let is_empty = |argument: &Arg| {
        let variable = argument.get_env();
        variable.is_some_and(|name| std::env::var_os(name).is_some_and(|value| value.is_empty()))
    };
    let command = command.mut_args(|argument| match is_empty(&argument) {
        true => argument.env(None::<&'static str>),
        false => argument,
    });
    command.mut_subcommands(without_empty)
}

/// The error names the variable that a value comes from, if it is about one.
pub(crate) fn naming_variable(
    mut error: clap::Error,
    command: &Command,
    line: &[OsString],
) -> clap::Error {
    if !matches!(
        error.kind(),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation
    ) {
        return error;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let long = option.split_whitespace().next().unwrap_or_default();
    let is_it = |argument: &&Arg| argument.get_long() == long.strip_prefix("--");
    let mut arguments = asked(command, line).get_arguments().filter(is_it);
    let argument = arguments.next().filter(|argument| !is_on(line, argument));
    if let Some(variable) = argument.and_then(Arg::get_env) {
        let named = format!("{} ({option})", variable.to_string_lossy());
        error.insert(ContextKind::InvalidArg, ContextValue::String(named));
    }
    error
}

/// The command that a line is of.
fn asked<'c>(mut command: &'c Command, line: &[OsString]) -> &'c Command {
    for word in line.iter().skip(1) {
        match word.to_str().and_then(|word| command.find_subcommand(word)) {
            Some(below) => command = below,
            None => break,
        }
    }
    command
}

/// What is said of variables that look as if they were of an option, and are of none.
pub(crate) fn unknown_variables(
    command: &Command,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<String> {
    let mut known = BTreeSet::from([LOG_FILTER.to_owned()]);
    add_variables(command, &mut known);
    let is_others = |rest: &str| {
        OF_TESTS.contains(&rest) || OF_OTHERS.iter().any(|begin| rest.starts_with(begin))
    };
    let mut said = Vec::new();
    for (name, value) in variables {
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(BEGINNING)) else {
            continue;
        };
        let name = format!("{BEGINNING}{rest}");
        if value.is_empty() || known.contains(&name) || is_others(rest) {
            continue;
        }
        let names = known
            .iter()
            .filter_map(|known| known.strip_prefix(BEGINNING));
        said.push(match most_alike(rest, names.map(|name| (name, name))) {
            Some(near) => format!("{name} names no option; did you mean {BEGINNING}{near}?"),
            None => format!("{name} names no option"),
        });
    }
    said.sort();
    said
}

/// Adds the variables of the options of a command and those below it.
fn add_variables(command: &Command, known: &mut BTreeSet<String>) {
    let is_serve = command.get_name() == "serve";
    for argument in command.get_arguments() {
        let of_serve = argument.get_long().filter(|_| is_serve).map(variable);
        let own = argument.get_env();
        known.extend(of_serve);
        known.extend(own.map(|name| name.to_string_lossy().into_owned()));
    }
    for below in command.get_subcommands() {
        add_variables(below, known);
    }
}

/// What has the name that is most like one that is not there.
fn most_alike<'n>(
    name: &str,
    known: impl IntoIterator<Item = (&'n str, &'n str)>,
) -> Option<&'n str> {
    let mut nearest: Option<(f64, &str)> = None;
    for (other, stands_for) in known {
        let alike = strsim::jaro_winkler(name, other);
        if alike > nearest.map_or(ALIKE, |(alike, _)| alike) {
            nearest = Some((alike, stands_for));
        }
    }
    nearest.map(|(_, stands_for)| stands_for)
}

/// The value of a variable that is set and not empty.
fn value_of(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

/// A command line of `jindou serve` with those options of its file that neither it nor the environment gives.
///
/// # Errors
/// A file that cannot be read, and the first thing in it that is wrong, with its place.
pub(crate) fn with_file(
    command: &Command,
    mut line: Vec<OsString>,
) -> Result<Vec<OsString>, clap::Error> {
    let asks_for_help = |word: &OsString| word == "--help" || word == "-h";
    if options(&line).any(asks_for_help) {
        return Ok(line);
    }
    let named = value_on(&line, CONFIG).or_else(|| value_of(&variable(CONFIG)));
    let Some(path) = named.filter(|path| !path.is_empty()).map(PathBuf::from) else {
        return Ok(line);
    };
    let wrong = |error: WrongFile| clap::Error::raw(ErrorKind::Io, format!("{error}\n"));
    let text = read(&path).map_err(wrong)?;
    let file = File {
        path: &path,
        text: &text,
        command,
    };
    let given = file.options().map_err(wrong)?;
    let serve = file.serve();
    let is_given = |long: &str| {
        let arguments = serve.get_arguments();
        let argument = arguments.filter(|argument| argument.get_long() == Some(long));
        let is_set = value_of(&variable(long)).is_some();
        is_set || { argument }.any(|argument| is_on(&line, argument))
    };
    let mut words = Vec::new();
    for option in given {
        let is_part = option.long == PART && is_given(WHOLE);
        if !is_given(&option.long) && !is_part {
            words.extend(option.words.into_iter().map(OsString::from));
        }
    }
    // Before all others: after `--` there are no options.
    line.splice(2..2, words);
    Ok(line)
}

/// Where a server listens that is started with the environment of this process.
pub(crate) struct Listening {
    address: SocketAddr,
    pub(crate) is_tls: bool,
}

impl Listening {
    /// What the environment and the file that it names say.
    ///
    /// # Errors
    /// A file that is wrong, and an address or a port that is.
    pub(crate) fn of_environment(command: &Command) -> anyhow::Result<Self> {
        let of_variable = |long: &str| {
            let value = std::env::var(variable(long)).ok();
            value.filter(|value| !value.is_empty())
        };
        let path = of_variable(CONFIG).map(PathBuf::from);
        let text = path.as_deref().map(read).transpose();
        let (text, path) = (text.map_err(wrong_file)?, path.unwrap_or_default());
        let file = File {
            path: &path,
            text: text.as_deref().unwrap_or_default(),
            command,
        };
        let given = file.options().map_err(wrong_file)?;
        let of_file = |long: &str| {
            let option = given.iter().find(|given| given.long == long)?;
            let value = option.words.first()?.split_once('=');
            value.map(|(_, value)| value.to_owned())
        };
        let (whole, part) = (of_variable(WHOLE), of_variable(PART));
        // The port of a file is part of its address.
        let part = part.or_else(|| of_file(PART).filter(|_| whole.is_none()));
        let by_default = || {
            let arguments = file.serve().get_arguments();
            let mut bind = arguments.filter(|argument| argument.get_long() == Some(WHOLE));
            let default = bind
                .next()
                .and_then(|bind| bind.get_default_values().first());
            default.expect("it has one").to_string_lossy().into_owned()
        };
        let named = |long: &str| match of_variable(long) {
            Some(_) => variable(long),
            None => long.to_owned(),
        };
        let whole = whole.or_else(|| of_file(WHOLE)).unwrap_or_else(by_default);
        let address = parse_address(&whole);
        let mut address = address.map_err(|error| anyhow!("{} {whole}: {error}", named(WHOLE)))?;
        if let Some(part) = part {
            let port = part.parse();
            address.set_port(port.with_context(|| format!("{} {part}", named(PART)))?);
        }
        // All addresses of the machine are those of both families.
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        Ok(Self {
            address,
            is_tls: of_variable(CERTIFICATE)
                .or_else(|| of_file(CERTIFICATE))
                .is_some(),
        })
    }

    pub(crate) fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
}

fn wrong_file(error: WrongFile) -> anyhow::Error {
    anyhow!("{error}")
}

fn variable(long: &str) -> String {
    format!("{BEGINNING}{}", long.replace('-', "_").to_ascii_uppercase())
}

/// The words of a command line that may be options.
fn options(line: &[OsString]) -> impl Iterator<Item = &OsString> {
    line.iter().take_while(|word| *word != "--")
}

/// Whether a command line names an option, by any of its names.
fn is_on(line: &[OsString], argument: &Arg) -> bool {
    let aliases = argument.get_all_aliases().unwrap_or_default();
    let names: Vec<&str> = argument.get_long().into_iter().chain(aliases).collect();
    options(line).any(|word| {
        let word = word.to_string_lossy();
        let name = word
            .strip_prefix("--")
            .and_then(|word| word.split('=').next());
        name.is_some_and(|name| names.contains(&name))
    })
}

/// The value that a command line gives an option.
fn value_on(line: &[OsString], long: &str) -> Option<OsString> {
    let option = format!("--{long}");
    let mut words = options(line);
    while let Some(word) = words.next() {
        if *word == *option {
            return words.next().cloned();
        }
        let value = word.to_str().and_then(|word| word.strip_prefix(&option));
        if let Some(value) = value.and_then(|value| value.strip_prefix('=')) {
            return Some(value.into());
        }
    }
    None
}

fn read(path: &Path) -> Result<String, WrongFile> {
    let failed = |reason: String| WrongFile {
        path: path.to_owned(),
        place: None,
        reason,
    };
    let bytes = read_bounded(path, MOST_BYTES).map_err(|error| failed(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| failed(error.to_string()))
}

/// What is wrong with a file of options.
#[derive(Debug)]
struct WrongFile {
    path: PathBuf,
    /// Line and column, from 1.
    place: Option<(usize, usize)>,
    reason: String,
}

impl fmt::Display for WrongFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{CONFIG} {}", self.path.display())?;
        if let Some((line, column)) = self.place {
            write!(f, ", line {line}, column {column}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// An option that a file gives.
struct Given {
    long: String,
    /// As a command line would give it.
    words: Vec<String>,
    /// Where the file does.
    at: usize,
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
    command: &'a Command,
}

impl File<'_> {
    fn serve(&self) -> &Command {
        let serve = self.command.find_subcommand("serve");
        serve.expect("it is one of the commands")
    }

    fn wrong(&self, at: usize, reason: impl Into<String>) -> WrongFile {
        let before = &self.text[..self.text.floor_char_boundary(at)];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        WrongFile {
            path: self.path.to_owned(),
            place: Some((line, before[start..].chars().count() + 1)),
            reason: reason.into(),
        }
    }

    /// All options of the file, in its order.
    fn options(&self) -> Result<Vec<Given>, WrongFile> {
        let table = DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.wrong(at, error.message())
        })?;
        let mut found = Vec::new();
        self.collect("", table.get_ref(), &mut found)?;
        found.sort_by_key(|given| given.at);
        for (index, given) in found.iter().enumerate() {
            if found[..index]
                .iter()
                .any(|before| before.long == given.long)
            {
                let reason = format!("{} is given twice", given.long);
                return Err(self.wrong(given.at, reason));
            }
            self.check(given)?;
        }
        Ok(found)
    }

    /// Adds the options of a table. The name of one inside another goes before those of its options, as in
    /// `[tls]` with `key`.
    fn collect(
        &self,
        prefix: &str,
        table: &DeTable<'_>,
        found: &mut Vec<Given>,
    ) -> Result<(), WrongFile> {
        for (key, value) in table {
            let at = key.span().start;
            let long = format!("{prefix}{}", key.get_ref());
            if let DeValue::Table(table) = value.get_ref() {
                self.collect(&format!("{long}-"), table, found)?;
                continue;
            }
            let argument = self.argument(&long, at)?;
            let words = self.words(argument, &long, value)?;
            found.push(Given { long, words, at });
        }
        Ok(())
    }

    /// The option of a name.
    fn argument(&self, long: &str, at: usize) -> Result<&Arg, WrongFile> {
        let takes = |argument: &&Arg| {
            let name = argument.get_long();
            name.is_some_and(|name| !["help", "version", CONFIG].contains(&name))
        };
        let mut all = self.serve().get_arguments().filter(takes);
        if let Some(found) = all.find(|argument| argument.get_long() == Some(long)) {
            return Ok(found);
        }
        let known = self.serve().get_arguments().filter(takes);
        let known = known.flat_map(|argument| {
            let name = argument.get_long().expect("it was filtered by that");
            let aliases = argument.get_all_aliases().unwrap_or_default();
            let names = aliases.into_iter().chain([name]);
            names.map(move |other| (other, name))
        });
        let mut reason = format!("`jindou serve` has no option {long}");
        if let Some(name) = most_alike(long, known) {
            reason += &format!("; did you mean {name}?");
        }
        Err(self.wrong(at, reason))
    }

    /// The words by which a command line would give a value.
    fn words(
        &self,
        argument: &Arg,
        long: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Vec<String>, WrongFile> {
        let at = value.span().start;
        let is_flag = matches!(argument.get_action(), ArgAction::SetTrue);
        match value.get_ref() {
            DeValue::Boolean(given) if is_flag => {
                Ok(given.then(|| format!("--{long}")).into_iter().collect())
            }
            _ if is_flag => Err(self.wrong(at, format!("{long} is true or false"))),
            DeValue::Array(values) => {
                if !matches!(argument.get_action(), ArgAction::Append) {
                    return Err(self.wrong(at, format!("{long} has one value")));
                }
                let word = |value: &Spanned<DeValue<'_>>| {
                    Ok(format!("--{long}={}", self.text_of(long, value)?))
                };
                values.iter().map(word).collect()
            }
            _ => Ok(vec![format!("--{long}={}", self.text_of(long, value)?)]),
        }
    }

    /// One value, as a command line would have it.
    fn text_of(&self, long: &str, value: &Spanned<DeValue<'_>>) -> Result<String, WrongFile> {
        let at = value.span().start;
        Ok(match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
            DeValue::Integer(number) => {
                let number = i64::from_str_radix(number.as_str(), number.radix());
                let large = |_| self.wrong(at, "a number that is too large");
                number.map_err(large)?.to_string()
            }
            DeValue::Float(number) => number.as_str().to_owned(),
            DeValue::Boolean(_) | DeValue::Datetime(_) => {
                return Err(self.wrong(at, format!("{long} takes a string or a number")));
            }
            DeValue::Array(_) | DeValue::Table(_) => {
                return Err(self.wrong(at, format!("{long} takes strings or numbers")));
            }
        })
    }

    /// Has the option itself say whether it takes its value; what holds between options is seen once all are
    /// there.
    fn check(&self, given: &Given) -> Result<(), WrongFile> {
        let start = ["jindou", "serve"].map(str::to_owned);
        let line = start.iter().chain(&given.words);
        let Err(error) = self.command.clone().try_get_matches_from(line) else {
            return Ok(());
        };
        use ErrorKind::{ArgumentConflict, MissingRequiredArgument};
        if matches!(error.kind(), ArgumentConflict | MissingRequiredArgument) {
            return Ok(());
        }
        let said = error.to_string();
        let said = said.split("\n\n").next().unwrap_or(&said);
        let said: Vec<&str> = said.split_whitespace().collect();
        let said = said.join(" ");
        let said = said.strip_prefix("error: ").unwrap_or(&said);
        Err(self.wrong(given.at, said))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Arguments;

    #[test]
    fn a_variable_of_no_option_is_told_with_the_nearest_that_is() {
        let said = |set: &[(&str, &str)]| {
            let set = set.iter().map(|(name, value)| (name.into(), value.into()));
            unknown_variables(&Arguments::command(), set)
        };
        let known = [
            ("JINDOU_MEMORY", "1GiB"),
            ("JINDOU_TLS_KEY", "k"),
            // Of commands that ask a server.
            ("JINDOU_URL", "http://a"),
            ("JINDOU_TOKEN", "t"),
            ("JINDOU_LOG", "debug"),
            ("JINDOU_SEED", "7"),
            ("JINDOU_KILL_AT", "1"),
            ("JINDOU_SERVICE_HOST", "10.0.0.1"),
            ("JINDOU_PORT_7878_TCP", "tcp://10.0.0.1:7878"),
            ("JINDOU_MEMRY", ""),
            ("JINDOUX", "1"),
            ("PATH", "/bin"),
        ];
        assert_eq!(said(&known), Vec::<String>::new());
        assert_eq!(
            said(&[
                ("JINDOU_QUERY_TIMOUT", "1"),
                ("JINDOU_MEMRY", "1GiB"),
                ("JINDOU_XYZ", "1"),
            ]),
            [
                "JINDOU_MEMRY names no option; did you mean JINDOU_MEMORY?",
                "JINDOU_QUERY_TIMOUT names no option; did you mean JINDOU_QUERY_TIMEOUT?",
                "JINDOU_XYZ names no option",
            ]
        );
    }
}
