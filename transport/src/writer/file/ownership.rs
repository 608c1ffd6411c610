//! With RPDT_APPEND=0, a process may add only to a trace of its own run or job. The check when its session begins is here.

use rpd_schema::{Appender, Error, ErrorKind, SessionInfo, session_fact};
use rpd_settings::job;

use crate::recorder::Recorder;
use crate::writer::session;

/// Fails where a session begins in a file that holds what others have recorded, and nothing of this run or job.
///
/// # Errors
/// [`ErrorKind::OtherRun`]; those of SQLite.
pub(super) fn check(appender: &Appender, recorder: &Recorder) -> Result<(), Error> {
    // The first number is that of a file with nothing in it.
    if recorder.config.appends || appender.has_session() || appender.session() == 0 {
        return Ok(());
    }
    let run = session::run(recorder);
    let is_ours = |session: &SessionInfo| {
        run.is_some() && session.get(session_fact::RUN) == run.as_deref()
            || job::is_same_launch(|name| session.get(&session_fact::env(name)))
    };
    match appender.sessions()?.iter().any(is_ours) {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::OtherRun, appender.path())),
    }
}
