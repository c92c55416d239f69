//! Stories of pages as JSON: every event with its numbers, under the names that the engine gives them.

use pageout_engine::{
    Deactivation, Heat, ListsEvent, LruType, PageEvent, PageState, Position, RefTierLimit, RefaultRule,
    ScanBalance, Stamp, TypeChoice, TypeReason, Whereabouts,
};
use serde_json::{Map, Value, json};

use super::{Answer, PageReport, Run, Since, Step};

impl Answer {
    /// As JSON.
    pub fn json(&self) -> Value {
        let Answer { run, pages, evictions, .. } = self;
        let mut value = json!({
            "policy": run.policy,
            "accesses": run.accesses,
            "end_ns": run.end.0,
        });
        if let Some(total) = evictions {
            value["evictions"] = (*total).into();
        }
        value["pages"] = pages.iter().map(|report| story(run, report)).collect();
        value
    }
}

/// The type as the kernel's counters name it.
pub fn type_name(kind: LruType) -> &'static str {
    match kind {
        LruType::Anon => "anon",
        LruType::File => "file",
    }
}

fn story(run: &Run, report: &PageReport) -> Value {
    let steps = |steps: &mut dyn Iterator<Item = &Step>| -> Vec<Value> {
        steps.map(|step| self::step(run, step)).collect()
    };
    json!({
        "page": report.title,
        "evicted_at_ns": report.eviction.map(|eviction| eviction.at.0),
        "back_at_ns": report.back.map(|at| at.0),
        "first": steps(&mut report.story.first.iter()),
        "left_out": report.story.left_out,
        "last": steps(&mut report.story.last.iter()),
        "since": since(&report.since),
        "now": report.now.as_ref().map(state),
        "huge_page_of": report.head,
    })
}

fn step(run: &Run, step: &Step) -> Value {
    let mut value = json!({
        "at_ns": step.at.0,
        "until_ns": step.until.0,
        "times": step.times,
        "memcg": run.groups.get(&step.memcg),
        "node": step.node.0,
        "state": state(&step.state),
    });
    if !step.since.is_empty() {
        value["since"] = since(&step.since);
    }
    let Value::Object(event) = event(run, &step.event) else { unreachable!("an event is an object") };
    value.as_object_mut().expect("made as one").extend(event);
    value
}

/// `Name { .. }` as `name`.
fn name(value: &dyn std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    let mut name = String::new();
    for letter in text[..end].chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

fn state(state: &PageState) -> Value {
    let mut place = json!({ "list": name(&state.place) });
    if let Whereabouts::Generation { seq, listed, oldest, youngest } = state.place {
        place = json!({
            "list": "generation", "seq": seq, "listed": listed, "oldest": oldest, "youngest": youngest,
        });
    }
    json!({
        "type": type_name(state.kind),
        "place": place,
        "referenced": state.referenced,
        "active": state.active,
        "workingset": state.workingset,
        "counter": state.counter,
        "tier": state.tier,
        "accessed": state.accessed,
        "huge": state.huge,
    })
}

fn position(position: &Position) -> Value {
    json!({ "refaulted": position.refaulted, "total": position.total, "gain": position.gain })
}

fn limit(limit: &RefTierLimit) -> Value {
    json!({
        "highest": limit.highest,
        "reference": limit.reference.as_ref().map(position),
        "reference_is_other_type": limit.is_other_type,
        "gain": limit.gain,
    })
}

fn deactivation(why: &Deactivation) -> Value {
    json!({
        "forced": why.forced,
        "refaults_now": why.refaults[0],
        "refaults_then": why.refaults[1],
        "inactive": why.inactive,
        "active": why.active,
        "ratio": why.ratio,
    })
}

fn event(run: &Run, event: &PageEvent) -> Value {
    let mut value = match event {
        PageEvent::Filled { with, task, reclaim_calls, reclaimed } => json!({
            "with": name(with),
            "task": run.tasks.get(&task.0),
            "reclaim_calls": reclaim_calls,
            "reclaimed": reclaimed,
        }),
        PageEvent::Refaulted { rule, recent, workingset, refs, tier } => json!({
            "rule": refault_rule(rule),
            "recent": recent,
            "workingset": workingset,
            "refs": refs,
            "tier": tier,
        }),
        PageEvent::FileWriteBegun { reason } => json!({ "reason": reason.name() }),
        PageEvent::Read { ok } | PageEvent::Written { ok } | PageEvent::FileWritten { ok } => {
            json!({ "ok": ok })
        }
        PageEvent::ZswapStored { bytes } => json!({ "bytes": bytes }),
        PageEvent::NotRotated { why } => json!({ "why": name(why) }),
        PageEvent::Mapped { write } => json!({ "write": write }),
        PageEvent::SecondAccess { in_add_batch } => json!({ "in_add_batch": in_add_batch }),
        PageEvent::Queued { batch, waiting, full } => {
            json!({ "batch": name(batch), "waiting": waiting, "full": full })
        }
        PageEvent::Drained { batch } => json!({ "batch": name(batch) }),
        PageEvent::Placed { arrival, rule } => json!({ "arrival": name(arrival), "rule": name(rule) }),
        PageEvent::FoundYoung { by } => json!({ "by": name(by) }),
        PageEvent::MadeYoungest { seq } => json!({ "seq": seq }),
        PageEvent::PassedOn { to } => json!({ "to": to }),
        PageEvent::Protected { tier, limit: up_to, spared, at_top, to } => json!({
            "tier": tier,
            "limit": limit(up_to),
            "spared": position(spared),
            "at_top": at_top,
            "to": to,
        }),
        PageEvent::Promoted { refs, to } => json!({ "refs": refs, "to": to }),
        PageEvent::MovedUp { to } => json!({ "to": to }),
        PageEvent::Judged { verdict, because } => {
            let mut value = json!({ "verdict": name(verdict), "because": name(because) });
            match because {
                pageout_engine::Because::Used { young, was_referenced, executable } => {
                    value["young"] = (*young).into();
                    value["was_referenced"] = (*was_referenced).into();
                    value["executable"] = (*executable).into();
                }
                pageout_engine::Because::Visited { young } => value["young"] = (*young).into(),
                pageout_engine::Because::Held { references } => value["references"] = (*references).into(),
                _ => {}
            }
            value
        }
        PageEvent::Deactivated { young, why } => {
            json!({ "young": young, "why": why.as_ref().map(deactivation) })
        }
        PageEvent::Evicted { target, stamp, workingset, refs, tier, swapped } => json!({
            "on_behalf_of": run.groups.get(target),
            "stamp": match stamp {
                Stamp::Age(age) => json!({ "age": age }),
                Stamp::OldestGeneration(seq) => json!({ "oldest_generation": seq }),
            },
            "workingset": workingset,
            "refs": refs,
            "tier": tier,
            "swapped": swapped,
        }),
        PageEvent::HintFault { by } => json!({ "by": by.0 }),
        PageEvent::HeatJudged { to, heat } => heat_judged(to.0, heat),
        PageEvent::LocalityJudged { to, locality } => {
            json!({ "to": to.0, "locality": name(locality), "moves": locality.belongs_here() })
        }
        PageEvent::Reported { source, by, accesses, is_ready } => json!({
            "source": name(source),
            "by": by.map(|by| by.0),
            "accesses": accesses,
            "is_ready": is_ready,
        }),
        PageEvent::SetAside { to } => json!({ "to": to.0 }),
        PageEvent::Migrated { from, to, why } => json!({ "from": from.0, "to": to.0, "why": name(why) }),
        PageEvent::NotMigrated { to, why } => json!({ "to": to.0, "why": name(why) }),
        PageEvent::OutOfReach { to } => json!({ "to": to }),
        PageEvent::Truncated { dirty } => json!({ "dirty": dirty }),
        PageEvent::Nominated { why } => json!({ "why": why }),
        PageEvent::UseTold
        | PageEvent::Sorted
        | PageEvent::Isolated
        | PageEvent::IsolatedToMove
        | PageEvent::HintMarked
        | PageEvent::SplitOff
        | PageEvent::Dirtied
        | PageEvent::Dropped
        | PageEvent::ZswapLoaded
        | PageEvent::ZswapWrittenBack
        | PageEvent::KeptActive
        | PageEvent::Released => Value::Object(Map::new()),
    };
    let details = std::mem::take(value.as_object_mut().expect("made as one"));
    let mut named = Map::new();
    named.insert("event".to_string(), name(event).into());
    named.extend(details);
    Value::Object(named)
}

fn heat_judged(to: u8, heat: &Heat) -> Value {
    let mut value = json!({ "to": to, "heat": name(heat) });
    match *heat {
        Heat::RoomToSpare => value["is_hot"] = true.into(),
        Heat::OnActiveList(is_active) => value["is_hot"] = is_active.into(),
        Heat::Age { age_ms, threshold_ms } => {
            value["is_hot"] = (age_ms < threshold_ms).into();
            value["age_ms"] = age_ms.into();
            value["threshold_ms"] = threshold_ms.into();
        }
    }
    value
}

fn refault_rule(rule: &RefaultRule) -> Value {
    let mut value = match *rule {
        RefaultRule::Distance { distance, room } => json!({ "distance": distance, "room": room }),
        RefaultRule::OldestGeneration { evicted_from, oldest, restored_from } => {
            json!({ "evicted_from": evicted_from, "oldest": oldest, "restored_from": restored_from })
        }
        RefaultRule::AnyGeneration { evicted_from, youngest, count } => {
            json!({ "evicted_from": evicted_from, "youngest": youngest, "count": count })
        }
        RefaultRule::NoGenerations
        | RefaultRule::CountOnly
        | RefaultRule::OtherGroup
        | RefaultRule::RemovedGroup => json!({}),
    };
    value["name"] = name(rule).into();
    value
}

fn since(since: &Since) -> Value {
    let decisions: Vec<Value> = since
        .decisions
        .iter()
        .map(|(times, at, event)| {
            let mut value = lists_event(event);
            value["times"] = (*times).into();
            value["last_at_ns"] = at.0.into();
            value
        })
        .collect();
    json!({
        "generations_opened": since.opened,
        "generations_closed": { "anon": since.closed[0], "file": since.closed[1] },
        "decisions": decisions,
    })
}

fn lists_event(event: &ListsEvent) -> Value {
    match event {
        ListsEvent::GenerationOpened { seq } => json!({ "event": "generation_opened", "seq": seq }),
        ListsEvent::GenerationsClosed { kind: of, first, count } => {
            json!({ "event": "generations_closed", "type": type_name(*of), "first": first, "count": count })
        }
        ListsEvent::AboveSoftLimit { usage, limit } => {
            json!({ "event": "above_soft_limit", "usage": usage, "limit": limit })
        }
        ListsEvent::NearNode { mode } => json!({ "event": "near_node", "mode": mode }),
        ListsEvent::TypeChosen(choice) => type_choice(choice),
        ListsEvent::PassBegun { balance, priority, targets } => {
            let mut value = json!({
                "event": "pass_begun",
                "balance": name(balance),
                "priority": priority,
                "targets": targets,
            });
            if let ScanBalance::Fraction { weights, cost } = balance {
                value["weights"] = json!(weights);
                value["cost"] = json!(cost);
            }
            value
        }
    }
}

fn type_choice(choice: &TypeChoice) -> Value {
    let mut value = json!({
        "event": "type_chosen",
        "type": type_name(choice.kind),
        "reason": name(&choice.reason),
        "limit": limit(&choice.limit),
        "tiers": choice.tiers.iter().map(position).collect::<Vec<Value>>(),
    });
    match &choice.reason {
        TypeReason::NoSwap => {}
        TypeReason::AnonIsOlder { oldest } => value["oldest"] = json!(oldest),
        TypeReason::Swappiness(swappiness) => value["swappiness"] = json!(swappiness),
        TypeReason::Refaults { anon, file } => {
            value["anon"] = position(anon);
            value["file"] = position(file);
        }
        TypeReason::Shares { taken, weights } => {
            value["taken"] = json!(taken);
            value["weights"] = json!(weights);
        }
        TypeReason::OtherHadNothing { generations, oldest, youngest, all } => {
            value["other"] = json!({
                "generations": generations, "oldest": oldest, "youngest": youngest, "all": all,
            });
        }
    }
    value
}
