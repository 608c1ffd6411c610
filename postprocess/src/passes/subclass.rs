//! Subclasses: the arguments of certain calls, or of ops of certain types, as columns of a table of their own.
//!
//! A subclass N of calls is the table `rocpd_Napi`: `api_ptr_id` and one column per argument key found, of text unless told, with a
//! view `Napi` that has the columns of `api` in front. For ops it is `rocpd_Nop`, `op_ptr_id`, `Nop`; their arguments
//! are in the description. An argument that a call lacks is the empty text. Where two keys differ in case only,
//! the first gives its spelling: SQLite does not tell them apart.

use anyhow::{Result, bail};
use rpd_schema::{Version, text};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::pass::{Change, Definition, Freshness};
use crate::text::escape;
use crate::trace::arguments;
use crate::trace::layout::{Layout, metadata, quote, same};
use crate::trace::row_count;

/// More keys than calls of any kind have: such texts are no arguments.
const MOST_COLUMNS: usize = 200;

/// Keys that say what a serialised row is (`rpd deserialize`), not what its arguments are.
const NOT_COLUMNS: [&str; 4] = ["s_api", "s_op", "api_ptr_id", "op_ptr_id"];

/// As `rpd subclass` makes it; each has tables and a mark of its own.
pub static DEFINITION: Definition = Definition {
    name: "subclass",
    about: "Make the arguments of certain calls or ops columns of a table: rocpd_NAMEapi or rocpd_NAMEop",
    tag: "Subclass",
    reads: &["rocpd_api", "rocpd_op"],
    tables: &[],
    views: &[],
    changes: None,
    making: None,
};

/// The tag of the row of the metadata that says which calls or ops belong to the subclass with this table.
pub(crate) fn tag(table: &str) -> String {
    format!("{}::{table}", DEFINITION.tag)
}

/// Every subclass that a trace has: its table, its view, and whether it covers the rows that are there now.
///
/// # Errors
/// When the trace cannot be read.
pub fn all(trace: &Connection, version: Version) -> Result<Vec<(String, String, Freshness)>> {
    let layout = Layout::of(trace)?;
    let mut found = Vec::new();
    for table in &layout.tables {
        let bases = [Base::Api, Base::Op].into_iter();
        let named = bases.filter_map(|base| {
            let name = table.name.strip_prefix("rocpd_")?.strip_suffix(base.name())?;
            is_name(name).then(|| (base, name.to_string()))
        });
        for (base, name) in named {
            let Some(members) = metadata(trace, &layout, &tag(&table.name))? else { continue };
            let members: Vec<&str> = members.split(',').collect();
            let query = format!("SELECT count(*) FROM ({})", base.rows(version, members.len(), None));
            let wanted: i64 = trace.query_row(&query, params_from_iter(&members), |row| row.get(0))?;
            let is_current = wanted.unsigned_abs() == row_count(trace, &table.name)?;
            let freshness = if is_current { Freshness::Current } else { Freshness::Stale };
            found.push((table.name.clone(), format!("{name}{}", base.name()), freshness));
        }
    }
    Ok(found)
}

/// What a subclass is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Calls, chosen by their name.
    Api,
    /// Ops, chosen by their type.
    Op,
}

impl Base {
    /// As it ends the names of table and view.
    pub fn name(self) -> &'static str {
        match self {
            Base::Api => "api",
            Base::Op => "op",
        }
    }

    /// The column of the subclass table that refers to the base's row.
    pub fn key(self) -> &'static str {
        match self {
            Base::Api => "api_ptr_id",
            Base::Op => "op_ptr_id",
        }
    }

    /// Its id, and the text with its arguments, of every row with one of `members` names, in the order of the ids.
    fn rows(self, version: Version, members: usize, among: Option<&str>) -> String {
        let (table, name, text) = match self {
            Base::Api => ("rocpd_api", "apiName_id", "args_id"),
            Base::Op => ("rocpd_op", "opType_id", "description_id"),
        };
        let texts =
            if self == Base::Api && version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
        let members = vec!["?"; members].join(", ");
        let among = among.map(|among| format!("{among} M CROSS JOIN ")).unwrap_or_default();
        let is_among = if among.is_empty() { "true" } else { "B.id = M.id" };
        format!(
            "SELECT B.id, {} FROM {among}{table} B JOIN {texts} T ON T.id = B.{text}
             WHERE {is_among} AND B.{name} IN (SELECT id FROM rocpd_string WHERE string IN ({members})) ORDER BY B.id",
            text::arguments("T.string")
        )
    }
}

/// Whether a subclass may have that name: it is part of names in SQL.
pub fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The type of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// As the text has them; the empty text where a call lacks the argument.
    Text,
    /// Whole numbers, in decimal or as `0x` and hexadecimal digits; NULL where there is none.
    Integer,
    /// Numbers with a fraction; NULL where there is none.
    Real,
}

impl ColumnType {
    /// The type that a declaration of SQL gives a column: `integer NOT NULL`, `varchar(18)`, `double` ...
    pub fn of_declaration(declaration: &str) -> Option<ColumnType> {
        let word = declaration.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let word = word.to_ascii_uppercase();
        let is_one_of = |names: &[&str]| names.iter().any(|name| word.contains(name));
        // In SQLite's order.
        if is_one_of(&["INT", "BOOL"]) {
            Some(ColumnType::Integer)
        } else if is_one_of(&["CHAR", "CLOB", "TEXT"]) {
            Some(ColumnType::Text)
        } else if is_one_of(&["REAL", "FLOA", "DOUB"]) {
            Some(ColumnType::Real)
        } else {
            None
        }
    }

    /// As a table declares it. A number may be missing: the empty text would be larger than every number.
    fn declaration(self) -> &'static str {
        match self {
            ColumnType::Text => "varchar(255) NOT NULL",
            ColumnType::Integer => "integer",
            ColumnType::Real => "real",
        }
    }

    /// The value that `text` is. None where it should be a number and is none.
    fn value(self, text: &str) -> Option<Value> {
        let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let integer = || match hexadecimal {
            Some(digits) => i64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with(['+', '-'])),
            None => text.parse().ok(),
        };
        match self {
            ColumnType::Text => Some(Value::Text(text.to_string())),
            ColumnType::Integer => integer().map(Value::Integer),
            ColumnType::Real => match hexadecimal {
                Some(_) => integer().map(|number| Value::Real(number as f64)),
                None => text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Real),
            },
        }
    }
}

/// A subclass to be made.
#[derive(Debug)]
pub struct Subclass<'a> {
    /// What of.
    pub base: Base,
    /// Its name ([`is_name`]).
    pub name: &'a str,
    /// Names of the calls, or types of the ops, that belong to it.
    pub members: &'a [&'a str],
    /// Columns that it has whether or not their keys are found; they come first.
    pub columns: &'a [&'a str],
    /// Types of columns, by their keys; those of others are [`ColumnType::Text`].
    pub types: &'a [(String, ColumnType)],
    /// A table whose `id`s are those of all rows that can belong to it; without one every row is looked at.
    pub among: Option<&'a str>,
}

/// What was made.
#[derive(Debug, PartialEq, Eq)]
pub struct Made {
    /// Rows of the table.
    pub rows: u64,
    /// Its columns behind the key.
    pub columns: Vec<String>,
    /// Arguments that are no numbers in columns of numbers: they are NULL.
    pub no_numbers: u64,
}

impl Subclass<'_> {
    /// Name of the table.
    pub fn table(&self) -> String {
        format!("rocpd_{}{}", self.name, self.base.name())
    }

    /// Name of the view.
    pub fn view(&self) -> String {
        format!("{}{}", self.name, self.base.name())
    }

    /// Makes table and view, neither of which may be there. Reads the base's table twice, in its order; call it in
    /// a transaction.
    ///
    /// # Errors
    /// When the texts are no arguments, or the file cannot be read or written.
    pub fn make(&self, trace: &Connection, version: Version) -> Result<Made> {
        debug_assert!(is_name(self.name));
        let rows = self.base.rows(version, self.members.len(), self.among);
        let columns = self.found_columns(trace, &rows)?;
        self.declare(trace, &columns)?;
        let (rows, no_numbers) = self.fill(trace, &rows, &columns)?;
        Ok(Made { rows, columns, no_numbers })
    }

    fn column_type(&self, column: &str) -> ColumnType {
        let mut types = self.types.iter();
        types.find(|(key, _)| key.eq_ignore_ascii_case(column)).map_or(ColumnType::Text, |(_, found)| *found)
    }

    fn found_columns(&self, trace: &Connection, rows: &str) -> Result<Vec<String>> {
        let mut columns: Vec<String> = self.columns.iter().map(ToString::to_string).collect();
        let is_same = |known: &str, key: &str| known.eq_ignore_ascii_case(key);
        let mut rows = trace.prepare(rows)?;
        let mut rows = rows.query(params_from_iter(self.members))?;
        while let Some(row) = rows.next()? {
            let text = text::text_of(row.get_ref(1)?);
            for (key, _) in arguments::pairs(&text) {
                let is_known = columns.iter().any(|known| is_same(known, key));
                if !is_known && !NOT_COLUMNS.iter().any(|no_column| is_same(no_column, key)) {
                    columns.push(key.to_string());
                }
            }
            if columns.len() > MOST_COLUMNS {
                bail!("more than {MOST_COLUMNS} different keys: these texts are no arguments");
            }
        }
        Ok(columns)
    }

    fn declare(&self, trace: &Connection, columns: &[String]) -> rusqlite::Result<()> {
        let (table, view, base, key) = (self.table(), self.view(), self.base.name(), self.base.key());
        let columns: String = columns
            .iter()
            .map(|column| format!(",\n    {} {}", quote(column), self.column_type(column).declaration()))
            .collect();
        trace.execute_batch(&format!(
            "CREATE TABLE \"{table}\" (
    \"{key}\" integer NOT NULL PRIMARY KEY REFERENCES \"rocpd_{base}\" (\"id\") DEFERRABLE INITIALLY DEFERRED{columns}
);
CREATE VIEW \"{view}\" AS
    SELECT B.*, S.* FROM \"{base}\" B JOIN \"{table}\" S ON S.\"{key}\" = B.\"id\";"
        ))
    }

    /// Fills the table: how many rows it has, and how many arguments are no numbers though their columns are of numbers.
    fn fill(&self, trace: &Connection, rows: &str, columns: &[String]) -> Result<(u64, u64)> {
        let types: Vec<ColumnType> = columns.iter().map(|column| self.column_type(column)).collect();
        let places = vec!["?"; columns.len() + 1].join(", ");
        let mut insert = trace.prepare(&format!("INSERT INTO \"{}\" VALUES ({places})", self.table()))?;
        let mut rows = trace.prepare(rows)?;
        let mut rows = rows.query(params_from_iter(self.members))?;
        let (mut count, mut no_numbers) = (0, 0);
        while let Some(row) = rows.next()? {
            let text = text::text_of(row.get_ref(1)?);
            let mut values = vec![""; columns.len()];
            for (key, value) in arguments::pairs(&text) {
                if let Some(at) = columns.iter().position(|column| column.eq_ignore_ascii_case(key)) {
                    values[at] = value;
                }
            }
            insert.raw_bind_parameter(1, row.get::<_, i64>(0)?)?;
            for (at, (text, column_type)) in values.iter().zip(&types).enumerate() {
                let value = column_type.value(text);
                no_numbers += u64::from(value.is_none() && !text.is_empty());
                insert.raw_bind_parameter(at + 2, value.unwrap_or(Value::Null))?;
            }
            insert.raw_execute()?;
            count += 1;
        }
        Ok((count, no_numbers))
    }
}

/// Makes a subclass whose names are none of those of `passes`; none if it is there, unless `redo` says to make it anew.
///
/// # Errors
/// When something else has the names, or the file cannot be read or written.
pub(super) fn make(
    change: &Change<'_>,
    subclass: &Subclass<'_>,
    redo: bool,
    passes: &[&Definition],
) -> Result<Option<Made>> {
    let trace = change.trace;
    let tag = tag(&subclass.table());
    if is_there(trace, subclass, &tag, passes)? {
        if !redo {
            return Ok(None);
        }
        let (table, view) = (quote(&subclass.table()), quote(&subclass.view()));
        trace.execute_batch(&format!("DROP VIEW IF EXISTS {view}; DROP TABLE IF EXISTS {table}"))?;
        trace.execute("DELETE FROM rocpd_metadata WHERE tag = ?1", [&tag])?;
    }
    let made = subclass.make(trace, change.version)?;
    trace.execute(
        "INSERT INTO rocpd_metadata (tag, value) VALUES (?1, ?2)",
        [&tag, &subclass.members.join(",")],
    )?;
    Ok(Some(made))
}

/// Whether the file has this subclass.
fn is_there(trace: &Connection, subclass: &Subclass<'_>, tag: &str, passes: &[&Definition]) -> Result<bool> {
    let (table, view) = (subclass.table(), subclass.view());
    let is_ours = "SELECT EXISTS (SELECT 1 FROM rocpd_metadata WHERE tag = ?1)";
    if trace.query_row(is_ours, [tag], |row| row.get(0))? {
        return Ok(true);
    }
    if let Some(pass) = passes
        .iter()
        .find(|pass| pass.tables.iter().chain(pass.views).any(|name| same(name, &table) || same(name, &view)))
    {
        bail!("{table} is a table of rpd {}: choose another name", pass.name);
    }
    let layout = Layout::of(trace)?;
    match [table, view].into_iter().find(|name| layout.has(name)) {
        Some(taken) => bail!("{taken} is something else in this file: choose another name"),
        None => Ok(false),
    }
}

/// A line about each member that no call, or no op, is named for.
///
/// # Errors
/// When the trace cannot be read.
pub fn unknown_members(trace: &Connection, subclass: &Subclass<'_>) -> Result<Vec<String>> {
    let (what, names) = match subclass.base {
        Base::Api => ("call", "SELECT apiName_id FROM rocpd_api"),
        Base::Op => ("op", "SELECT opType_id FROM rocpd_op"),
    };
    let mut known =
        trace.prepare(&format!("SELECT DISTINCT string FROM rocpd_string WHERE id IN ({names})"))?;
    let known =
        known.query_map([], |row| Ok(String::from_utf8_lossy(row.get_ref(0)?.as_bytes()?).into_owned()))?;
    let known: Vec<String> = known.collect::<rusqlite::Result<_>>()?;
    let unknown = subclass.members.iter().filter(|member| known.iter().all(|known| known != *member));
    let line = |member: &&str| {
        let tip = rpd_settings::tip(member, known.iter().map(String::as_str));
        format!("no {what} is named {}{}", escape(member), escape(&tip))
    };
    Ok(unknown.map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::{ColumnType, Value};

    #[test]
    fn declarations_of_sql_give_types() {
        for (declaration, expected) in [
            ("integer", Some(ColumnType::Integer)),
            ("integer NOT NULL", Some(ColumnType::Integer)),
            ("BIGINT", Some(ColumnType::Integer)),
            ("varchar(18) NOT NULL", Some(ColumnType::Text)),
            ("text", Some(ColumnType::Text)),
            ("double precision", Some(ColumnType::Real)),
            ("real", Some(ColumnType::Real)),
            ("blob", None),
            ("", None),
        ] {
            assert_eq!(ColumnType::of_declaration(declaration), expected, "{declaration}");
        }
    }

    #[test]
    fn numbers_are_read_as_the_recorders_write_them() {
        let integer = |text| ColumnType::Integer.value(text);
        assert_eq!(integer("10"), Some(Value::Integer(10)));
        assert_eq!(integer("-7"), Some(Value::Integer(-7)));
        assert_eq!(integer("0x20"), Some(Value::Integer(32)));
        for none in
            ["", "ten", "1.5", "0x", "0x-1", "0x+1", "0xffffffffffffffff", "9223372036854775808", "1 2"]
        {
            assert_eq!(integer(none), None, "{none}");
        }
        assert_eq!(ColumnType::Real.value("1.5e3"), Some(Value::Real(1500.0)));
        assert_eq!(ColumnType::Real.value("0x10"), Some(Value::Real(16.0)));
        assert_eq!(ColumnType::Real.value("inf"), None);
        assert_eq!(ColumnType::Text.value(""), Some(Value::Text(String::new())));
    }
}
