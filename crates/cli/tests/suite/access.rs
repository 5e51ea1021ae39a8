//! Does the command let nobody in by mistake, and those in who are named?

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command.current_dir(folder).args(arguments);
    command
}

#[track_caller]
fn fails(folder: &Path, arguments: &[&str]) -> String {
    let output = command(folder, arguments).output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn with_input(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = command(folder, arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// A server, which ends with this.
struct Served {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStderr>>,
    address: String,
}

impl Served {
    fn new(folder: &Path, options: &[&str]) -> Self {
        let arguments = [&["serve", "--bind", "127.0.0.1:0"], options].concat();
        let mut child = command(folder, &arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.by_ref().find_map(|line| {
            let line = line.unwrap();
            let rest = line.strip_prefix("serving at ")?;
            let (scheme, rest) = rest.split_once("://").unwrap();
            let is_secure = options.contains(&"--tls-key");
            assert_eq!(scheme == "https", is_secure, "{line}");
            Some(rest.split('/').next().unwrap().to_owned())
        });
        let address = address.expect("it serves");
        Self {
            child,
            lines,
            address,
        }
    }

    #[cfg(unix)]
    fn hang_up(&self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-HUP", &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// The status of a query.
    fn ask(&self, headers: &str) -> u16 {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "GET /query?query=ASK%7B%7D HTTP/1.1\r\nHost: e\r\nConnection: close\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_address_beyond_this_machine_is_refused_without_credentials() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for arguments in [
        &["serve", "--bind", "0.0.0.0:0"][..],
        &["serve", "--bind", "[::]:0"],
        &["demo", "--bind", "0.0.0.0:0"],
        &["demo", "streams", "--bind", "0.0.0.0:0"],
    ] {
        let said = fails(at, arguments);
        for choice in ["--credentials", "127.0.0.1", "--insecure"] {
            assert!(said.contains(choice), "{said}");
        }
    }
}

#[test]
fn those_are_served_whose_lines_the_command_made() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let line = ["hash-password", "--name", "ann", "--role", "read"];
    let made = with_input(at, &line, "secret\n");
    assert!(made.status.success());
    let ann = String::from_utf8(made.stdout).unwrap();
    assert!(ann.starts_with("ann:read:$argon2id$"), "{ann}");
    let line = [
        "hash-password",
        "--name",
        "bot",
        "--role",
        "read",
        "--token",
    ];
    let made = command(at, &line).output().unwrap();
    let bot = String::from_utf8(made.stdout).unwrap();
    let said = String::from_utf8(made.stderr).unwrap();
    let token = said.trim().rsplit(' ').next().unwrap();
    assert!(!bot.contains(token));
    std::fs::write(at.join("users"), format!("{ann}{bot}")).unwrap();
    let served = Served::new(at, &["--credentials", "users"]);
    assert_eq!(served.ask(""), 401);
    // ann:secret
    assert_eq!(served.ask("Authorization: Basic YW5uOnNlY3JldA==\r\n"), 200);
    assert_eq!(
        served.ask(&format!("Authorization: Bearer {token}\r\n")),
        200
    );
    let open = Served::new(at, &["--credentials", "users", "--anonymous", "read"]);
    assert_eq!(open.ask(""), 200);
}

#[cfg(unix)]
#[test]
fn a_hangup_has_the_credentials_read_again_and_keeps_them_if_they_are_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let token = format!("token:ann:read:{}\n", "0".repeat(64));
    std::fs::write(at.join("users"), token).unwrap();
    let mut served = Served::new(at, &["--credentials", "users"]);
    let mut hang_up = |said: &str| {
        served.hang_up();
        let heard = served.lines.by_ref().map(Result::unwrap);
        let mut heard = heard.filter(|line| line.contains("again") || line.contains("users"));
        heard.find(|line| line.contains(said)).expect("it is said");
    };
    hang_up("were read again");
    std::fs::write(at.join("users"), "\nann:root:x\n").unwrap();
    hang_up("users, line 2: a role is read, write or admin; the credentials stay");
    std::fs::write(at.join("users"), "# nobody\n").unwrap();
    hang_up("users names nobody");
}

#[cfg(unix)]
#[test]
fn a_hangup_has_the_certificate_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let renew = || {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(at.join("c.pem"), made.cert.pem()).unwrap();
        std::fs::write(at.join("k.pem"), made.signing_key.serialize_pem()).unwrap();
    };
    renew();
    let mut served = Served::new(at, &["--tls-certificate", "c.pem", "--tls-key", "k.pem"]);
    renew();
    served.hang_up();
    let said = served.lines.by_ref().map(Result::unwrap);
    let mut said = said.filter(|line| line.contains("certificate"));
    assert_eq!(said.next().unwrap(), "the certificate was read again");
    let url = format!("https://{}", served.address);
    let health = command(at, &["health", "--url", &url, "--ca", "c.pem"]);
    assert!({ health }.output().unwrap().status.success());
}

#[test]
fn a_file_of_credentials_that_is_wrong_or_missing_ends_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let serve = ["serve", "--bind", "127.0.0.1:0", "--credentials", "users"];
    let said = fails(at, &serve);
    assert!(
        said.contains("--credentials: users: No such file"),
        "{said}"
    );
    std::fs::write(at.join("users"), "# first\nann:read:plain\n").unwrap();
    let said = fails(at, &serve);
    assert!(said.contains("users, line 2: no PHC string"), "{said}");
    assert!(!said.contains("plain"), "{said}");
    let said = fails(at, &["serve", "--anonymous", "read"]);
    assert!(said.contains("--credentials"), "{said}");
    let empty = with_input(at, &["hash-password"], "\n");
    assert!(!empty.status.success());
}

#[test]
fn the_environment_gives_what_the_command_line_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let serve = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = command(at, arguments);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(!output.status.success(), "{arguments:?} {variables:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let said = serve(&["serve"], &[("JINDOU_BIND", "0.0.0.0:0")]);
    assert!(said.contains("0.0.0.0:0 can be reached"), "{said}");
    let missing = ("JINDOU_CREDENTIALS", "missing");
    let said = serve(
        &["serve", "--bind", "127.0.0.1:0"],
        &[("JINDOU_BIND", "0.0.0.0:0"), missing],
    );
    assert!(
        said.contains("--credentials: missing"),
        "the command line goes before: {said}"
    );
    let said = serve(&["serve"], &[("JINDOU_MAX_CONNECTIONS", "many")]);
    assert!(
        said.contains("many") && said.contains("--max-connections"),
        "{said}"
    );
    let insecure = [
        ("JINDOU_BIND", "0.0.0.0:0"),
        ("JINDOU_INSECURE", "true"),
        missing,
    ];
    let said = serve(&["serve"], &insecure);
    assert!(said.contains("--credentials: missing"), "{said}");
    let folders = ("JINDOU_ALLOW_LOAD", "https://e.org/,nowhere");
    let said = serve(&["serve", "--bind", "127.0.0.1:0"], &[folders]);
    assert!(said.contains("--allow-load nowhere"), "{said}");
    let said = serve(&["serve", "--allow-load", "no,where"], &[folders]);
    assert!(said.contains("--allow-load no,where"), "{said}");
    // Other commands have their own options.
    let mut query = command(
        at,
        &[
            "query",
            "--query",
            "ASK {}",
            "--data",
            "/dev/null",
            "--format",
            "nt",
        ],
    );
    assert!(
        query
            .env("JINDOU_FORMAT", "nothing")
            .output()
            .unwrap()
            .status
            .success()
    );
}

#[test]
fn the_commands_about_streams_say_who_asks() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let line = ["hash-password", "--name", "ann", "--role", "admin"];
    let ann = with_input(at, &line, "secret\n").stdout;
    std::fs::write(at.join("users"), ann).unwrap();
    let served = Served::new(at, &["--credentials", "users"]);
    let url = format!("http://{}", served.address);
    let create = [
        "stream",
        "create",
        "s",
        "--iri",
        "http://e/s",
        "--url",
        &url,
    ];
    let said = fails(at, &create);
    assert!(
        said.contains("needs a name and a password, or a token, of the role admin"),
        "{said}"
    );
    let said = fails(at, &[&create[..], &["--user", "ann:wrong"]].concat());
    assert!(said.contains("no user has this name"), "{said}");
    let mut command = command(at, &create);
    let created = command.env("JINDOU_USER", "ann:secret").output().unwrap();
    assert!(created.status.success(), "{created:?}");
}

#[test]
fn a_server_with_a_certificate_is_asked_by_those_who_know_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(at.join("certificate.pem"), made.cert.pem()).unwrap();
    std::fs::write(at.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let tls = [
        "--tls-certificate",
        "certificate.pem",
        "--tls-key",
        "key.pem",
    ];
    let served = Served::new(at, &tls);
    let url = format!("https://{}", served.address);
    let health = ["health", "--url", &url];
    let said = fails(at, &health);
    assert!(said.contains("certificate"), "{said}");
    let known = [&health[..], &["--ca", "certificate.pem"]].concat();
    let asked = command(at, &known).output().unwrap();
    assert!(asked.status.success(), "{asked:?}");
    let mut create = command(at, &["stream", "create", "s", "--iri", "http://e/s"]);
    create.env("JINDOU_URL", &url);
    let created = create.env("JINDOU_CA", "certificate.pem").output().unwrap();
    assert!(created.status.success(), "{created:?}");
    let plain = format!("http://{}", served.address);
    let said = fails(at, &["health", "--url", &plain]);
    assert!(said.contains("this port takes HTTPS only"), "{said}");
    let wrong = [&health[..], &["--ca", "key.pem"]].concat();
    let said = fails(at, &wrong);
    assert!(said.contains("--ca key.pem: no certificate"), "{said}");
}

#[test]
fn the_certificate_of_a_server_that_calls_itself_an_authority_is_known_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let write = |name: &str, host: &str| {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut made = rcgen::CertificateParams::new([host.to_owned()]).unwrap();
        // As `openssl req -x509` does.
        made.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = made.self_signed(&key).unwrap();
        std::fs::write(at.join(format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(at.join(format!("{name}-key.pem")), key.serialize_pem()).unwrap();
    };
    write("own", "127.0.0.1");
    write("other", "127.0.0.1");
    let tls = ["--tls-certificate", "own.pem", "--tls-key", "own-key.pem"];
    let served = Served::new(at, &tls);
    let url = format!("https://{}", served.address);
    let health = ["health", "--url", &url, "--ca"];
    let asked = command(at, &[&health[..], &["own.pem"]].concat());
    let asked = { asked }.output().unwrap();
    assert!(asked.status.success(), "{asked:?}");
    for untrusted in [
        &["health", "--url", &url][..],
        &[&health[..], &["other.pem"]].concat(),
    ] {
        let said = fails(at, untrusted);
        assert!(said.contains("by --ca FILE"), "{said}");
    }
    // Its name is looked at all the same.
    let port = served.address.rsplit_once(':').unwrap().1;
    let by_name = format!("https://localhost:{port}");
    let said = fails(at, &["health", "--url", &by_name, "--ca", "own.pem"]);
    assert!(said.contains("not valid for name"), "{said}");
}

#[test]
fn the_health_of_a_server_is_asked_where_its_own_variables_say() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let made = rcgen::generate_simple_self_signed(["db.example.org".to_owned()]).unwrap();
    std::fs::write(at.join("c.pem"), made.cert.pem()).unwrap();
    std::fs::write(at.join("k.pem"), made.signing_key.serialize_pem()).unwrap();
    let tls = Served::new(at, &["--tls-certificate", "c.pem", "--tls-key", "k.pem"]);
    let plain = Served::new(at, &[]);
    let port = |served: &Served| served.address.rsplit_once(':').unwrap().1.to_owned();
    let file = format!("port = {}\n[tls]\ncertificate = \"c.pem\"\n", port(&tls));
    std::fs::write(at.join("tls.toml"), file).unwrap();
    let everywhere = format!(":{}", port(&plain));
    let certificate = ("JINDOU_TLS_CERTIFICATE", "c.pem");
    for (variables, is_there) in [
        (vec![("JINDOU_PORT", &*port(&plain))], true),
        (vec![("JINDOU_BIND", &*everywhere)], true),
        (vec![("JINDOU_PORT", &*port(&plain)), certificate], false),
        (vec![("JINDOU_PORT", &*port(&tls))], false),
        (vec![("JINDOU_PORT", &*port(&tls)), certificate], true),
        (vec![("JINDOU_CONFIG", "tls.toml")], true),
        (
            vec![("JINDOU_CONFIG", "tls.toml"), ("JINDOU_BIND", &*everywhere)],
            false,
        ),
    ] {
        let mut health = command(at, &["health"]);
        let asked = health.envs(variables.clone()).output().unwrap();
        assert_eq!(asked.status.success(), is_there, "{variables:?}: {asked:?}");
    }
}

#[test]
fn a_certificate_and_its_key_are_given_together_and_checked_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let said = fails(at, &["serve", "--tls-key", "key.pem"]);
    assert!(said.contains("--tls-certificate <FILE>"), "{said}");
    let said = fails(at, &["serve", "--tls-certificate", "certificate.pem"]);
    assert!(said.contains("--tls-key <FILE>"), "{said}");
    let both = ["serve", "--tls-certificate", "c.pem", "--tls-key", "k.pem"];
    let said = fails(at, &both);
    assert!(said.contains("c.pem: No such file"), "{said}");
}

#[test]
fn all_addresses_are_those_of_both_families_and_a_port_is_given_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let said = fails(at, &["serve", "--bind", ":0"]);
    assert!(said.contains("--insecure"), "{said}");
    let all = Served::new(at, &["--insecure", "--port", "0"]);
    assert!(all.address.starts_with("127.0.0.1:"), "{}", all.address);
    assert!(!all.address.ends_with(":0"), "{}", all.address);
    let mut child = command(at, &["serve", "--bind", ":0", "--insecure"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let serving = lines
        .map(Result::unwrap)
        .find(|line| line.starts_with("serving at"))
        .unwrap();
    let port = serving
        .split('/')
        .nth(2)
        .unwrap()
        .rsplit(':')
        .next()
        .unwrap();
    let port: u16 = port.parse().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    if std::net::UdpSocket::bind("[::1]:0").is_ok() {
        assert!(TcpStream::connect(("::1", port)).is_ok());
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
