//! The rocpd modules: the schema is the recorder's, the passes are rpd's.

use std::fs;
use std::path::PathBuf;

use super::{python, root, sources};
use crate::harness::{Dir, Trace, rpd, tool};

/// Everything that makes a fresh trace: what is declared, and what the metadata says.
fn declared(trace: &Trace) -> Vec<String> {
    let mut all =
        trace.texts("select type || ' ' || name || ' ' || coalesce(sql, '') from sqlite_master order by 1");
    all.extend(trace.texts("select tag || ' ' || value from rocpd_metadata order by id"));
    all
}

#[test]
fn one_schema_whoever_creates_the_file() {
    let dir = Dir::new();
    let ran = python(&dir).arg("-m").arg("rocpd.schema").arg("--create").arg("python.rpd").run();
    assert_eq!(ran.expect(0).expect_silent().stdout, "Creating empty rpd: python.rpd\n");
    tool(rpd().to_str().unwrap(), &["create".as_ref(), dir.path("rust.rpd").as_os_str()]);
    assert_eq!(declared(&dir.trace("python.rpd")), declared(&dir.trace("rust.rpd")));
    // On what is there already, as programs do that open a connection themselves.
    let script = "import sqlite3; from rocpd.schema import RocpdSchema; c = sqlite3.connect('python.rpd')\n\
         RocpdSchema().writeSchema(c); c.commit()";
    python(&dir).arg("-c").arg(script).run().expect(0).expect_silent();
    assert_eq!(declared(&dir.trace("python.rpd")), declared(&dir.trace("rust.rpd")));
}

#[test]
fn an_existing_file_is_left_as_it_is() {
    let dir = Dir::new();
    fs::write(dir.path("x.rpd"), "mine").unwrap();
    let ran = python(&dir).arg("-m").arg("rocpd.schema").arg("--create").arg("x.rpd").run();
    assert_eq!(ran.expect(1).stderr, "rocpd.schema: x.rpd is there already: it is left as it is\n");
    assert_eq!(fs::read_to_string(dir.path("x.rpd")).unwrap(), "mine");
    let ran = python(&dir).arg("-m").arg("rocpd.schema").arg("--create").arg("no/such/x.rpd").run();
    assert_eq!(
        ran.expect(1).stderr,
        "rocpd.schema: cannot create no/such/x.rpd: unable to open database file\n"
    );
}

/// A front's run: its arguments and what rpd says is what `rpd` says to the same.
#[track_caller]
fn assert_is_verb(dir: &Dir, module: &str, verb: &[&str], arguments: &[&str]) {
    let front =
        arguments.iter().fold(python(dir).arg("-m").arg(module), |run, argument| run.arg(*argument)).run();
    let direct =
        verb.iter().fold(crate::harness::Run::new(dir, rpd()), |run, argument| run.arg(*argument)).run();
    assert_eq!(front.status.code(), direct.status.code(), "{front}{direct}");
    assert_eq!(front.stdout, direct.stdout, "{front}{direct}");
    assert_eq!(front.stderr, direct.stderr, "{front}{direct}");
}

#[test]
fn passes_are_verbs_of_rpd() {
    let dir = Dir::new();
    // Each says the same of a file that is not there.
    for (module, verb) in
        [("rocpd.callstack", "callstack"), ("rocpd.call_stacks", "callstack"), ("rpd", "top")]
    {
        let arguments: &[&str] = if module == "rpd" { &["top", "none.rpd"] } else { &["none.rpd"] };
        assert_is_verb(&dir, module, &[verb, "none.rpd"], arguments);
    }
    let subclass = ["--base", "api", "--name", "x", "--apis", "hipMalloc", "none.rpd"];
    assert_is_verb(&dir, "rocpd.subclass", &[&["subclass"], &subclass[..]].concat(), &subclass);
    // And does it to one that is.
    fs::copy(root().join("fixtures/rpd/matmul_result.rpd"), dir.path("x.rpd")).unwrap();
    python(&dir).arg("-m").arg("rocpd.callstack").arg("x.rpd").run().expect(0);
    assert!(dir.trace("x.rpd").number("select count(*) from ext_callstack") > 0);
    let ran = python(&dir).arg("-m").arg("rocpd.strings").arg("x.rpd").arg("--clean_autograd").run();
    assert!(ran.expect(1).stderr.contains("`rpd autograd FILE`"), "{ran}");
}

/// Runs a front on a trace, to its end.
#[track_caller]
fn does(dir: &Dir, module: &str, arguments: &[&str]) {
    let front = python(dir).arg("-m").arg(module);
    arguments.iter().fold(front, |run, argument| run.arg(*argument)).run().expect(0);
}

#[test]
fn every_front_does_to_a_trace_what_its_verb_does() {
    let dir = Dir::new();
    let packed = root().join("fixtures/rpd/mytrace_raw.rpd.gz");
    let unpack = |name: &str| {
        let script = format!("gzip -dc '{}' > '{}'", packed.display(), dir.path(name).display());
        tool("sh", &["-c", &script]);
    };
    let number = |query: &str| dir.trace("x.rpd").number(query);
    unpack("x.rpd");
    does(&dir, "rocpd.graph", &["x.rpd"]);
    assert_eq!(number("select count(*) from graphKernel"), 386);
    does(&dir, "rocpd.autograd", &["x.rpd", "--skip_callstacks"]);
    assert_eq!(number("select count(*) from ext_autogradapi"), 11816);
    assert_eq!(number("select count(*) from sqlite_master where name = 'ext_callstack'"), 0);
    does(&dir, "rocpd.call_stacks", &["x.rpd"]);
    assert_eq!(number("select count(*) from ext_callstack"), 86387);
    does(&dir, "rocpd.subclass", &["x.rpd", "--base", "api", "--name", "launch", "--apis", "hipGraphLaunch"]);
    assert_eq!(number("select count(*) from launchapi"), 20);
    let script = "import sqlite3; c = sqlite3.connect('x.rpd')\n\
         c.execute(\"insert into rocpd_string (string) values ('hipMalloc'), ('s_api=Alloc|size=3')\")\n\
         c.execute(\"insert into rocpd_api (pid, tid, start, end, apiName_id, args_id) select 1, 1, 5, 9, n.id, max(a.id) \"\n\
         \"from rocpd_string n, rocpd_string a where n.string = 'UserMarker'\"); c.commit()";
    python(&dir).arg("-c").arg(script).run().expect(0).expect_silent();
    does(&dir, "rocpd.deserialize", &["x.rpd"]);
    assert_eq!(number("select count(*) from api where apiName = 'Alloc' and start = 5"), 1);
    let texts = number("select count(*) from rocpd_string");
    does(&dir, "rocpd.strings", &["x.rpd", "--dedupe"]);
    assert!(number("select count(*) from rocpd_string") < texts);
    tool(rpd().to_str().unwrap(), &["check", dir.path("x.rpd").to_str().unwrap()]);
}

#[test]
fn trim_takes_the_arguments_of_the_original() {
    let dir = Dir::new();
    let matmul = root().join("fixtures/rpd/matmul_result.rpd");
    let copy = |name: &str| fs::write(dir.path(name), fs::read(&matmul).unwrap()).unwrap();
    copy("x.rpd");
    does(&dir, "rocpd.trim", &["x.rpd", "--start", "0%", "--end", "50%", "--dryrun"]);
    assert!(fs::read(dir.path("x.rpd")).unwrap() == fs::read(&matmul).unwrap(), "a dry run changes nothing");
    let calls = dir.trace("x.rpd").number("select count(*) from rocpd_api");
    does(&dir, "rocpd.trim", &["x.rpd", "--start", "0%", "--end", "50%", "--no-dryrun"]);
    copy("y.rpd");
    let trimmed = ["trim", "y.rpd", "-o", "z.rpd", "--start", "0%", "--end", "50%"];
    trimmed
        .iter()
        .fold(crate::harness::Run::new(&dir, rpd()), |run, argument| run.arg(*argument))
        .run()
        .expect(0);
    let left = "select 'api ' || id from rocpd_api union all select 'op ' || id from rocpd_op order by 1";
    let ids = |name: &str| dir.trace(name).texts(left);
    assert!(ids("x.rpd") == ids("z.rpd") && !ids("x.rpd").is_empty());
    assert!(dir.trace("x.rpd").number("select count(*) from rocpd_api") < calls);
}

/// The Python sources alone, away from what is built.
fn copied(dir: &Dir) -> PathBuf {
    let copy = dir.path("copied");
    tool("cp", &["-r".as_ref(), sources().as_os_str(), copy.as_os_str()]);
    copy
}

#[test]
fn without_the_command_or_the_verb_the_message_says_so() {
    let dir = Dir::new();
    let (copy, bin) = (copied(&dir), dir.path("bin"));
    fs::create_dir(&bin).unwrap();
    // A python3 that is a script would need the rest of PATH.
    let python3 = tool("python3", &["-c", "import sys; print(sys.executable)"]);
    let front = |arguments: &[&str]| {
        let run = crate::harness::Run::new(&dir, python3.trim()).env("PYTHONPATH", &copy).env("PATH", &bin);
        arguments.iter().fold(run, |run, argument| run.arg(*argument)).run()
    };
    let ran = front(&["-m", "rocpd.graph", "x.rpd"]);
    let missing =
        "there is no rpd command: not in this package, and not on PATH; `make install` installs it\n";
    assert_eq!(ran.expect(1).stderr, format!("rocpd.graph: {missing}"), "{ran}");
    fs::copy("/bin/false", bin.join("rpd")).unwrap();
    let ran = front(&["-m", "rocpd.graph", "x.rpd"]);
    let old =
        format!("rocpd.graph: {}/rpd has no verb 'graph': it is older than this package\n", bin.display());
    assert_eq!(ran.expect(1).stderr, old, "{ran}");
}

#[test]
fn another_package_of_the_name_is_not_shadowed() {
    let dir = Dir::new();
    let theirs = dir.path("rocm/rocpd");
    fs::create_dir_all(&theirs).unwrap();
    fs::write(theirs.join("__init__.py"), "whose = 'theirs'\n").unwrap();
    fs::write(theirs.join("importer.py"), "what = 'their importer'\n").unwrap();
    let path = format!("{}:{}", sources().display(), dir.path("rocm").display());
    let script = "import rocpd, rocpd.importer; print(rocpd.whose, rocpd.importer.what)\n\
         from rpd.schema import RocpdSchema; import rpdTracerControl";
    let ran = python(&dir).arg("-c").arg(script).env("PYTHONPATH", path).run();
    assert_eq!(ran.expect(0).stdout, "theirs their importer\n", "{ran}");
    let said = format!("UserWarning: rocpd is the package in {} (ROCm's)", theirs.display());
    assert!(ran.stderr.contains(&said), "{ran}");
}
