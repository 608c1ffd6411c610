//! The permissions of a query: it may read.

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// Pragmas that tell something and take nothing.
const TELLING: [&str; 15] = [
    "application_id",
    "collation_list",
    "compile_options",
    "data_version",
    "database_list",
    "encoding",
    "freelist_count",
    "function_list",
    "journal_mode",
    "module_list",
    "page_count",
    "page_size",
    "pragma_list",
    "schema_version",
    "user_version",
];

/// Pragmas that tell something about what they are given.
const ASKING: [&str; 9] = [
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// What a statement would do that writes.
pub(super) const CHANGE: &str = "change or create something";

/// Whether SQLite may do this for a query; `refused` is told what the query would do otherwise.
pub(super) fn of(context: &AuthContext<'_>, refused: &mut dyn FnMut(String)) -> Authorization {
    let is_one_of = |names: &[&str], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let would = match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => return Authorization::Allow,
        AuthAction::Function { function_name } if !is_one_of(&["load_extension"], function_name) => {
            return Authorization::Allow;
        }
        AuthAction::Pragma { pragma_name, pragma_value }
            if is_one_of(&ASKING, pragma_name)
                || (pragma_value.is_none() && is_one_of(&TELLING, pragma_name)) =>
        {
            return Authorization::Allow;
        }
        AuthAction::Function { .. } => "load an extension".to_string(),
        AuthAction::Pragma { pragma_name, .. } => {
            format!("run the pragma {}", crate::text::escape(pragma_name))
        }
        AuthAction::Attach { .. } => {
            "attach another file; --before FILE opens a second trace as \"before\"".to_string()
        }
        AuthAction::Detach { .. } => "detach a file".to_string(),
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => {
            "begin or end a transaction".to_string()
        }
        _ => CHANGE.to_string(),
    };
    refused(would);
    Authorization::Deny
}
