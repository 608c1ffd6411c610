//! How often lanes access each page of memory.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rpd_dh_comms::message::{Access, Message, MessageKind, Space};
use rpd_schema::Finding;
use serde_json::json;

use crate::analysis::Subject;

/// Bytes of a page.
const PAGE: u64 = 1 << 20;
/// Pages that are counted.
const MOST: usize = 1 << 20;

/// See the module. LDS and scratch are not of memory that has pages.
#[derive(Default)]
pub(crate) struct Heatmap {
    accesses: BTreeMap<u64, u64>,
    left_out: u64,
}

impl Heatmap {
    pub(crate) fn message(&mut self, message: &Message<'_>) {
        let MessageKind::Address(Access { space, .. }) = message.kind() else { return };
        if matches!(space, Space::Shared | Space::Scratch | Space::Gds) {
            return;
        }
        for (_, address) in message.addresses() {
            let (page, has_room) = (address / PAGE, self.accesses.len() < MOST);
            match self.accesses.get_mut(&page) {
                Some(accesses) => *accesses += 1,
                None if has_room => drop(self.accesses.insert(page, 1)),
                None => self.left_out += 1,
            }
        }
    }

    pub(crate) fn reason(&self) -> Option<String> {
        (self.left_out > 0)
            .then(|| format!("{} accesses to more than {MOST} pages are not counted", self.left_out))
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        let page = |(page, accesses): (&u64, &u64)| Finding::Page {
            address: page * PAGE,
            size: PAGE,
            accesses: *accesses,
        };
        self.accesses.iter().map(page).collect()
    }

    pub(crate) fn text(&self, subject: &Subject<'_>) -> String {
        let mut text = format!("memory heatmap report({}[{}])\n", subject.kernel, subject.dispatch);
        for (page, accesses) in &self.accesses {
            let (start, end) = (page * PAGE, page * PAGE + (PAGE - 1));
            let _ = writeln!(text, "page[{start:#018x}:{end:#018x}] {accesses} accesses");
        }
        text
    }

    pub(crate) fn json(&self, subject: &Subject<'_>) -> serde_json::Value {
        let page = |(page, accesses): (&u64, &u64)| json!({"start_address": page * PAGE, "end_address": page * PAGE + (PAGE - 1), "accesses": accesses});
        let pages: Vec<_> = self.accesses.iter().map(page).collect();
        json!({"kernel": subject.kernel, "dispatch_id": subject.dispatch, "pages": pages})
    }
}
