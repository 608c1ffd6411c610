//! Notes beside a trace: what a process lost that it could not say in the file, because others had it to the end.
//!
//! They are in the directory `TRACE-lost`, one file per process, so that writing one needs no lock and waits for nobody. Whoever
//! next takes a session of the trace takes them in and removes them; until then readers count them in. A note names the trace by
//! inode and time of birth: one of a file that was at this path before is left alone.

mod form;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rusqlite::Connection;

use self::form::{MOST_BYTES, Said};
use crate::numbered::{FactsByNumber, numbered_facts};
use crate::place::is_out_of_descriptors;
use crate::session::{claim, count};
use crate::session_fact::{LOST, TAKEN_IN};

/// Notes of a trace that are looked at.
const MOST_NOTES: usize = 10_000;

/// What one process says.
#[derive(Debug)]
pub(crate) struct Note {
    path: PathBuf,
    /// Name of its file, which no other process gives to one.
    name: String,
    /// Its session, if it had taken one.
    session: Option<u32>,
    facts: BTreeMap<String, String>,
}

/// Leaves a note of a process: its `session` in the trace, if it has one, and the facts that it would have stated there. `name` is one
/// that no other process uses.
///
/// # Errors
///
/// There is no trace, or no note can be written beside it, or none that would be taken for one: the trace is another user's. The error
/// names the directory.
pub fn leave_note(
    trace: &Path,
    name: &str,
    session: Option<u32>,
    facts: &[(String, String)],
) -> io::Result<()> {
    let about = fs::metadata(trace)?;
    let said = Said { trace: identity(&about), session, facts: facts.to_vec() };
    let directory = directory(trace);
    // Who has used up its descriptors may make room and try again.
    let named = |error: io::Error| match is_out_of_descriptors(&error) {
        true => error,
        false => io::Error::new(error.kind(), format!("{}: {error}", directory.display())),
    };
    let path = directory.join(name);
    let mut opened = Err(io::ErrorKind::NotFound.into());
    // Whoever takes in the last note removes the directory.
    for _ in 0..8 {
        let _ = fs::create_dir(&directory);
        if fs::symlink_metadata(&directory).is_ok_and(|found| !found.is_dir()) {
            return Err(named(io::ErrorKind::NotADirectory.into()));
        }
        opened = OpenOptions::new().write(true).create_new(true).open(&path);
        if !matches!(&opened, Err(error) if error.kind() == io::ErrorKind::NotFound) {
            break;
        }
    }
    let mut note = opened.map_err(|error| {
        let _ = fs::remove_dir(&directory);
        named(error)
    })?;
    let written = match note.metadata() {
        Ok(of_note) if !is_trusted(&of_note, &about) => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "the trace is another user's"))
        }
        _ => note.write_all(said.text().as_bytes()),
    };
    if written.is_err() {
        // Half of one says nothing.
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir(&directory);
    }
    written.map_err(named)
}

/// The complete notes on this trace.
pub(crate) fn notes(trace: &Path) -> Vec<Note> {
    let directory = directory(trace);
    // A link may lead anywhere.
    if !fs::symlink_metadata(&directory).is_ok_and(|found| found.is_dir()) {
        return vec![];
    }
    let Ok(entries) = fs::read_dir(directory) else { return vec![] };
    let Ok(about) = fs::metadata(trace) else { return vec![] };
    let mut notes: Vec<_> =
        entries.flatten().filter_map(|entry| read(entry.path(), &about)).take(MOST_NOTES).collect();
    notes.sort_by(|one, other| one.name.cmp(&other.name));
    notes
}

/// The files of the notes on the trace.
#[must_use]
pub fn note_files(trace: &Path) -> Vec<PathBuf> {
    notes(trace).into_iter().map(|note| note.path).collect()
}

/// Adds what the notes say to what the file says; returns what was added.
pub(crate) fn count_in(
    connection: &Connection,
    trace: &Path,
    sessions: &mut FactsByNumber,
) -> rusqlite::Result<FactsByNumber> {
    let mut added = FactsByNumber::new();
    for note in notes(trace) {
        if note.is_in(sessions) {
            continue;
        }
        let counted = count(connection)?;
        let free = sessions.last_key_value().map_or(0, |(last, _)| last.saturating_add(1)).max(counted);
        let session = note.session.filter(|session| *session < counted).unwrap_or(free);
        added.entry(session).or_default().extend(note.facts.clone());
        sessions.entry(session).or_default().extend(note.facts);
    }
    Ok(added)
}

/// Writes the notes into the file, inside a transaction; their files, to be removed when it is committed.
pub(crate) fn take_in(connection: &Connection, trace: &Path) -> rusqlite::Result<Vec<PathBuf>> {
    let mut done = vec![];
    for note in notes(trace) {
        done.push(note.path.clone());
        if note.is_in(&numbered_facts(connection, "session::")?) {
            continue;
        }
        let counted = count(connection)?;
        let own = note.session.filter(|session| *session < counted);
        let Some(session) = own.map_or_else(|| claim(connection), |own| Ok(Some(own)))? else { continue };
        for (key, value) in note.facts {
            let tag = format!("session::{session}::{key}");
            if connection.execute("UPDATE rocpd_metadata SET value = ?2 WHERE tag = ?1", [&tag, &value])? == 0
            {
                connection
                    .execute("INSERT INTO rocpd_metadata (tag, value) VALUES (?1, ?2)", [&tag, &value])?;
            }
        }
    }
    Ok(done)
}

/// Removes notes that are in the file now, or whose file is gone. One that cannot be removed is known to the file when it is met again,
/// or names another file.
pub fn remove_notes(trace: &Path, notes: &[PathBuf]) {
    for note in notes {
        let _ = fs::remove_file(note);
    }
    let _ = fs::remove_dir(directory(trace));
}

/// Removes the note of that name.
pub fn remove_note(trace: &Path, name: &str) {
    remove_notes(trace, &[directory(trace).join(name)]);
}

/// What the note of that name says is not so any more: takes it out of the file, inside a transaction, where somebody has taken it in;
/// its file, to be removed when that is committed. Facts of session `own` that say nothing of losses stay.
pub(crate) fn withdraw(
    connection: &Connection,
    trace: &Path,
    name: &str,
    own: u32,
) -> rusqlite::Result<PathBuf> {
    for (session, facts) in numbered_facts(connection, "session::")? {
        if facts.get(TAKEN_IN).is_none_or(|taken| taken != name) {
            continue;
        }
        let goes = |key: &&String| session != own || key.starts_with(LOST) || *key == TAKEN_IN;
        for key in facts.keys().filter(goes) {
            let tag = format!("session::{session}::{key}");
            connection.execute("DELETE FROM rocpd_metadata WHERE tag = ?1", [tag])?;
        }
    }
    Ok(directory(trace).join(name))
}

impl Note {
    /// Whether the file has it.
    fn is_in(&self, sessions: &FactsByNumber) -> bool {
        sessions.values().any(|facts| facts.get(TAKEN_IN) == Some(&self.name))
    }
}

fn read(path: PathBuf, about: &Metadata) -> Option<Note> {
    // Not a link, and not a pipe, which would keep whoever opens it waiting.
    if !fs::symlink_metadata(&path).ok()?.is_file() {
        return None;
    }
    let file = File::open(&path).ok()?;
    if !is_trusted(&file.metadata().ok()?, about) {
        return None;
    }
    let mut bytes = vec![];
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let Said { trace: (inode, born), session, facts } = Said::read(&String::from_utf8_lossy(&bytes))?;
    let (real_inode, really_born) = identity(about);
    // Not every file system knows when a file was born.
    let is_about = inode == real_inode && (born == really_born || born == 0 || really_born == 0);
    let name = path.file_name()?.to_str()?.to_owned();
    let mut facts: BTreeMap<String, String> = facts.into_iter().collect();
    facts.insert(TAKEN_IN.to_owned(), name.clone());
    is_about.then_some(Note { path, name, session, facts })
}

/// Whether a note is of somebody who may write the trace whatever its mode is: its owner, or root.
fn is_trusted(note: &Metadata, trace: &Metadata) -> bool {
    note.uid() == trace.uid() || note.uid() == 0
}

/// Beside the file itself, whatever links lead to it.
fn directory(trace: &Path) -> PathBuf {
    let mut name = OsString::from(fs::canonicalize(trace).unwrap_or_else(|_| trace.to_path_buf()));
    name.push("-lost");
    PathBuf::from(name)
}

/// Inode and time of birth in ns, 0 where that is not known.
fn identity(file: &Metadata) -> (u64, u128) {
    let born = file.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    (file.ino(), born.map_or(0, |since| since.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Appender, lost, sessions};

    fn facts(lost: &str) -> Vec<(String, String)> {
        vec![
            ("pid".into(), "7".into()),
            ("command".into(), "a\nb".into()),
            ("lost::write".into(), lost.into()),
        ]
    }

    #[test]
    fn a_note_counts_until_it_is_taken_in_and_then_once() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("t.rpd");
        drop(Appender::open(&trace).unwrap());
        leave_note(&trace, "of-session-0", Some(0), &facts("5")).unwrap();
        leave_note(&trace, "of-none", None, &facts("7")).unwrap();
        assert!(leave_note(&trace, "of-none", None, &facts("8")).is_err(), "there already");
        fs::write(super::directory(&trace).join("half"), "rpd-lost 1\nlost::write=9\n").unwrap();
        let (reader, _) = crate::open_read(&trace).unwrap();
        let count = |reader: &Connection| lost(reader).unwrap().get("write").copied();
        assert_eq!((count(&reader), sessions(&reader).unwrap().len()), (Some(12), 2));
        assert_eq!(sessions(&reader).unwrap()[1].command(), Some("a b"));

        // Somebody may not remove them.
        let kept: Vec<_> = notes(&trace).into_iter().map(|note| fs::read(note.path).unwrap()).collect();
        drop(Appender::open(&trace).unwrap());
        assert_eq!((count(&reader), notes(&trace).len()), (Some(12), 0));
        for (number, note) in kept.into_iter().enumerate() {
            let name = ["of-none", "of-session-0"][number];
            fs::write(super::directory(&trace).join(name), note).unwrap();
        }
        assert_eq!((count(&reader), notes(&trace).len()), (Some(12), 2));
        drop(Appender::open(&trace).unwrap());
        assert_eq!((count(&reader), notes(&trace).len()), (Some(12), 0));
        assert!(super::directory(&trace).join("half").exists(), "not known what it is");
    }

    #[test]
    fn a_note_is_withdrawn_wherever_it_has_got() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("t.rpd");
        let lost = || {
            let (reader, _) = crate::open_read(&trace).unwrap();
            lost(&reader).unwrap().get("write").copied()
        };
        let withdraw = |appender: &mut Appender| {
            appender.begin().unwrap();
            appender.withdraw_note("mine").unwrap();
            appender.commit().unwrap();
        };
        let mut appender = Appender::open(&trace).unwrap();
        appender.session_fact("pid", "7").unwrap();
        for session in [Some(appender.session()), None] {
            for somebody_takes_it_in in [false, true] {
                leave_note(&trace, "mine", session, &facts("5")).unwrap();
                if somebody_takes_it_in {
                    drop(Appender::open(&trace).unwrap());
                }
                assert_eq!(lost(), Some(5));
                withdraw(&mut appender);
                assert_eq!(lost(), None, "{session:?} {somebody_takes_it_in}");
                assert!(!super::directory(&trace).exists());
            }
        }
        // One that takes the session of the process itself does too.
        leave_note(&trace, "mine", None, &facts("5")).unwrap();
        let mut first = Appender::open_without_session(&trace, crate::BUSY_TIME).unwrap();
        withdraw(&mut first);
        assert_eq!((lost(), super::directory(&trace).exists()), (None, false));
        let (reader, _) = crate::open_read(&trace).unwrap();
        assert_eq!(sessions(&reader).unwrap()[0].pid(), Some(7));
    }

    #[test]
    fn a_note_on_another_file_at_the_same_path_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (trace, other) = (directory.path().join("t.rpd"), directory.path().join("other.rpd"));
        drop(Appender::open(&trace).unwrap());
        drop(Appender::open(&other).unwrap());
        leave_note(&trace, "of-none", None, &facts("7")).unwrap();
        fs::rename(&other, &trace).unwrap();
        drop(Appender::open(&trace).unwrap());
        let (reader, _) = crate::open_read(&trace).unwrap();
        assert!(lost(&reader).unwrap().is_empty());
        assert!(super::directory(&trace).join("of-none").exists());
        let nowhere = directory.path().join("none.rpd");
        assert!(leave_note(&nowhere, "a", None, &[]).is_err());
    }

    #[test]
    fn a_long_note_is_read_with_all_its_losses() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("t.rpd");
        drop(Appender::open(&trace).unwrap());
        // The boundary of 4 KB lies within a character.
        let long = format!("a{}", "\u{e9}".repeat(100_000));
        let mut facts: Vec<_> = (0..40).map(|number| (format!("version::{number}"), long.clone())).collect();
        facts.insert(0, ("command".into(), long.clone()));
        facts.push(("lost::write".into(), "7".into()));
        leave_note(&trace, "of-session-0", Some(0), &facts).unwrap();
        let note = fs::metadata(super::directory(&trace).join("of-session-0")).unwrap();
        assert!(note.len() <= MOST_BYTES, "{note:?}");
        let (reader, _) = crate::open_read(&trace).unwrap();
        assert_eq!(lost(&reader).unwrap().get("write"), Some(&7));
        let command = sessions(&reader).unwrap()[0].command().unwrap().to_owned();
        assert_eq!((command.len(), long.starts_with(&command)), (form::LONGEST_VALUE - 1, true));
    }

    #[test]
    fn a_link_in_place_of_the_directory_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (trace, elsewhere) = (directory.path().join("t.rpd"), directory.path().join("elsewhere"));
        drop(Appender::open(&trace).unwrap());
        leave_note(&trace, "one", None, &facts("7")).unwrap();
        fs::rename(super::directory(&trace), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, super::directory(&trace)).unwrap();
        assert!(leave_note(&trace, "two", None, &facts("8")).is_err());
        drop(Appender::open(&trace).unwrap());
        let (reader, _) = crate::open_read(&trace).unwrap();
        assert!(lost(&reader).unwrap().is_empty());
        assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 1);
    }

    #[test]
    fn a_note_on_a_trace_named_by_a_link_is_beside_the_trace() {
        let directory = tempfile::tempdir().unwrap();
        let (trace, link) = (directory.path().join("t.rpd"), directory.path().join("link.rpd"));
        drop(Appender::open(&trace).unwrap());
        std::os::unix::fs::symlink(&trace, &link).unwrap();
        leave_note(&link, "one", None, &facts("7")).unwrap();
        let (reader, _) = crate::open_read(&trace).unwrap();
        assert_eq!(lost(&reader).unwrap().get("write"), Some(&7));
        drop(Appender::open(&link).unwrap());
        assert_eq!((lost(&reader).unwrap().get("write"), notes(&trace).len()), (Some(&7), 0));
    }

    #[test]
    fn an_error_names_the_directory_that_is_really_there() {
        let directory = tempfile::tempdir().unwrap();
        let (trace, link) = (directory.path().join("t.rpd"), directory.path().join("link.rpd"));
        drop(Appender::open(&trace).unwrap());
        std::os::unix::fs::symlink(&trace, &link).unwrap();
        leave_note(&link, "one", None, &facts("7")).unwrap();
        let real = super::directory(&trace);
        assert!(real.ends_with("t.rpd-lost"));
        let parts = |error: io::Error| (error.kind(), error.to_string());
        let (kind, text) = parts(leave_note(&link, "one", None, &facts("7")).unwrap_err());
        assert_eq!(
            (kind, text.starts_with(&*real.to_string_lossy())),
            (io::ErrorKind::AlreadyExists, true),
            "{text}"
        );
        fs::remove_dir_all(&real).unwrap();
        fs::write(&real, "").unwrap();
        let (kind, text) = parts(leave_note(&link, "one", None, &facts("7")).unwrap_err());
        assert_eq!(
            (kind, text.starts_with(&*real.to_string_lossy())),
            (io::ErrorKind::NotADirectory, true),
            "{text}"
        );
    }

    #[test]
    fn a_note_of_another_user_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("t.rpd");
        drop(Appender::open(&trace).unwrap());
        leave_note(&trace, "one", None, &facts("7")).unwrap();
        let note = super::directory(&trace).join("one");
        let owned = |file: &Path, user: u32| std::os::unix::fs::chown(file, Some(user), None);
        // Only root can give a file away.
        if owned(&note, 65534).is_err() {
            return;
        }
        assert_eq!(notes(&trace).len(), 0);
        owned(&trace, 65534).unwrap();
        assert_eq!(notes(&trace).len(), 1, "the same user's");
        owned(&trace, 65533).unwrap();
        assert_eq!(notes(&trace).len(), 0);
        owned(&note, 0).unwrap();
        assert_eq!(notes(&trace).len(), 1, "root's");
        leave_note(&trace, "two", None, &facts("8")).unwrap();
        assert_eq!(notes(&trace).len(), 2);
    }

    #[test]
    fn a_forged_note_states_nothing_but_what_a_recorder_may() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("t.rpd");
        drop(Appender::open(&trace).unwrap());
        leave_note(&trace, "one", Some(0), &facts("7")).unwrap();
        let note = super::directory(&trace).join("one");
        let text = fs::read_to_string(&note).unwrap();
        let forged =
            "lost::late=18446744073709551615\nlost::write=18446744073709551615\nenv::EVIL=1\nnode=9\n";
        fs::write(&note, text.replace("end\n", &format!("{forged}end\n"))).unwrap();
        drop(Appender::open(&trace).unwrap());
        let (reader, _) = crate::open_read(&trace).unwrap();
        assert_eq!(lost(&reader).unwrap(), BTreeMap::from([("write".to_owned(), 7)]));
        let stated = sessions(&reader).unwrap().remove(0).facts.into_keys().collect::<Vec<_>>();
        assert_eq!(stated, ["command", "lost::write", "pid", TAKEN_IN]);
    }

    #[test]
    fn a_transaction_that_fails_takes_no_note_in() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("t.rpd");
        drop(Appender::open(&trace).unwrap());
        leave_note(&trace, "of-none", None, &facts("7")).unwrap();
        let mut appender = Appender::open_without_session(&trace, std::time::Duration::ZERO).unwrap();
        appender.begin().unwrap();
        appender.rollback();
        assert_eq!(notes(&trace).len(), 1);
        appender.begin().unwrap();
        appender.commit().unwrap();
        assert_eq!(notes(&trace).len(), 0);
        assert_eq!(lost(&appender.connection).unwrap().get("write"), Some(&7));
    }
}
