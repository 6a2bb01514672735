//! The registry: versioned entries, written all or none.

use bytes::Bytes;
use redrive_store::{EntryKey, EntryKind, EntryName, Expect, Write, WriteOutcome, Writes};

use crate::world::{World, at_most};

fn at(kind: EntryKind, name: &str) -> EntryKey {
    EntryKey { kind, name: EntryName::new(name).expect("a good name") }
}

fn put(name: &str, value: &'static str, expect: Expect) -> Write {
    Write { key: at(EntryKind::Operation, name), expect, value: Some(Bytes::from_static(value.as_bytes())) }
}

fn delete(name: &str, expect: Expect) -> Write {
    Write { value: None, ..put(name, "", expect) }
}

async fn write(w: &World, writes: Vec<Write>) -> WriteOutcome {
    w.store().registry_write(Writes::new(writes).expect("good writes")).await.expect("answers")
}

async fn committed(w: &World, writes: Vec<Write>) -> Vec<Option<u64>> {
    match write(w, writes).await {
        WriteOutcome::Committed(versions) => versions,
        WriteOutcome::Conflict { index, actual } => panic!("conflict at {index}: {actual:?}"),
    }
}

async fn value(w: &World, name: &str) -> Option<Bytes> {
    let entry = w.store().registry_get(&at(EntryKind::Operation, name)).await.expect("answers");
    entry.map(|entry| entry.value)
}

async fn an_entry_is_kept_and_found(w: &mut World) {
    let version = committed(w, vec![put("a", "\0 one", Expect::Absent)]).await[0].expect("written");
    w.restart().await;
    let entry =
        w.store().registry_get(&at(EntryKind::Operation, "a")).await.expect("answers").expect("there");
    assert_eq!((entry.version, entry.value), (version, Bytes::from_static(b"\0 one")));
    assert_eq!(
        w.store().registry_get(&at(EntryKind::ApiKey, "a")).await.expect("answers"),
        None,
        "another kind"
    );
}

async fn compare_and_set_admits_one(w: &mut World) {
    let seen = committed(w, vec![put("a", "0", Expect::Absent)]).await[0].expect("written");
    let first = write(w, vec![put("a", "1", Expect::Version(seen))]).await;
    let WriteOutcome::Committed(versions) = first else { panic!("{first:?}") };
    let second = write(w, vec![put("a", "2", Expect::Version(seen))]).await;
    assert_eq!(second, WriteOutcome::Conflict { index: 0, actual: versions[0] });
    assert_eq!(value(w, "a").await.as_deref(), Some(&b"1"[..]));
    let absent = write(w, vec![put("a", "3", Expect::Absent)]).await;
    assert!(matches!(absent, WriteOutcome::Conflict { index: 0, .. }));
}

async fn several_change_together_or_not_at_all(w: &mut World) {
    let a = committed(w, vec![put("a", "1", Expect::Absent)]).await[0].expect("written");
    let writes = vec![
        put("b", "1", Expect::Absent),
        delete("a", Expect::Version(a)),
        put("c", "1", Expect::Version(99)),
    ];
    assert_eq!(write(w, writes).await, WriteOutcome::Conflict { index: 2, actual: None });
    assert_eq!((value(w, "a").await.is_some(), value(w, "b").await), (true, None));
    let versions = committed(w, vec![put("b", "1", Expect::Absent), delete("a", Expect::Version(a))]).await;
    assert!(versions[0].is_some() && versions[1].is_none());
    assert_eq!((value(w, "a").await, value(w, "b").await.is_some()), (None, true));
}

async fn a_version_is_never_used_twice(w: &mut World) {
    let first = committed(w, vec![put("a", "1", Expect::Absent)]).await[0];
    committed(w, vec![delete("a", Expect::Anything)]).await;
    w.restart().await;
    let second = committed(w, vec![put("a", "1", Expect::Absent)]).await[0];
    assert!(second > first, "{second:?} after {first:?}: a stale writer would not notice");
    committed(w, vec![delete("nothing", Expect::Anything)]).await;
}

async fn entries_are_listed_by_name_page_by_page(w: &mut World) {
    for name in ["b", "c", "a", "é", "B"] {
        committed(w, vec![put(name, "x", Expect::Absent)]).await;
    }
    for kind in EntryKind::ALL.into_iter().filter(|kind| *kind != EntryKind::Operation) {
        let key = at(kind, "aa");
        committed(w, vec![Write { key, expect: Expect::Absent, value: Some(Bytes::new()) }]).await;
    }
    let mut names = Vec::new();
    let mut after: Option<EntryName> = None;
    loop {
        let page =
            w.store().registry_list(EntryKind::Operation, after.as_ref(), at_most(2)).await.expect("answers");
        assert!(page.len() <= 2 && names.len() < 9, "a page at a time, and to the end");
        let Some(last) = page.last() else { break };
        after = Some(last.key.name.clone());
        names.extend(page.into_iter().map(|entry| entry.key.name.as_str().to_owned()));
    }
    assert_eq!(names, ["B", "a", "b", "c", "é"]);
}

rules!("registry";
    an_entry_is_kept_and_found,
    compare_and_set_admits_one,
    several_change_together_or_not_at_all,
    a_version_is_never_used_twice,
    entries_are_listed_by_name_page_by_page,
);
