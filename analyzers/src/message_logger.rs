//! Each message, as a line: with commas the addresses of accesses, as omniprobe's message logger has them; as JSON objects all messages.

use std::fmt::Write as _;

use rpd_dh_comms::message::{Message, MessageKind};
use rpd_duration_log::LogFormat;
use serde_json::json;

use crate::analysis::{Subject, quoted};

/// The first line of a log with commas.
pub(crate) const HEADER: &str =
    "ADDRESS_MESSAGE,timestamp,kernel,src_line,dispatch,exec_mask,xcc_id,se_id,cu_id,kind,address\n";

pub(crate) struct MessageLogger {
    format: LogFormat,
    text: String,
}

impl MessageLogger {
    pub(crate) fn new(format: LogFormat) -> MessageLogger {
        MessageLogger { format, text: String::new() }
    }

    pub(crate) fn message(&mut self, message: &Message<'_>, subject: &Subject<'_>) {
        let header = &message.header;
        let [xcc, se, cu] = message.place();
        match self.format {
            LogFormat::Csv => {
                let MessageKind::Address(access) = message.kind() else { return };
                let kernel = quoted(subject.kernel);
                let _ = write!(
                    self.text,
                    "ADDRESS_MESSAGE,{},{kernel},{},{},{:#018x},{xcc},{se},{cu},{}",
                    header.timestamp, header.line, subject.dispatch, header.exec, access.kind
                );
                for (_, address) in message.addresses() {
                    let _ = write!(self.text, ",{address:#018x}");
                }
                self.text.push('\n');
            }
            LogFormat::Json => {
                let mut line = json!({
                    "kernel_name": subject.kernel,
                    "dispatch_id": subject.dispatch,
                    "exec": header.exec,
                    "timestamp": header.timestamp,
                    "dwarf_line": header.line,
                    "dwarf_column": header.column,
                    "block_idx_x": header.block[0],
                    "block_idx_y": header.block[1],
                    "block_idx_z": header.block[2],
                    "wave_num": message.wave(),
                    "xcc_id": xcc,
                    "se_id": se,
                    "cu_id": cu,
                    "active_lane_count": header.lanes,
                    "user_type": header.kind,
                    "user_data": header.detail,
                });
                match message.kind() {
                    MessageKind::Address(access) => {
                        line["op_type"] = access.kind.into();
                        line["addresses"] =
                            message.addresses().map(|(_, address)| format!("{address:#018x}")).collect();
                    }
                    MessageKind::Interval { begin, end } => {
                        line["start"] = begin.into();
                        line["stop"] = end.into();
                    }
                    MessageKind::Block(_) | MessageKind::Other(_) => {}
                }
                let _ = writeln!(self.text, "{line}");
            }
        }
    }

    /// The lines so far, once.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}
