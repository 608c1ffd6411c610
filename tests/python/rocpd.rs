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

/// Runs a script that imports the modules, as programs written for rocmProfileData do.
#[track_caller]
fn imports(dir: &Dir, script: &str) -> String {
    let common = "import sqlite3\nfrom rocpd.importer import RocpdImportData\n\
         def opened(file):\n    imp = RocpdImportData()\n    imp.resumeExisting(sqlite3.connect(file))\n    return imp\n";
    python(dir).arg("-c").arg(format!("{common}{script}")).run().expect(0).expect_silent().stdout.clone()
}

/// A trace of PyTorch, unpacked.
fn pytorch(dir: &Dir, name: &str) {
    let packed = root().join("fixtures/rpd/mytrace_raw.rpd.gz");
    tool("sh", &["-c", &format!("gzip -dc '{}' > '{}'", packed.display(), dir.path(name).display())]);
}

#[test]
fn programs_write_rows_with_an_importer() {
    let dir = Dir::new();
    let said = imports(
        &dir,
        r#"
from rocpd.schema import RocpdSchema
from rocpd.metadata import Metadata
connection = sqlite3.connect("new.rpd")
RocpdSchema().writeSchema(connection)
imp = RocpdImportData()
imp.initNew(connection)
name, args = imp.getStringId("Work"), imp.getStringId("n = 3")
assert imp.getStringId("Work") == name and imp.getStringId("") == imp.empty_string_id
for start in (10, 20):
    row = (imp.api_id, start, start + 5, name, args)
    connection.execute("insert into rocpd_api (id, pid, tid, start, end, apiName_id, args_id) values (?, 1, 1, ?, ?, ?, ?)", row)
    imp.api_id += 1
imp.commitStrings(True)
again = opened("new.rpd")
print(again.api_id, again.op_id, again.getStringId("n = 3") == args, again.string_id == max(again.strings.values()) + 1)
facts = Metadata(again)
print(facts.get("schema_version"), facts.get("mine"))
facts.set("mine", "1"); facts.set("mine", "2"); print(facts.get("mine"))
facts.clear("mine"); print(facts.get("mine"))
again.getStringId("left over")
del again, facts
connection.close()
"#,
    );
    assert_eq!(said, "3 1 True True\n2 None\n2\nNone\n");
    let calls =
        dir.trace("new.rpd").texts("select apiName || ' ' || args || ' ' || start from api order by id");
    assert_eq!(calls, ["Work n = 3 10", "Work n = 3 20"]);
    assert_eq!(
        dir.trace("new.rpd").number("select count(*) from rocpd_string where string = 'left over'"),
        1
    );
    tool(rpd().to_str().unwrap(), &["check", dir.path("new.rpd").to_str().unwrap()]);
}

#[test]
fn passes_that_programs_import_do_what_the_verbs_do() {
    let dir = Dir::new();
    let serialised = "insert into rocpd_string (string) values ('s_api=Alloc|size=30'), ('s_api=Alloc|size=4'); \
         insert into rocpd_api (pid, tid, start, end, apiName_id, args_id) \
         select 1, 1, 5, 9, n.id, a.id from rocpd_string n, rocpd_string a where n.string = 'UserMarker' and a.string like 's_api=%'";
    for name in ["x.rpd", "y.rpd"] {
        pytorch(&dir, name);
        tool("sqlite3", &[dir.path(name).as_os_str(), serialised.as_ref()]);
    }
    let said = imports(
        &dir,
        r#"
from rocpd.strings import cleanStrings
from rocpd.deserialize import deserializeApis
from rocpd.subclass import createSubclassTable
from rocpd.call_stacks import createCallStackTable, generateCallStacks
imp = opened("x.rpd")
deserializeApis(imp, ["UserMarker"])
print(sorted(imp.connection.execute("select args from api where apiName = 'Alloc'").fetchall()))
createSubclassTable(imp, "api", "alloc", ["Alloc"], {"size": "integer NOT NULL", "absent": "varchar(18) NOT NULL"})
print(imp.connection.execute("select size from allocapi where size > 9").fetchall())
createCallStackTable(imp)
generateCallStacks(imp)
try:
    generateCallStacks(imp)
except RuntimeError as error:
    print(error)
cleanStrings(imp, False)
print(imp.strings["Alloc"] == imp.connection.execute("select id from rocpd_string where string = 'Alloc'").fetchone()[0])
"#,
    );
    let expected = "[('s_api=Alloc|size=30',), ('s_api=Alloc|size=4',)]\n[(30,)]\nthe call stacks are in the trace already\nTrue\n";
    assert_eq!(said, expected);
    does(&dir, "rocpd.deserialize", &["y.rpd"]);
    let subclass = ["--base", "api", "--name", "alloc", "--apis", "Alloc", "--types", "size=integer"];
    does(&dir, "rocpd.subclass", &[&["y.rpd"], &subclass[..]].concat());
    does(&dir, "rocpd.call_stacks", &["y.rpd"]);
    does(&dir, "rocpd.strings", &["y.rpd", "--dedupe"]);
    let all = "select 's' || id || string from rocpd_string union all select 'a' || id || apiName || args from api \
         union all select 'c' || parent_id || '-' || child_id || '-' || cpu_time from ext_callstack \
         union all select 'n' || api_ptr_id || typeof(size) || size from rocpd_allocapi order by 1";
    assert!(dir.trace("x.rpd").texts(all) == dir.trace("y.rpd").texts(all));
    tool(rpd().to_str().unwrap(), &["check", dir.path("x.rpd").to_str().unwrap()]);
}

#[test]
fn operators_lose_their_fields_where_a_program_asks_for_it() {
    let dir = Dir::new();
    pytorch(&dir, "x.rpd");
    let fields = "select count(*) from rocpd_string where string like '%, seq%' or string like '%, op_id%' or string like '%, sizes%'";
    assert!(dir.trace("x.rpd").number(fields) > 0);
    let calls = dir.trace("x.rpd").number("select count(*) from api");
    imports(&dir, "from rocpd.strings import cleanStrings\ncleanStrings(opened('x.rpd'), True)");
    let trace = dir.trace("x.rpd");
    assert_eq!(trace.number(fields), 0);
    assert_eq!(trace.number("select count(*) from api"), calls);
    assert_eq!(
        trace.number("select count(*) from (select 1 from rocpd_string group by string having count(*) > 1)"),
        0
    );
}

#[test]
fn a_pass_that_a_program_imports_works_in_memory_and_fails_with_a_reason() {
    let dir = Dir::new();
    fs::copy(root().join("fixtures/rpd/matmul_result.rpd"), dir.path("x.rpd")).unwrap();
    let said = imports(
        &dir,
        r#"
from rocpd.strings import cleanStrings
memory = sqlite3.connect(":memory:")
sqlite3.connect("x.rpd").backup(memory)
imp = RocpdImportData()
imp.resumeExisting(memory)
imp.getStringId("not used")
cleanStrings(imp, False)
print("not used" in imp.strings, len(imp.strings) == memory.execute("select count(*) from rocpd_string").fetchone()[0])
imp = opened("x.rpd")
imp.connection.execute("insert into rocpd_string (string) values ('mine')")
imp.connection.execute("drop table rocpd_api")
try:
    cleanStrings(imp, False)
except RuntimeError as error:
    print(error)
"#,
    );
    let mut lines = said.lines();
    assert_eq!(lines.next(), Some("False True"));
    assert!(lines.next().unwrap().starts_with("rpd: ") && said.contains("x.rpd"), "{said}");
}

#[test]
fn the_schema_can_be_had_in_parts() {
    let dir = Dir::new();
    let said = imports(
        &dir,
        r#"
from rocpd.schema import RocpdSchema
schema = RocpdSchema()
def made(write):
    connection = sqlite3.connect(":memory:")
    write(connection)
    return [connection.execute("select count(*) from sqlite_master where type = ? and sql is not null", (kind,)).fetchone()[0] for kind in ("table", "index", "view")]
basic, usual, full = made(schema.writeBasicSchema), made(schema.writeSchema), made(schema.writeFullSchema)
print(basic[1:] == [1, 0], usual[0] > basic[0], usual[2] > 0, full == [usual[0], 11, usual[2]])
connection = sqlite3.connect(":memory:")
schema.writeBasicSchema(connection)
connection.executescript(schema.index2Schema)
"#,
    );
    assert_eq!(said, "True True True True\n");
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
