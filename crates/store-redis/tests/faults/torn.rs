//! An append-only file whose last bytes are missing, as a cut in the middle of a write leaves it. Servers are set to go on with what is
//! whole (`aof-load-truncated`, which is the default and what Debian's package says).

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use redrive_core::message::State;
use redrive_store::{Settled, Store};
use redrive_test_servers::{Redis, RedisSettings};

use crate::world::{World, hasty, until_it_works};

/// How a transaction begins in the file.
const MULTI: u64 = "*1\r\n$5\r\nMULTI\r\n".len() as u64;

/// What is left of the last write, of which this is the length: all but a few bytes, a half, hardly more than that it has begun, one byte.
const LEFT: [fn(u64) -> u64; 8] = [
    |all| all - 1,
    |all| all - 7,
    |all| all - 100,
    |all| all / 2,
    |_| MULTI + 5,
    |_| MULTI,
    |_| MULTI - 1,
    |_| 1,
];

/// The file to which the server appends: the one with the highest number.
fn appended(server: &Redis) -> PathBuf {
    let files = fs::read_dir(server.folder().join("data/appendonlydir")).unwrap();
    let names =
        files.map(|file| file.unwrap().path()).filter(|path| path.to_string_lossy().ends_with(".incr.aof"));
    let number = |path: &PathBuf| -> u32 {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.split('.').find_map(|part| part.parse().ok()).expect("it has a number")
    };
    names.max_by_key(number).expect("it appends")
}

/// Waits until the server has written its file anew, as the store has asked it to.
fn until_it_is_new(server: &Redis) {
    let busy = ["aof_rewrite_in_progress:1", "aof_rewrite_scheduled:1"];
    let quiet = |said: String| !busy.iter().any(|flag| said.contains(flag));
    let rewritten =
        (0..100_000).any(|_| quiet(server.command(&["INFO", "persistence"]).expect("it answers")));
    assert!(rewritten, "it is never done");
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).unwrap().len()
}

#[tokio::test]
async fn a_torn_tail_costs_the_last_write_only_and_as_a_whole() {
    let mut server = Redis::start(RedisSettings::default()).expect("it starts");
    assert!(server.command(&["CONFIG", "GET", "aof-load-truncated"]).unwrap().ends_with("yes"));
    let world = World::open(hasty(&server.url())).await;
    for left in LEFT {
        let file = appended(&server);
        world.put(30).await;
        let leased = world.lease(20).await;
        world.ack(&leased[..10]).await.unwrap();
        let whole = length(&file);
        world.put(50).await;
        server.kill().expect("it is killed");
        let all = length(&file) - whole;
        assert!(all > 10_000, "it was one write of fifty messages: {all}");
        let left = left(all);
        OpenOptions::new().write(true).open(&file).and_then(|file| file.set_len(whole + left)).unwrap();
        server.restart().expect("it goes on with what is whole");

        until_it_works(async || world.store.get_queue(&world.queue).await).await;
        until_it_is_new(&server);
        let states = world.stats().await.states;
        assert_eq!(
            (states.of(State::Ready), states.of(State::Leased)),
            (10, 10),
            "{left} of {all} bytes are left"
        );
        let acked = world.ack(&leased[..10]).await.unwrap();
        assert!(acked.iter().all(|settled| *settled == Settled::NotFound), "{acked:?}");
        let acked = world.ack(&leased[10..]).await.unwrap();
        assert!(acked.iter().all(Settled::is_applied), "{acked:?}");
        let rest = world.lease(100).await;
        assert_eq!(rest.len(), 10);
        assert!(world.ack(&rest).await.unwrap().iter().all(Settled::is_applied));
    }
}
