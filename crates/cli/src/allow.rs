//! What do the options allow SERVICE to call, LOAD to read, and sources and sinks to connect to?

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use anyhow::{Context, bail};
use jindou_engine::{AddressPolicy, AddressPrefix, LoadPolicy, host_and_port};
use jindou_server::BrokerPolicy;

/// What SERVICE may call, by one of possibly several options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AllowService {
    Any,
    None,
    Prefix(AddressPrefix),
}

/// What SERVICE may call, by all options together; `None` if there is no option.
pub(crate) fn service_policy(allowed: &[AllowService]) -> Option<AddressPolicy> {
    if allowed.is_empty() {
        return None;
    }
    if allowed.contains(&AllowService::Any) {
        return Some(AddressPolicy::Any);
    }
    let prefixes: Vec<AddressPrefix> = allowed
        .iter()
        .filter_map(|allow| match allow {
            AllowService::Prefix(prefix) => Some(prefix.clone()),
            AllowService::Any | AllowService::None => None,
        })
        .collect();
    Some(if prefixes.is_empty() {
        AddressPolicy::None
    } else {
        AddressPolicy::Allowed(prefixes.into())
    })
}

/// What sources and sinks may connect to, by one of possibly several options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AllowBroker {
    Any,
    None,
    Address(String),
}

/// What sources and sinks may connect to, by all options together.
pub(crate) fn broker_policy(allowed: &[AllowBroker]) -> BrokerPolicy {
    if allowed.contains(&AllowBroker::Any) {
        return BrokerPolicy::Any;
    }
    let address = |allow: &AllowBroker| match allow {
        AllowBroker::Address(address) => Some(address.clone()),
        AllowBroker::Any | AllowBroker::None => None,
    };
    let addresses: BTreeSet<String> = allowed.iter().filter_map(address).collect();
    match addresses.is_empty() {
        true => BrokerPolicy::None,
        false => BrokerPolicy::Allowed(addresses),
    }
}

/// What LOAD may read, by one of possibly several options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AllowLoad {
    Folder(PathBuf),
    Web,
    Prefix(AddressPrefix),
}

/// Fails if a folder that LOAD may read is not there, as where its name is misspelt: every LOAD of
/// it would be refused then.
///
/// # Errors
/// The folder.
pub(crate) fn check_folders(allowed: &[AllowLoad]) -> anyhow::Result<()> {
    for allow in allowed {
        let AllowLoad::Folder(folder) = allow else {
            continue;
        };
        let name = folder.display();
        match std::fs::metadata(folder) {
            Ok(_) => (),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                bail!(
                    "--allow-load {name}: there is no such folder; make it first, or name another"
                )
            }
            Err(error) => return Err(error).with_context(|| format!("--allow-load {name}")),
        }
    }
    Ok(())
}

/// What LOAD may read of files and of the web, by all options together.
pub(crate) fn load_policies(allowed: &[AllowLoad]) -> (LoadPolicy, AddressPolicy) {
    let (mut folders, mut prefixes, mut all_addresses) = (Vec::new(), Vec::new(), false);
    for allow in allowed {
        match allow {
            AllowLoad::Folder(folder) => folders.push(folder.clone()),
            AllowLoad::Web => all_addresses = true,
            AllowLoad::Prefix(prefix) => prefixes.push(prefix.clone()),
        }
    }
    let files = match folders.as_slice() {
        [] => LoadPolicy::None,
        _ => LoadPolicy::Folders(folders),
    };
    let addresses = match prefixes.as_slice() {
        _ if all_addresses => AddressPolicy::Any,
        [] => AddressPolicy::None,
        _ => AddressPolicy::Allowed(prefixes.into()),
    };
    (files, addresses)
}

pub(crate) fn parse_load(text: &str) -> Result<AllowLoad, String> {
    if text == "web" {
        return Ok(AllowLoad::Web);
    }
    let folder = text.strip_prefix("file://").unwrap_or(text);
    if !folder.contains("://") {
        return Ok(AllowLoad::Folder(PathBuf::from(folder)));
    }
    text.parse()
        .map(AllowLoad::Prefix)
        .map_err(|error: jindou_engine::InvalidAddressPrefix| error.reason)
}

pub(crate) fn parse_service(text: &str) -> Result<AllowService, String> {
    match text {
        "any" => Ok(AllowService::Any),
        "none" => Ok(AllowService::None),
        prefix => prefix
            .parse()
            .map(AllowService::Prefix)
            .map_err(|error: jindou_engine::InvalidAddressPrefix| error.reason),
    }
}

pub(crate) fn parse_broker(text: &str) -> Result<AllowBroker, String> {
    match text {
        "any" => Ok(AllowBroker::Any),
        "none" => Ok(AllowBroker::None),
        address if host_and_port(address).is_some() => {
            Ok(AllowBroker::Address(address.to_ascii_lowercase()))
        }
        _ => Err("a broker is HOST:PORT, `any` or `none`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_reads_what_is_allowed_only() {
        let policies = |texts: &[&str]| {
            let allowed: Vec<AllowLoad> = texts
                .iter()
                .map(|text| parse_load(text).expect(text))
                .collect();
            load_policies(&allowed)
        };
        let folders =
            |names: &[&str]| LoadPolicy::Folders(names.iter().map(PathBuf::from).collect());
        let prefix = "https://e/d".parse().expect("a prefix");
        let one = AddressPolicy::Allowed([prefix].into());
        assert_eq!(policies(&[]), (LoadPolicy::None, AddressPolicy::None));
        assert_eq!(
            policies(&["a", "/b"]),
            (folders(&["a", "/b"]), AddressPolicy::None)
        );
        assert_eq!(policies(&["https://e/d"]), (LoadPolicy::None, one.clone()));
        assert_eq!(policies(&["a", "https://e/d"]), (folders(&["a"]), one));
        assert_eq!(
            policies(&["https://e/d", "web"]),
            (LoadPolicy::None, AddressPolicy::Any)
        );
        assert_eq!(
            policies(&["file:///b"]),
            (folders(&["/b"]), AddressPolicy::None)
        );
        let refused = parse_load("ftp://e/").expect_err("no address of HTTP");
        assert!(refused.contains("http://"), "{refused}");
    }

    #[test]
    fn brokers_are_allowed_by_all_options_together() {
        let policy = |texts: &[&str]| {
            let allowed: Result<Vec<_>, _> = texts.iter().map(|text| parse_broker(text)).collect();
            broker_policy(&allowed.expect("they are options"))
        };
        assert_eq!(policy(&[]), BrokerPolicy::None);
        assert_eq!(policy(&["none"]), BrokerPolicy::None);
        assert_eq!(policy(&["a:1", "any"]), BrokerPolicy::Any);
        let both = ["a:1".to_owned(), "b:2".to_owned()].into();
        assert_eq!(policy(&["A:1", "b:2", "none"]), BrokerPolicy::Allowed(both));
        assert!(parse_broker("a").is_err() && parse_broker("kafka://a:1").is_err());
    }

    #[test]
    fn services_are_allowed_by_all_options_together() {
        let policy = |texts: &[&str]| {
            let allowed: Vec<_> = texts.iter().map(|text| parse_service(text)).collect();
            service_policy(&allowed.into_iter().collect::<Result<Vec<_>, _>>().unwrap())
        };
        assert_eq!(policy(&[]), None);
        assert_eq!(policy(&["none"]), Some(AddressPolicy::None));
        assert_eq!(policy(&["http://e/", "any"]), Some(AddressPolicy::Any));
        let prefix = "http://e/".parse().unwrap();
        let allowed = AddressPolicy::Allowed([prefix].into());
        assert_eq!(policy(&["none", "http://e/"]), Some(allowed));
        assert!(parse_service("e").is_err() && parse_service("file:///e").is_err());
    }
}
