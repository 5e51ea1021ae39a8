//! Do the manifests of `packaging/` fit the command, the list of nodes and each other? What a container or a pod is started
//! with is given to the command here; what they are connected with is compared by name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use jindou_engine::PeerList;
use yaml_rust2::{Yaml, YamlLoader};

/// The port at which nodes meet.
const NODES_PORT: &str = "7900";

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

fn documents(name: &str) -> Vec<Yaml> {
    let text = fs::read_to_string(packaging().join(name)).unwrap();
    YamlLoader::load_from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[track_caller]
fn text(value: &Yaml) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text: {value:?}"))
}

#[track_caller]
fn texts(value: &Yaml) -> Vec<&str> {
    let list = value
        .as_vec()
        .unwrap_or_else(|| panic!("no list: {value:?}"));
    list.iter().map(text).collect()
}

/// The keys of a mapping.
#[track_caller]
fn keys(value: &Yaml) -> BTreeSet<&str> {
    let mapping = value
        .as_hash()
        .unwrap_or_else(|| panic!("no mapping: {value:?}"));
    mapping.keys().map(text).collect()
}

/// The one item of a list that has this name.
#[track_caller]
fn named<'a>(list: &'a Yaml, name: &str) -> &'a Yaml {
    let items = list.as_vec().unwrap_or_else(|| panic!("no list: {list:?}"));
    let item = items
        .iter()
        .find(|item| item["name"].as_str() == Some(name));
    item.unwrap_or_else(|| panic!("no {name} in {list:?}"))
}

/// The one document of a kind and a name.
#[track_caller]
fn resource<'a>(all: &'a [Yaml], kind: &str, name: &str) -> &'a Yaml {
    let is_it = |one: &&Yaml| {
        one["kind"].as_str() == Some(kind) && one["metadata"]["name"].as_str() == Some(name)
    };
    all.iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// Gives the command what a server is started with, in a folder without any file that this names.
fn serve(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command.current_dir(folder.path()).arg("serve");
    // Before those that are given, which would take its place.
    command.env("JINDOU_LOCATION", "store");
    command.args(arguments).envs(variables.iter().copied());
    command.output().unwrap()
}

/// Options are known and their values can be: it ends for want of the first file, and warns of no variable.
#[track_caller]
fn are_options(arguments: &[&str], variables: &[(&str, &str)]) {
    let output = serve(arguments, variables);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    let is_of_a_file = said.contains("/etc/jindou/") || said.contains("/run/secrets/");
    assert!(is_of_a_file, "{arguments:?}: {said}");
    assert!(!said.contains("names no option"), "{said}");
}

/// The value of an option.
#[track_caller]
fn value_of<'a>(arguments: &[&'a str], option: &str) -> &'a str {
    let values = arguments.iter().filter_map(|argument| {
        let (name, value) = argument.split_once('=')?;
        (name == option).then_some(value)
    });
    let values: Vec<&str> = values.collect();
    assert_eq!(values.len(), 1, "{option} in {arguments:?}");
    values[0]
}

fn secret_file(list: &str) -> String {
    let table: toml::Table = toml::from_str(list).unwrap();
    table["secret-file"].as_str().unwrap().to_owned()
}

#[test]
fn an_option_that_is_none_is_found() {
    let wrong = serve(&["--peers=/etc/jindou/nodes.toml", "--nods=a"], &[]);
    assert_eq!(wrong.status.code(), Some(2));
    let wrong = serve(&["--peers=/etc/jindou/nodes.toml"], &[]);
    assert_eq!(wrong.status.code(), Some(2), "--node is missing");
}

#[test]
fn containers_are_the_nodes_of_their_list() {
    let compose = &documents("compose.yaml")[0];
    let list = text(&compose["configs"]["nodes"]["content"]);
    let peers = PeerList::parse(list).unwrap();
    let services = &compose["services"];
    let is_node = |name: &&str| !services[*name]["environment"].is_badvalue();
    let nodes: BTreeSet<&str> = keys(services).into_iter().filter(is_node).collect();
    let names = peers.peers().iter().map(|peer| peer.name.as_str());
    assert_eq!(nodes, names.collect());
    for peer in peers.peers() {
        let name = peer.name.as_str();
        assert_eq!(peer.address, format!("{name}:{NODES_PORT}"));
        let service = &services[name];
        assert_eq!(text(&service["image"]), "jindou");
        let arguments = texts(&service["command"]);
        are_options(
            &arguments,
            &[("JINDOU_NODE", name), ("JINDOU_BIND", ":7878")],
        );
        assert_eq!(text(&service["environment"]["JINDOU_NODE"]), name);
        let config = &service["configs"][0];
        assert_eq!(text(&config["target"]), value_of(&arguments, "--peers"));
        assert_eq!(text(&config["source"]), "nodes");
        assert_eq!(texts(&service["volumes"]), [format!("{name}:/data")]);
        let port = text(&service["ports"][0]).strip_suffix(":7878").unwrap();
        assert_eq!(peer.http.as_deref(), Some(&*format!("http://{port}")));
        let health = texts(&service["healthcheck"]["test"]);
        assert_eq!(health, ["CMD", "/usr/bin/jindou", "health"]);
        assert_eq!(text(&service["restart"]), "unless-stopped");
        let secrets = [
            secret_file(list),
            value_of(&arguments, "--credentials").to_owned(),
        ];
        let mounted = texts(&service["secrets"]);
        assert_eq!(
            secrets.to_vec(),
            mounted
                .iter()
                .map(|name| format!("/run/secrets/{name}"))
                .collect::<Vec<_>>()
        );
        assert_eq!(
            mounted.into_iter().collect::<BTreeSet<_>>(),
            keys(&compose["secrets"])
        );
        let (scheme, rest) = value_of(&arguments, "--cluster").split_once("://").unwrap();
        assert_eq!((scheme, rest), ("http", "etcd:2379"));
        assert!(keys(&service["depends_on"]).is_subset(&keys(services)));
    }
    let volumes = keys(&compose["volumes"]);
    for name in keys(services) {
        for volume in texts(&services[name]["volumes"]) {
            let (volume, _) = volume.split_once(':').unwrap();
            assert!(volumes.contains(volume), "{name}: {volume}");
        }
    }
}

/// The documents of all files that `kubectl apply -k` reads.
fn resources() -> Vec<Yaml> {
    let kustomization = &documents("kubernetes/kustomization.yaml")[0];
    let named = texts(&kustomization["resources"]);
    let files = fs::read_dir(packaging().join("kubernetes")).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files = files.filter(|name| name.ends_with(".yaml") && name != "kustomization.yaml");
    assert_eq!(
        files.collect::<BTreeSet<_>>(),
        named.iter().map(|name| (*name).to_owned()).collect()
    );
    let all = named
        .iter()
        .map(|name| documents(&format!("kubernetes/{name}")));
    all.flatten().collect()
}

#[test]
fn pods_are_the_nodes_of_their_list() {
    let all = resources();
    let set = &resource(&all, "StatefulSet", "jindou")["spec"];
    let list = fs::read_to_string(packaging().join("kubernetes/nodes.toml")).unwrap();
    let peers = PeerList::parse(&list).unwrap();
    assert_eq!(set["replicas"].as_i64(), Some(peers.peers().len() as i64));
    let kustomization = &documents("kubernetes/kustomization.yaml")[0];
    let namespace = text(&kustomization["namespace"]);
    resource(&all, "Namespace", namespace);
    let service = text(&set["serviceName"]);
    for (number, peer) in peers.peers().iter().enumerate() {
        let name = format!("jindou-{number}");
        let host = format!("{name}.{service}.{namespace}.svc.cluster.local");
        assert_eq!(peer.name, name);
        assert_eq!(peer.address, format!("{host}:{NODES_PORT}"));
        assert_eq!(peer.http, Some(format!("http://{host}:7878")));
    }
    // Names of nodes have addresses of pods, before these are ready.
    let nodes = &resource(&all, "Service", service)["spec"];
    assert_eq!(text(&nodes["clusterIP"]), "None");
    assert_eq!(nodes["publishNotReadyAddresses"].as_bool(), Some(true));
    let labels = &set["template"]["metadata"]["labels"];
    for selector in [
        &nodes["selector"],
        &set["selector"]["matchLabels"],
        &resource(&all, "Service", "jindou")["spec"]["selector"],
        &resource(&all, "PodDisruptionBudget", "jindou")["spec"]["selector"]["matchLabels"],
        &resource(&all, "NetworkPolicy", "jindou")["spec"]["podSelector"]["matchLabels"],
    ] {
        assert_eq!(selector, labels);
    }
    let budget = &resource(&all, "PodDisruptionBudget", "jindou")["spec"];
    assert_eq!(budget["maxUnavailable"].as_i64(), Some(1));
}

#[test]
fn pods_start_the_command_with_what_is_mounted() {
    let all = resources();
    let pod = &resource(&all, "StatefulSet", "jindou")["spec"]["template"]["spec"];
    // A service called `jindou` would otherwise set JINDOU_PORT.
    assert_eq!(pod["enableServiceLinks"].as_bool(), Some(false));
    let container = named(&pod["containers"], "jindou");
    let arguments = texts(&container["args"]);
    let node = named(&container["env"], "JINDOU_NODE");
    assert_eq!(
        text(&node["valueFrom"]["fieldRef"]["fieldPath"]),
        "metadata.name"
    );
    // The folder of the store is made before the list is read.
    let elsewhere = |argument: &&&str| !argument.starts_with("--location=");
    let options: Vec<&str> = arguments.iter().filter(elsewhere).copied().collect();
    are_options(&options, &[("JINDOU_NODE", "jindou-0")]);
    for probe in ["startupProbe", "readinessProbe"] {
        assert_eq!(
            text(&container[probe]["httpGet"]["path"]),
            "/health",
            "{probe}"
        );
    }
    let list = fs::read_to_string(packaging().join("kubernetes/nodes.toml")).unwrap();
    let kustomization = &documents("kubernetes/kustomization.yaml")[0];
    let generated = |generator: &str, name: &str, file: &str| {
        let files = texts(&named(&kustomization[generator], name)["files"]);
        assert!(files.contains(&file), "{name}: {file}");
    };
    for (path, volume, generator) in [
        (
            value_of(&arguments, "--peers"),
            "nodes",
            "configMapGenerator",
        ),
        (
            value_of(&arguments, "--credentials"),
            "secret",
            "secretGenerator",
        ),
        (&*secret_file(&list), "secret", "secretGenerator"),
    ] {
        let (folder, file) = path.rsplit_once('/').unwrap();
        assert_eq!(
            text(&named(&container["volumeMounts"], volume)["mountPath"]),
            folder
        );
        let source = named(&pod["volumes"], volume);
        let source = match generator {
            "secretGenerator" => &source["secret"]["secretName"],
            _ => &source["configMap"]["name"],
        };
        generated(generator, text(source), file);
    }
    let etcd = resource(&all, "Service", "etcd");
    assert_eq!(etcd["spec"]["ports"][0]["port"].as_i64(), Some(2379));
    assert_eq!(value_of(&arguments, "--cluster"), "http://etcd:2379");
}
