//! Intervals that kernels measure by the device's clock.

use std::fmt::Write as _;

use rpd_dh_comms::message::{Message, MessageKind};
use rpd_schema::Finding;
use serde_json::json;

use crate::analysis::Subject;

#[derive(Default)]
pub(crate) struct TimeInterval {
    count: u64,
    total: u64,
    first_begin: u64,
    last_end: u64,
}

impl TimeInterval {
    pub(crate) fn message(&mut self, message: &Message<'_>) {
        let MessageKind::Interval { begin, end } = message.kind() else { return };
        self.first_begin = if self.count == 0 { begin } else { self.first_begin.min(begin) };
        self.last_end = self.last_end.max(end);
        self.total = self.total.saturating_add(end.saturating_sub(begin));
        self.count += 1;
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        let TimeInterval { count, total, first_begin, last_end } = *self;
        let intervals = Finding::Intervals { count, total, first_begin, last_end };
        if count == 0 { Vec::new() } else { vec![intervals] }
    }

    pub(crate) fn text(&self, subject: &Subject<'_>) -> String {
        let mut text = format!("time_interval report({}[{}]):\n", subject.kernel, subject.dispatch);
        if self.count == 0 {
            text.push_str("\tno intervals\n");
            return text;
        }
        let (average, span) =
            (self.total as f64 / self.count as f64, self.last_end.saturating_sub(self.first_begin));
        let _ = writeln!(text, "\ttotal time for all {} intervals: {}", self.count, self.total);
        let _ = writeln!(text, "\taverage time per interval: {average:.1}");
        let _ = writeln!(text, "\tfirst start: {}", self.first_begin);
        let _ = writeln!(text, "\tlast stop: {}", self.last_end);
        let _ = writeln!(
            text,
            "\ttime from first start to last stop: {span} ({:.2} times the average)",
            span as f64 / average.max(1.0)
        );
        text
    }

    pub(crate) fn json(&self, subject: &Subject<'_>) -> serde_json::Value {
        json!({
            "kernel": subject.kernel,
            "dispatch_id": subject.dispatch,
            "intervals": self.count,
            "total_time": self.total,
            "first_start": self.first_begin,
            "last_stop": self.last_end,
        })
    }
}
