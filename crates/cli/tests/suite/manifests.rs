//! Do the manifests of `packaging/` fit the command and each other, and do their nodes make a list? What a container or a pod
//! is started with is given to the command here; what they are connected with is compared by name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use jindou_engine::{Peer, PeerList, Shards, Stage};
use yaml_rust2::{Yaml, YamlLoader};

/// The port at which nodes meet.
const NODES_PORT: u16 = 7900;
/// The port of their HTTP servers.
const HTTP_PORT: u16 = 7878;

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
fn serve(arguments: &[&str], variables: &BTreeMap<&str, String>) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command.current_dir(folder.path()).arg("serve");
    // Before those that are given, which would take its place.
    command.env("JINDOU_LOCATION", "store");
    command.args(arguments).envs(variables);
    command.output().unwrap()
}

/// Options are known and their values can be: it ends for want of the credentials, which it reads before it asks etcd
/// anything, and warns of no variable.
#[track_caller]
fn are_options(arguments: &[&str], variables: &BTreeMap<&str, String>) {
    let output = serve(arguments, variables);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    let file = value_of(arguments, "--credentials");
    let is_of_file = said.contains(&format!("--credentials: {file}"));
    assert!(is_of_file, "{arguments:?}: {said}");
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

/// Fails unless these may be nodes of one cluster, beside each other.
#[track_caller]
fn make_a_list(nodes: Vec<Peer>) {
    let list = PeerList::kept("", 1, Shards::new(64).unwrap(), nodes).unwrap();
    assert!(list.remote_address().is_some(), "they take a secret");
}

/// The addresses of etcd that a node is given, and etcd itself names, are those of this service.
#[track_caller]
fn is_etcd(node: &[&str], etcd: &[&str], service: &str) {
    let address = format!("http://{service}:2379");
    assert_eq!(value_of(node, "--cluster"), address);
    assert_eq!(value_of(etcd, "--advertise-client-urls"), address);
    let listens = value_of(etcd, "--listen-client-urls");
    assert_eq!(listens, "http://0.0.0.0:2379");
}

#[test]
fn an_option_that_is_none_is_found() {
    let good = [
        "--cluster=http://etcd:2379",
        "--advertise=a:7900",
        "--cluster-secret=/run/secrets/secret",
        "--credentials=/run/secrets/credentials",
    ];
    let node = BTreeMap::from([("JINDOU_NODE", "a".to_owned())]);
    are_options(&good, &node);
    let mut wrong = good.to_vec();
    wrong.push("--nods=a");
    assert_eq!(serve(&wrong, &node).status.code(), Some(2));
    let without_node = serve(&good, &BTreeMap::new());
    assert_eq!(
        without_node.status.code(),
        Some(2),
        "--cluster takes --node"
    );
    let mut unknown = node;
    unknown.insert("JINDOU_NAMESPACE", "x".to_owned());
    let said = serve(&good, &unknown).stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("JINDOU_NAMESPACE names no option"), "{said}");
}

/// What a service of Compose says itself, or what it has in common with others.
fn setting<'a>(service: &'a Yaml, key: &str) -> &'a Yaml {
    match &service[key] {
        Yaml::BadValue => &service["<<"][key],
        own => own,
    }
}

/// The node that a service is, with what is its own; the rest is common to all.
fn container(name: &str, compose: &Yaml) -> Peer {
    let service = &compose["services"][name];
    let arguments = texts(setting(service, "command"));
    let environment = setting(service, "environment");
    let environment = keys(environment)
        .into_iter()
        .map(|key| (key, text(&environment[key]).to_owned()));
    let mut variables: BTreeMap<&str, String> = environment.collect();
    let node = Peer {
        name: variables["JINDOU_NODE"].clone(),
        address: variables["JINDOU_ADVERTISE"].clone(),
        http: Some(variables["JINDOU_ADVERTISE_HTTP"].clone()),
        stage: Stage::Holds,
    };
    // As the image has it.
    variables.insert("JINDOU_BIND", format!(":{HTTP_PORT}"));
    are_options(&arguments, &variables);
    let etcd = texts(&compose["services"]["etcd"]["command"]);
    is_etcd(&arguments, &etcd, "etcd");
    // They are mounted by their names.
    let secrets = ["--cluster-secret", "--credentials"];
    let secrets = secrets.map(|option| value_of(&arguments, option));
    let mounted = texts(setting(service, "secrets"));
    assert_eq!(
        mounted.iter().copied().collect::<BTreeSet<_>>(),
        keys(&compose["secrets"])
    );
    let mounted = mounted.iter().map(|name| format!("/run/secrets/{name}"));
    assert_eq!(secrets.to_vec(), mounted.collect::<Vec<_>>());
    node
}

#[test]
fn containers_are_nodes_of_one_cluster() {
    let compose = &documents("compose.yaml")[0];
    let services = &compose["services"];
    let is_node = |name: &&str| setting(&services[*name], "image").as_str() == Some("jindou");
    let (nodes, others): (Vec<&str>, Vec<&str>) = keys(services).into_iter().partition(is_node);
    assert_eq!((nodes.len(), others), (3, vec!["etcd"]));
    let mut peers = Vec::new();
    for name in nodes {
        let service = &services[name];
        let peer = container(name, compose);
        assert_eq!(peer.name, name);
        assert_eq!(peer.address, format!("{name}:{NODES_PORT}"));
        let ports = texts(setting(service, "ports"));
        let [port] = ports[..] else {
            panic!("{name}: {ports:?}")
        };
        let port = port.strip_suffix(&format!(":{HTTP_PORT}")).unwrap();
        assert_eq!(peer.http, Some(format!("http://{port}")));
        assert!(peers.iter().all(|other: &Peer| other.http != peer.http));
        assert_eq!(
            texts(setting(service, "volumes")),
            [format!("{name}:/data")]
        );
        let health = texts(&setting(service, "healthcheck")["test"]);
        assert_eq!(health, ["CMD", "/usr/bin/jindou", "health"]);
        assert_eq!(text(setting(service, "restart")), "unless-stopped");
        let first = setting(service, "depends_on");
        assert_eq!(keys(first), BTreeSet::from(["etcd"]));
        assert_eq!(text(&first["etcd"]["condition"]), "service_healthy");
        peers.push(peer);
    }
    make_a_list(peers);
    let volumes = keys(services).into_iter().flat_map(|name| {
        let volumes = texts(setting(&services[name], "volumes"));
        volumes
            .into_iter()
            .map(|volume| volume.split_once(':').unwrap().0)
    });
    assert_eq!(volumes.collect::<BTreeSet<_>>(), keys(&compose["volumes"]));
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

/// The variables of a container in this pod.
fn variables<'a>(container: &'a Yaml, pod: &str, namespace: &str) -> BTreeMap<&'a str, String> {
    let list = container["env"].as_vec().unwrap();
    let variables = list.iter().map(|variable| {
        let field = &variable["valueFrom"]["fieldRef"]["fieldPath"];
        let value = match text(field) {
            "metadata.name" => pod,
            "metadata.namespace" => namespace,
            other => panic!("{other} is not known here"),
        };
        (text(&variable["name"]), value.to_owned())
    });
    variables.collect()
}

/// The arguments of a container with the variables that they name.
fn expanded(container: &Yaml, variables: &BTreeMap<&str, String>) -> Vec<String> {
    let expand = |argument: &str| {
        let all = variables.iter();
        let text = all.fold(argument.to_owned(), |text, (name, value)| {
            text.replace(&format!("$({name})"), value)
        });
        assert!(!text.contains("$("), "{text}: no such variable");
        text
    };
    texts(&container["args"]).into_iter().map(expand).collect()
}

/// The ports of a list, by name.
fn ports<'a>(list: &'a Yaml, port: &str) -> BTreeMap<&'a str, i64> {
    let list = list.as_vec().unwrap().iter();
    let one = |one: &'a Yaml| (text(&one["name"]), one[port].as_i64().unwrap());
    list.map(one).collect()
}

#[test]
fn pods_are_nodes_of_one_cluster() {
    let all = resources();
    let set = &resource(&all, "StatefulSet", "jindou")["spec"];
    let container = named(&set["template"]["spec"]["containers"], "jindou");
    let namespace = text(&documents("kubernetes/kustomization.yaml")[0]["namespace"]).to_owned();
    resource(&all, "Namespace", &namespace);
    let service = text(&set["serviceName"]);
    let mut peers = Vec::new();
    for number in 0..set["replicas"].as_i64().unwrap() {
        let name = format!("jindou-{number}");
        let variables = variables(container, &name, &namespace);
        let arguments = expanded(container, &variables);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        are_options(&arguments, &variables);
        let host = format!("{name}.{service}.{namespace}.svc.cluster.local");
        let peer = Peer {
            name: variables["JINDOU_NODE"].clone(),
            address: value_of(&arguments, "--advertise").to_owned(),
            http: Some(value_of(&arguments, "--advertise-http").to_owned()),
            stage: Stage::Holds,
        };
        assert_eq!(peer.name, name);
        assert_eq!(peer.address, format!("{host}:{NODES_PORT}"));
        assert_eq!(peer.http, Some(format!("http://{host}:{HTTP_PORT}")));
        assert_eq!(value_of(&arguments, "--bind"), format!(":{HTTP_PORT}"));
        peers.push(peer);
    }
    assert_eq!(peers.len(), 3);
    make_a_list(peers);
    // Names of nodes have addresses of pods, before these are ready: all start at once.
    let nodes = &resource(&all, "Service", service)["spec"];
    assert_eq!(text(&nodes["clusterIP"]), "None");
    assert_eq!(nodes["publishNotReadyAddresses"].as_bool(), Some(true));
    assert_eq!(text(&set["podManagementPolicy"]), "Parallel");
    let (http, meet) = (i64::from(HTTP_PORT), i64::from(NODES_PORT));
    let both = BTreeMap::from([("http", http), ("nodes", meet)]);
    assert_eq!(ports(&nodes["ports"], "port"), both);
    assert_eq!(ports(&container["ports"], "containerPort"), both);
}

#[test]
fn policies_and_services_are_of_the_pods() {
    let all = resources();
    let set = &resource(&all, "StatefulSet", "jindou")["spec"];
    let labels = &set["template"]["metadata"]["labels"];
    let policy = &resource(&all, "NetworkPolicy", "jindou")["spec"];
    let budget = &resource(&all, "PodDisruptionBudget", "jindou")["spec"];
    for selector in [
        &resource(&all, "Service", text(&set["serviceName"]))["spec"]["selector"],
        &set["selector"]["matchLabels"],
        &resource(&all, "Service", "jindou")["spec"]["selector"],
        &budget["selector"]["matchLabels"],
        &policy["podSelector"]["matchLabels"],
    ] {
        assert_eq!(selector, labels);
    }
    assert_eq!(budget["maxUnavailable"].as_i64(), Some(1));
    // Clients reach the HTTP servers, and nodes each other and etcd.
    let etcd = &resource(&all, "NetworkPolicy", "etcd")["spec"];
    let (clients, nodes, etcd) = (
        &policy["ingress"][0],
        &policy["ingress"][1],
        &etcd["ingress"][0],
    );
    for (rule, port, is_of_pods) in [
        (clients, i64::from(HTTP_PORT), false),
        (nodes, i64::from(NODES_PORT), true),
        (etcd, 2379, true),
    ] {
        assert_eq!(rule["ports"][0]["port"].as_i64(), Some(port));
        let from = &rule["from"];
        assert_eq!(from.is_badvalue(), !is_of_pods, "{port}");
        if is_of_pods {
            assert_eq!(&from[0]["podSelector"]["matchLabels"], labels);
        }
    }
}

#[test]
fn pods_start_the_command_with_what_is_mounted() {
    let all = resources();
    let set = &resource(&all, "StatefulSet", "jindou")["spec"];
    let pod = &set["template"]["spec"];
    // A service called `jindou` would otherwise set JINDOU_PORT.
    assert_eq!(pod["enableServiceLinks"].as_bool(), Some(false));
    let container = named(&pod["containers"], "jindou");
    let arguments = texts(&container["args"]);
    for probe in ["startupProbe", "readinessProbe"] {
        let path = &container[probe]["httpGet"]["path"];
        assert_eq!(text(path), "/health", "{probe}");
    }
    let mounts = &container["volumeMounts"];
    let source = named(&pod["volumes"], "secret");
    let kustomization = &documents("kubernetes/kustomization.yaml")[0];
    let secret = text(&source["secret"]["secretName"]);
    let files = texts(&named(&kustomization["secretGenerator"], secret)["files"]);
    for option in ["--cluster-secret", "--credentials"] {
        let (folder, file) = value_of(&arguments, option).rsplit_once('/').unwrap();
        assert_eq!(text(&named(mounts, "secret")["mountPath"]), folder);
        assert!(files.contains(&file), "{option}: {file}");
    }
    // A copy of the store takes the place of its folder, which so is no mount point.
    let claims = set["volumeClaimTemplates"].as_vec().unwrap().iter();
    let claims: Vec<&str> = claims
        .map(|claim| text(&claim["metadata"]["name"]))
        .collect();
    assert_eq!(claims, ["data"]);
    let data = text(&named(mounts, "data")["mountPath"]);
    let (folder, _) = value_of(&arguments, "--location").rsplit_once('/').unwrap();
    assert_eq!(folder, data);
    assert_eq!(value_of(&arguments, "--spill-dir"), data);
    let mounted = mounts.as_vec().unwrap().iter();
    let mounted: BTreeSet<&str> = mounted.map(|mount| text(&mount["name"])).collect();
    assert_eq!(mounted, BTreeSet::from(["data", "secret"]));
    let etcd = resource(&all, "Service", "etcd");
    assert_eq!(etcd["spec"]["ports"][0]["port"].as_i64(), Some(2379));
    let set = &resource(&all, "StatefulSet", "etcd")["spec"]["template"]["spec"];
    let etcd = texts(&named(&set["containers"], "etcd")["command"]);
    is_etcd(&arguments, &etcd, "etcd");
}
