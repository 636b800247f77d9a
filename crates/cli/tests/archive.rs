//! The verbs for archives from the outside: what they print, how they end, and what a kill or a full disk
//! leaves behind.

mod program;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use program::{run as sqlitmus, stderr, stdout};

fn tree(place: &Path, files: usize) {
    for number in 0..files {
        let folder = place.join(format!("from/{}", number % 10));
        fs::create_dir_all(&folder).expect("directory");
        fs::write(
            folder.join(number.to_string()),
            format!("{number} ").repeat(500),
        )
        .expect("file");
    }
}

#[test]
fn a_directory_goes_in_is_looked_at_and_comes_out() {
    let place = tempfile::tempdir().expect("temporary directory");
    tree(place.path(), 50);
    let run = |words: &[&str]| {
        let output = sqlitmus(place.path(), words);
        (
            output.status.code().expect("a code"),
            stdout(&output),
            stderr(&output),
        )
    };
    let (code, out, err) = run(&["pack", "from", "a.sqlar", "--compress", "auto", "--verify"]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert!(
        err.contains("50 files") && err.contains("synced in") && err.contains("read back"),
        "{err}"
    );
    let (code, _, err) = run(&["pack", "from", "a.sqlar"]);
    assert_eq!(code, 2);
    assert!(
        err.contains("exists already") && err.contains("hint: ") && err.contains("--force"),
        "{err}"
    );
    assert_eq!(
        run(&["pack", "from", "a.sqlar", "--force", "--quiet"]),
        (0, String::new(), String::new())
    );
    let (_, listed, _) = run(&["ls", "a.sqlar", "3"]);
    assert_eq!(listed, "3\n3/13\n3/23\n3/3\n3/33\n3/43\n");
    let (_, long, _) = run(&["ls", "-l", "a.sqlar", "3/13"]);
    assert!(
        long.starts_with("-rw-r--r--") && long.contains("1500"),
        "{long}"
    );
    assert_eq!(
        run(&["cat", "a.sqlar", "3/3"]),
        (0, "3 ".repeat(500), String::new())
    );
    let (code, _, err) = run(&["cat", "a.sqlar", "nothing"]);
    assert_eq!(code, 2);
    assert!(
        err.contains("no entry `nothing`") && err.contains("hint: "),
        "{err}"
    );
    let (code, out, _) = run(&["verify", "a.sqlar", "--against", "from"]);
    assert!(
        code == 0 && out.contains("the same as from: 60 entries"),
        "{out}"
    );
    fs::write(place.path().join("from/3/3"), "changed").expect("written");
    let (code, out, _) = run(&["verify", "a.sqlar", "--against", "from"]);
    assert!(code == 1 && out.contains("`3/3`: other content"), "{out}");
    let (code, _, err) = run(&["unpack", "a.sqlar", "3", "--into", "to"]);
    assert!(code == 0 && err.contains("5 files"), "{err}");
    let (code, _, err) = run(&["unpack", "a.sqlar", "--into", "to"]);
    assert!(
        code == 2 && err.contains("the first: 3/13") && err.contains("hint: "),
        "{err}"
    );
    assert!(!place.path().join("to/0").exists(), "nothing was written");
    let bytes = fs::read(place.path().join("a.sqlar")).expect("read");
    fs::write(place.path().join("short.sqlar"), &bytes[..bytes.len() / 2]).expect("written");
    let (code, out, _) = run(&["verify", "short.sqlar"]);
    assert!(code == 1 && out.contains("truncated"), "{out}");
    let (code, _, err) = run(&["ls", "from/3/3"]);
    assert!(code == 2 && err.contains("not an SQLite archive"), "{err}");
}

#[test]
fn a_kill_at_any_moment_leaves_the_old_archive_or_none_and_the_next_run_cleans() {
    let place = tempfile::tempdir().expect("temporary directory");
    tree(place.path(), 3000);
    let archive = place.path().join("a.sqlar");
    let pack = |force: bool| {
        let words = ["pack", "from", "a.sqlar", "--quiet"];
        let mut command = program::command(place.path(), &words);
        if force {
            command.arg("--force");
        }
        command
    };
    let mut old: Option<Vec<u8>> = None;
    let mut killed = 0;
    for number in 0..12_u64 {
        let mut child = pack(old.is_some())
            .stdin(Stdio::null())
            .spawn()
            .expect("started");
        std::thread::sleep(Duration::from_millis(number * number % 97));
        child.kill().expect("killed");
        let was_killed = child.wait().expect("waited").code().is_none();
        killed += u32::from(was_killed);
        match (&old, fs::read(&archive)) {
            (_, Ok(_)) => {
                // Whether it is the old one or the new one, it is complete.
                let verified = sqlitmus(
                    place.path(),
                    &["verify", "a.sqlar", "--against", "from", "--quiet"],
                );
                assert_eq!(verified.status.code(), Some(0), "{}", stdout(&verified));
                old = fs::read(&archive).ok();
            }
            (None, Err(_)) => {}
            (Some(_), Err(error)) => panic!("the old archive is gone: {error}"),
        }
        if number == 5 && old.is_none() {
            assert!(pack(false).status().expect("runs").success());
            old = fs::read(&archive).ok();
        }
    }
    assert!(killed > 0, "at least one was killed before it was done");
    assert!(pack(true).status().expect("runs").success());
    let mut names: Vec<_> = fs::read_dir(place.path())
        .expect("readable")
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    names.sort();
    assert_eq!(names, ["a.sqlar", "from"], "no stray file");
}

#[test]
fn a_full_disk_is_said_and_leaves_nothing_half() {
    let is_allowed = std::env::var_os("SQLITMUS_TEST_MOUNTS").is_some();
    if !is_allowed || !rustix::process::geteuid().is_root() {
        let reason = "skipped: mounting needs root and SQLITMUS_TEST_MOUNTS=1";
        writeln!(std::io::stderr(), "{reason}").expect("stderr");
        return;
    }
    let place = tempfile::tempdir().expect("temporary directory");
    tree(place.path(), 2000);
    let small = place.path().join("small");
    fs::create_dir(&small).expect("directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
        .arg(&small)
        .status();
    assert!(mounted.expect("mount runs").success());
    let packed = sqlitmus(place.path(), &["pack", "from", "small/a.sqlar"]);
    let left = fs::read_dir(&small).expect("readable").count();
    let fits = sqlitmus(place.path(), &["pack", "from", "a.sqlar"]);
    let unpacked = sqlitmus(place.path(), &["unpack", "a.sqlar", "--into", "small/to"]);
    let written = small.join("to").exists();
    assert!(
        Command::new("umount")
            .arg(&small)
            .status()
            .expect("umount runs")
            .success()
    );
    assert_eq!(packed.status.code(), Some(5), "{}", stderr(&packed));
    assert!(
        stderr(&packed).contains("no space left"),
        "{}",
        stderr(&packed)
    );
    assert_eq!(left, 0, "nothing is left on the full disk");
    assert_eq!(fits.status.code(), Some(0));
    assert_eq!(unpacked.status.code(), Some(5), "{}", stderr(&unpacked));
    assert!(
        !written,
        "refused before anything is written: {}",
        stderr(&unpacked)
    );
}

/// Sends a request as it is; gives the whole answer.
fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("set");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answered");
    String::from_utf8_lossy(&answer).into_owned()
}

fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let lines = answer.split("\r\n\r\n").next()?.lines();
    let mut found = lines.filter_map(|line| line.split_once(": "));
    found
        .find(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

#[test]
fn an_archive_is_served_over_http() {
    let place = tempfile::tempdir().expect("temporary directory");
    tree(place.path(), 40);
    let large = "0123456789".repeat(300_000);
    fs::write(place.path().join("from/large.txt"), &large).expect("file");
    fs::write(place.path().join("from/<b>.html"), "page").expect("file");
    let packed = sqlitmus(
        place.path(),
        &["pack", "from", "a.sqlar", "--compress", "auto"],
    );
    assert_eq!(packed.status.code(), Some(0), "{}", stderr(&packed));
    let words = ["serve", "a.sqlar", "--listen", "127.0.0.1:0"];
    let mut server = program::command(place.path(), &words)
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut errors = std::io::BufReader::new(server.stderr.take().expect("piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut errors, &mut line).expect("a line");
    let address = line
        .trim_start_matches("http://")
        .split('/')
        .next()
        .expect("an address")
        .to_owned();
    let get = |path: &str, headers: &str| {
        ask(
            &address,
            &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n"),
        )
    };
    let body = |answer: &str| {
        answer
            .split_once("\r\n\r\n")
            .map(|(_, body)| body.to_owned())
    };

    let whole = get("/3/3", "");
    assert!(whole.starts_with("HTTP/1.1 200"), "{whole}");
    assert_eq!(body(&whole), Some("3 ".repeat(500)));
    let tag = header(&whole, "etag").expect("a tag").to_owned();
    assert!(get("/3/3", &format!("If-None-Match: {tag}\r\n")).starts_with("HTTP/1.1 304"));
    assert!(get("/3/3", "If-Match: \"other\"\r\n").starts_with("HTTP/1.1 412"));
    let part = get("/large.txt", "Range: bytes=1500005-1500014\r\n");
    assert!(part.starts_with("HTTP/1.1 206"), "{part}");
    assert_eq!(
        header(&part, "content-range"),
        Some("bytes 1500005-1500014/3000000")
    );
    assert_eq!(body(&part).as_deref(), Some("5678901234"));
    assert!(
        header(&part, "content-type")
            .expect("a type")
            .starts_with("text/plain")
    );
    assert_eq!(
        body(&get("/large.txt", "")).map(|body| body == large),
        Some(true)
    );
    assert!(get("/large.txt", "Range: bytes=3000000-\r\n").starts_with("HTTP/1.1 416"));
    let head = ask(
        &address,
        "HEAD /large.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(header(&head, "content-length"), Some("3000000"));
    assert_eq!(body(&head).as_deref(), Some(""));
    let page = get("/", "");
    assert!(
        page.contains("href=\"/3/\"") && page.contains("&lt;b&gt;.html"),
        "{page}"
    );
    assert_eq!(header(&get("/3", ""), "location"), Some("/3/"));
    for (path, status) in [
        ("/nothing", 404),
        ("/../a", 400),
        ("/%2e%2e/a", 400),
        ("/3/%00", 400),
    ] {
        assert!(
            get(path, "").starts_with(&format!("HTTP/1.1 {status}")),
            "{path}"
        );
    }
    let posted = ask(
        &address,
        "POST /3/3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    );
    assert!(
        posted.starts_with("HTTP/1.1 405") && header(&posted, "allow") == Some("GET, HEAD"),
        "{posted}"
    );
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                assert_eq!(
                    body(&get("/large.txt", "")).map(|body| body == large),
                    Some(true)
                )
            });
        }
    });
    let process = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(process, rustix::process::Signal::INT).expect("signalled");
    assert_eq!(server.wait().expect("ended").code(), Some(0));
}
