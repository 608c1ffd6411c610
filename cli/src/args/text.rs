//! The arguments of the verbs that are about what texts say.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use rpd_postprocess::passes::subclass::{Base, ColumnType, is_name};

use crate::verb::{deserialize, strings, subclass};

#[derive(Args)]
#[command(about = rpd_postprocess::passes::subclass::DEFINITION.about, after_help = "\
The table has one column per argument key found; a view NAMEapi or NAMEop shows them behind the
columns of api or op. Arguments are `key = value` pairs joined by `|`: of a call in its args, of an op in its description.
Columns are text: to compare and add numbers up, name those that are integer (0x.. too) or real. A call without such an
argument, or with one that is no number, has NULL there.

Example:
  rpd subclass --base api --name malloc --apis hipMalloc,hipFree --types size=integer trace.rpd
  sqlite3 trace.rpd 'select start, apiName, ptr, size from mallocapi where size > 4096'")]
pub(super) struct Subclass {
    /// The trace
    file: PathBuf,
    /// What the subclass is of
    #[arg(long)]
    base: BaseName,
    /// Its name: letters, digits and underscores
    #[arg(long, value_parser = subclass_name)]
    name: String,
    /// Names of the calls, or types of the ops, that belong to it
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', required = true)]
    apis: Vec<String>,
    /// Types of columns: integer, real or text, by argument [default: text]
    #[arg(long, value_name = "KEY=TYPE,...", value_delimiter = ',', value_parser = column_type)]
    types: Vec<(String, ColumnType)>,
    /// Make one of that name anew
    #[arg(long)]
    redo: bool,
}

/// [`Base`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum BaseName {
    /// Calls, by name
    Api,
    /// Ops, by type
    Op,
}

impl Subclass {
    pub(super) fn run(self) -> Result<()> {
        let base = match self.base {
            BaseName::Api => Base::Api,
            BaseName::Op => Base::Op,
        };
        let Subclass { file, name, apis: members, types, redo, .. } = self;
        subclass::run(&subclass::Request { file, base, name, members, types, redo })
    }
}

#[derive(Args)]
#[command(about = rpd_postprocess::passes::deserialize::DEFINITION.about, after_help = "\
A marker with `s_api=NAME` in its text becomes a call of that name. One with `s_op=TYPE` becomes an
operation: the text may contain gpuId, queueId, sequenceId, completionSignal, start and end.

Example:
  roctxMark(\"s_api=BlockAlloc | size=4096\")      in the program
  rpd deserialize trace.rpd
  rpd subclass trace.rpd --base api --name block --apis BlockAlloc")]
pub(super) struct Deserialize {
    /// The trace
    file: PathBuf,
    /// Names of the calls that are such markers
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "UserMarker")]
    apis: Vec<String>,
    /// Write one JSON object about it
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(about = rpd_postprocess::passes::dedupe::DEFINITION.about, after_help = "\
Every reference follows: those of the format, declared foreign keys, and columns declared in
rocpd_metadata as references::rocpd_string.id. Texts whose ids stand in other columns that are named as
if they referred to texts (..._id, ...string...) stay, and a line says so.

The file keeps its size, and new records use the free room. To make the file smaller:
sqlite3 FILE vacuum

Example:
  rpd strings --dedupe trace.rpd")]
pub(super) struct Strings {
    /// The trace
    file: PathBuf,
    /// Leave each text once
    #[arg(long, required = true)]
    dedupe: bool,
    /// Write one JSON object about it
    #[arg(long)]
    json: bool,
}

impl Deserialize {
    pub(super) fn run(self) -> Result<()> {
        deserialize::run(&self.file, &self.apis, self.json)
    }
}

impl Strings {
    pub(super) fn run(self) -> Result<()> {
        // The one thing that it does has to be said, as with the original's tool.
        debug_assert!(self.dedupe);
        strings::run(&self.file, self.json)
    }
}

fn subclass_name(text: &str) -> Result<String, String> {
    if is_name(text) {
        Ok(text.to_string())
    } else {
        Err("not 1 to 64 letters, digits and underscores".to_string())
    }
}

fn column_type(text: &str) -> Result<(String, ColumnType), String> {
    let (key, declaration) = text.split_once('=').ok_or("not of the form KEY=TYPE, as in size=integer")?;
    let found =
        ColumnType::of_declaration(declaration.trim()).ok_or("the type is not integer, real or text")?;
    Ok((key.trim().to_string(), found))
}
