use super::*;
use crate::secret::SecretError;

const GOOD: &str = r#"shards = 8
secret-file = "secret"
[[node]]
name = "a"
address = "10.0.0.1:7900"
http = "http://10.0.0.1:7878"
[[node]]
name = "b"
address = "[fd00::2]:7900"
"#;

/// A list over loopback of nodes of these names and ports.
fn loopback(nodes: &[(&str, u32)]) -> String {
    let node = |(name, port): &(&str, u32)| {
        format!("[[node]]\nname = \"{name}\"\naddress = \"127.0.0.1:{port}\"\n")
    };
    nodes.iter().map(node).collect()
}

fn refusal(text: &str) -> String {
    PeerList::parse(text).unwrap_err().to_string()
}

#[test]
fn nodes_are_numbered_by_their_places() {
    let list = PeerList::parse(GOOD).unwrap();
    let peer = |name: &str, address: &str, http: Option<&str>| Peer {
        name: name.to_owned(),
        address: address.to_owned(),
        http: http.map(str::to_owned),
        stage: Stage::Holds,
    };
    let a = peer("a", "10.0.0.1:7900", Some("http://10.0.0.1:7878"));
    let b = peer("b", "[fd00::2]:7900", None);
    assert_eq!(list.peers(), [a, b.clone()]);
    assert_eq!(list.node("b").unwrap(), NodeId(1));
    assert_eq!(list.peer(NodeId(1)), Some(&b));
    assert_eq!(list.peer(NodeId(2)), None);
    assert_eq!((list.shards().count(), list.map().nodes().len()), (8, 2));
}

#[test]
fn shards_are_64_unless_given() {
    let list = PeerList::parse(&loopback(&[("a", 1)])).unwrap();
    assert_eq!(
        list.map(),
        &ShardMap::dealt(Shards::new(64).unwrap(), 1).unwrap()
    );
}

#[test]
fn an_unknown_name_is_told_with_those_that_there_are() {
    let list = PeerList::parse(GOOD).unwrap();
    let refused = list.node("c\u{1b}").unwrap_err().to_string();
    assert_eq!(refused, r#"no node is named "c\u{1b}": there are a, b"#);
    let names: Vec<String> = (1..=25).map(|n| format!("n{n}")).collect();
    let nodes: Vec<(&str, u32)> = names.iter().map(String::as_str).zip(1..).collect();
    let list = PeerList::parse(&loopback(&nodes)).unwrap();
    let refused = list.node("c").unwrap_err().to_string();
    assert!(refused.ends_with(", n20 and 5 more"), "{refused}");
}

#[test]
fn what_cannot_be_is_told_with_line_and_key() {
    let with_node = |name: &str, address: &str, more: &str| {
        format!("[[node]]\nname = \"{name}\"\naddress = \"{address}\"\n{more}\n")
    };
    let long = "x".repeat(129);
    let begins = [
        (String::new(), "line 1, node: a cluster has at least one"),
        (with_node("", "a:1", ""), "line 2, name: \"\" is no name"),
        (
            with_node("a b", "a:1", ""),
            "line 2, name: \"a b\" is no name",
        ),
        (with_node("ä", "a:1", ""), "line 2, name: \"ä\" is no name"),
        (with_node(&long, "a:1", ""), "line 2, name: \"xxx"),
        (
            with_node("a", "10.0.0.1", ""),
            "line 3, address: \"10.0.0.1\" is no address",
        ),
        (
            with_node("a", "::1:7900", ""),
            "line 3, address: \"::1:7900\" is no address",
        ),
        (
            with_node("a", "a:1", "http = \"ftp://a\""),
            "line 4, http: \"ftp://a\" is no URL",
        ),
        (
            with_node("a", "a:1", "http = \"http://a\\u001b\""),
            "line 4, http: \"http://a\\u{1b}\" is no URL",
        ),
        (
            loopback(&[("a", 1), ("b", 2), ("a", 3)]),
            "line 8, name: a is the name of the node in line 2, too",
        ),
        (
            loopback(&[("a", 1), ("b", 2), ("c", 2)]),
            "line 9, address: 127.0.0.1:2 is the address of the node in line 6, too",
        ),
        (
            with_node("a", "A:1", "") + &with_node("b", "a:01", ""),
            "line 7, address: a:01 is the address of the node in line 3, too",
        ),
        (
            format!("\nshards = 12\n{}", loopback(&[("a", 1)])),
            "line 2, shards: 12 shards: their number is a power of two",
        ),
        (
            format!("shards = 2\n{}", loopback(&[("a", 1), ("b", 2), ("c", 3)])),
            "line 1, shards: 3 nodes for 2 shards",
        ),
        (
            GOOD.replace("\"secret\"", "\"\""),
            "line 2, secret-file: the path of a file is needed",
        ),
    ];
    for (text, begin) in begins {
        let refused = refusal(&text);
        assert!(refused.starts_with(begin), "{refused}");
        assert!(!refused.contains(char::is_control), "{refused}");
    }
}

#[test]
fn what_is_no_list_is_told_with_its_line() {
    let begins = [
        ("shards = ", "line 1: "),
        (
            "[[node]]\nname = \"a\"\n",
            "line 1: missing field `address`",
        ),
        ("x = 1", "line 1: unknown field `x`"),
        ("\n\"x\\u001b\" = 1", "line 2: unknown field `x\\u{1b}`"),
        (
            "[[node]]\nname = \"a\"\nport = 1",
            "line 3: unknown field `port`",
        ),
        ("\nshards = -4", "line 2: "),
        ("\nshards = 4.0", "line 2: "),
        ("\nshards = 4294967296", "line 2: "),
        ("\nname = \"a\"\nname = \"b\"", "line 3: "),
    ];
    for (text, begin) in begins {
        let refused = refusal(text);
        assert!(refused.starts_with(begin), "{refused}");
        assert!(!refused.contains(char::is_control), "{refused}");
    }
}

#[test]
fn a_cluster_has_1024_nodes_at_most() {
    let names: Vec<String> = (0..1025).map(|n| format!("n{n}")).collect();
    let nodes: Vec<(&str, u32)> = names.iter().map(String::as_str).zip(1..).collect();
    let text = |nodes| format!("shards = 1024\n{}", loopback(nodes));
    let list = PeerList::parse(&text(&nodes[..1024])).unwrap();
    assert_eq!(list.map().nodes().len(), 1024);
    let refused = refusal(&text(&nodes));
    assert_eq!(
        refused,
        "line 3075, node: 1025 nodes, and a cluster has at most 1024"
    );
}

#[test]
fn nodes_over_a_network_need_a_secret() {
    let without = GOOD.replace("secret-file = \"secret\"\n", "");
    let refused = refusal(&without);
    let expected =
        "line 4, address: a secret-file is needed where nodes are reached over a network";
    assert!(refused.starts_with(expected), "{refused}");
    // One node of them is enough.
    let mixed = without.replace("10.0.0.1:7900", "127.0.0.1:7900");
    assert!(refusal(&mixed).starts_with("line 8, address: a secret-file is needed"));
    let near = mixed.replace("[fd00::2]", "localhost");
    assert!(PeerList::parse(&near).is_ok());
    // Nobody joins a cluster of one node.
    let (one, _) = without.rsplit_once("[[node]]").unwrap();
    assert!(PeerList::parse(one).is_ok());
}

#[test]
fn the_digest_is_of_all_that_nodes_agree_on() {
    let digest = |text: &str| PeerList::parse(text).unwrap().digest();
    let same = [
        GOOD.replace("\"secret\"", "\"elsewhere\""),
        GOOD.replace("10.0.0.1:7878", "a.example"),
        format!("# A comment.\n{GOOD}"),
    ];
    for text in same {
        assert_eq!(digest(&text), digest(GOOD));
    }
    let nodes = |nodes: &[(&str, u32)]| loopback(nodes);
    let others = [
        GOOD.replace("shards = 8", "shards = 16"),
        GOOD.replace("\"a\"", "\"A\""),
        GOOD.replace("10.0.0.1:7900", "10.0.0.1:7901"),
        nodes(&[("a", 1), ("b", 2)]),
        nodes(&[("b", 2), ("a", 1)]),
        nodes(&[("a", 2), ("b", 1)]),
        nodes(&[("a", 1)]),
    ];
    let mut digests: Vec<[u8; 32]> = others.iter().map(|text| digest(text)).collect();
    digests.push(digest(GOOD));
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), others.len() + 1);
}

#[test]
fn the_digest_is_that_of_nodes_started_before() {
    let digest = PeerList::parse(GOOD).unwrap().digest();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "b0da699580b72b48bf45407aa84bd4de5b06ef83a03b2597ca95a113fe601c8a"
    );
}

#[test]
fn a_file_names_its_secret() {
    let directory = tempfile::tempdir().unwrap();
    let list_at = directory.path().join("peers.toml");
    let secret_at = directory.path().join("secret");
    let read = |secret: &[u8]| {
        std::fs::write(&list_at, GOOD).unwrap();
        std::fs::write(&secret_at, secret).unwrap();
        PeerList::read(&list_at)
    };
    let sign = |secret: &Secret| ring::hmac::sign(&Secret::key(Some(secret)), b"x");
    let (list, secret) = read(b"0123456789abcde\n\n").unwrap();
    assert_eq!(list, PeerList::parse(GOOD).unwrap());
    let expected = Secret::new(b"0123456789abcde\n").unwrap();
    assert_eq!(sign(&secret.unwrap()).as_ref(), sign(&expected).as_ref());
    assert!(read(&[7; 4096]).is_ok());
    for (secret, found_bytes) in [(&b"0123456789abcde\n"[..], 15), (&[7; 4097], 4097)] {
        let refused = read(secret).unwrap_err();
        assert!(
            matches!(&refused, PeersError::Secret { path, source }
                if *path == secret_at && *source == SecretError::Length { found_bytes }),
            "{refused:?}"
        );
    }
    let refused = read(&[7; 5000]).unwrap_err();
    assert!(matches!(&refused, PeersError::File { path, .. } if *path == secret_at));
    std::fs::remove_file(&secret_at).unwrap();
    let refused = PeerList::read(&list_at).unwrap_err();
    assert!(matches!(&refused, PeersError::File { path, .. } if *path == secret_at));
}

#[test]
fn a_file_that_is_no_list_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peers.toml");
    let refused = PeerList::read(&path).unwrap_err();
    assert!(matches!(&refused, PeersError::File { .. }));
    std::fs::write(&path, b"\n\n\xff").unwrap();
    let refused = PeerList::read(&path).unwrap_err().to_string();
    let expected = format!("{}, line 3: this is not UTF-8", path.display());
    assert_eq!(refused, expected);
    std::fs::write(&path, vec![b'#'; MOST_FILE_BYTES + 1]).unwrap();
    let refused = PeerList::read(&path).unwrap_err();
    assert!(matches!(&refused, PeersError::File { .. }));
    std::fs::write(&path, loopback(&[("a", 1), ("b", 2)])).unwrap();
    assert!(PeerList::read(&path).unwrap().1.is_none());
}

proptest::proptest! {
    #[test]
    fn any_text_is_a_list_or_refused_in_one_line(text in "(shards|node|name|address|[\\[\\]=\"\n#a-z0-9:.\u{1b}]){0,60}") {
        if let Err(error) = PeerList::parse(&text) {
            proptest::prop_assert!(!error.to_string().contains(char::is_control));
        }
    }
}

#[test]
fn a_list_that_changes_has_shards_where_they_are_held_and_one_digest() {
    let peer = |name: &str, port: u16, stage| Peer {
        name: name.to_owned(),
        address: format!("127.0.0.1:{port}"),
        http: None,
        stage,
    };
    let shards = Shards::new(8).unwrap();
    let kept = |version, peers| PeerList::kept("c", version, shards, peers);
    let two = vec![peer("a", 1, Stage::Holds), peer("b", 2, Stage::Joins)];
    let first = kept(1, two.clone()).unwrap();
    assert!(first.map().holds(NodeId(0)) && !first.map().holds(NodeId(1)));
    // The place of one that has gone is another's.
    let later = vec![
        peer("a", 1, Stage::Gone),
        peer("b", 2, Stage::Holds),
        peer("c", 1, Stage::Holds),
    ];
    let second = kept(2, later).unwrap();
    assert_eq!(second.map().nodes().len(), 3);
    assert_eq!(second.map().holding(), 2);
    assert_eq!(first.digest(), second.digest());
    let other = PeerList::kept("d", 1, shards, two).unwrap();
    assert_ne!(first.digest(), other.digest());
    let refused = |peers| kept(1, peers).unwrap_err().to_string();
    let gone = refused(vec![peer("a", 1, Stage::Gone)]);
    assert!(gone.contains("0 nodes for 8 shards"), "{gone}");
    let same = |name, port| vec![peer("a", 1, Stage::Holds), peer(name, port, Stage::Joins)];
    assert!(refused(same("a", 2)).contains("two nodes are named a"));
    assert!(refused(same("b", 1)).contains("127.0.0.1:1 is the address"));
    assert!(refused(vec![peer("a b", 1, Stage::Holds)]).contains("no name"));
}
