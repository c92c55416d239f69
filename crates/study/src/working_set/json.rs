//! The answer as data, with everything in it, in pages.

use pageout_kerneltext::lru_gen::Memcg;
use pageout_kerneltext::lru_gen::working_set::{Bracket, Estimate, of_memcg, of_node};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::machine::Skipped;
use super::rank::{Landing, Room};
use super::trend::{History, Trend};
use super::{Answer, Landings};

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

impl Answer {
    fn json(&self) -> Value {
        let machines =
            self.histories.iter().zip(&self.rooms).map(|(history, room)| self.machine_json(history, *room));
        let skipped =
            self.skipped.iter().map(|Skipped { file, problem }| json!({ "file": file, "problem": problem }));
        let mut json = json!({
            "complete": self.skipped.is_empty(),
            "within_ms": self.question.within_ms,
            "has_swap": self.question.has_swap,
            "page_bytes": self.page_size,
            "machines": machines.collect::<Vec<_>>(),
            "skipped": skipped.collect::<Vec<_>>(),
        });
        if let Some(Landings { job, machines }) = &self.landings {
            json["job"] = json!({ "pages": job.pages, "swap": job.has_swap });
            json["ranking"] = machines.iter().map(landing).collect();
        }
        json
    }

    fn machine_json(&self, history: &History, room: Option<Room>) -> Value {
        let latest = history.latest();
        let dumps = history.machine.dumps.iter().zip(&history.estimates);
        let dumps = dumps.map(|(reading, estimate)| {
            json!({ "file": reading.file, "full": reading.dump.is_full, "total": pages(estimate) })
        });
        json!({
            "machine": history.machine.name,
            "file": latest.file,
            "whole": history.has_root(),
            "memory": room.map(|room| room.memory),
            "reserved": room.map(|room| room.reserved),
            "free": room.map(|room| room.free(&history.estimate())),
            "total": pages(&history.estimate()),
            "memcgs": latest.dump.memcgs.iter().map(|memcg| self.memcg_json(memcg)).collect::<Vec<_>>(),
            "dumps": dumps.collect::<Vec<_>>(),
            "trend": trend(history),
        })
    }

    fn memcg_json(&self, memcg: &Memcg) -> Value {
        let nodes = memcg.nodes.iter().map(|node| {
            let youngest = node.youngest();
            json!({
                "node": node.id,
                "max_seq": youngest.seq,
                "aged_ms_ago": youngest.age_ms,
                "pages": pages(&of_node(node, self.question)),
            })
        });
        json!({
            "path": memcg.path,
            "id": memcg.id,
            "pages": pages(&of_memcg(memcg, self.question)),
            "nodes": nodes.collect::<Vec<_>>(),
        })
    }
}

fn bracket(Bracket { at_least, at_most }: Bracket) -> Value {
    json!({ "at_least": at_least, "at_most": at_most })
}

fn pages(estimate: &Estimate) -> Value {
    let total = estimate.total();
    json!({
        "in_use": bracket(total.used),
        "in_use_anon": bracket(estimate.anon.used),
        "in_use_file": bracket(estimate.file.used),
        "idle": bracket(total.idle()),
        "idle_anon": bracket(estimate.anon.idle()),
        "idle_file": bracket(estimate.file.idle()),
        "in_all": total.listed,
        "not_looked_at": estimate.not_looked_at,
        "in_young_oldest_generation": estimate.in_drain,
    })
}

fn trend(history: &History) -> Value {
    let since = &history.machine.dumps[history.since].file;
    match history.trend() {
        None => Value::Null,
        Some(Trend::Up(by)) => json!({ "since": since, "direction": "up", "pages": bracket(by) }),
        Some(Trend::Down(by)) => json!({ "since": since, "direction": "down", "pages": bracket(by) }),
        Some(Trend::Unclear) => json!({ "since": since, "direction": "unclear" }),
    }
}

fn landing(landing: &Landing) -> Value {
    json!({
        "machine": landing.machine,
        "fits": landing.fits(),
        "memory": landing.memory,
        "free": landing.free,
        "idle": bracket(landing.idle),
        "in_use": bracket(landing.used),
        "evicted": landing.evicted,
        "pushed_out": bracket(landing.pushed_out),
        "headroom": json!({ "at_least": landing.headroom.0, "at_most": landing.headroom.1 }),
        "lacking": landing.lacking,
    })
}
