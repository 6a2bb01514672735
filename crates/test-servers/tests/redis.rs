//! A Redis of one's own, alone and in a cluster: it starts, it is killed, it comes back, it goes.

use std::fs;
use std::net::TcpStream;
use std::process::Command;

use redrive_test_servers::{
    AppendFsync, Failure, Redis, RedisCluster, RedisSettings, shared_redis_cluster_url, shared_redis_url,
};

fn quick() -> RedisSettings {
    RedisSettings::default().appendonly(false)
}

fn said(answer: Result<String, Failure>) -> String {
    match answer {
        Err(Failure::Answered { error, .. }) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_has_the_settings_it_was_given() {
    let settings = RedisSettings::default().appendfsync(AppendFsync::EverySecond);
    let server =
        Redis::start(settings.set("maxmemory", "64mb").set("maxmemory-policy", "noeviction")).unwrap();
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port()));
    for (name, expected) in [
        ("appendonly", "yes"),
        ("appendfsync", "everysec"),
        ("save", ""),
        ("maxmemory", "67108864"),
        ("maxmemory-policy", "noeviction"),
        ("bind", "127.0.0.1"),
    ] {
        let answer = server.command(&["CONFIG", "GET", name]).unwrap();
        assert_eq!(answer, format!("{name}\n{expected}"));
    }
    assert!(server.command(&["INFO", "server"]).unwrap().contains("redis_version:7"));
}

#[test]
fn an_answer_is_a_line_for_each_value() {
    let server = Redis::start(quick()).unwrap();
    assert_eq!(server.command(&["PING"]).unwrap(), "PONG");
    assert_eq!(server.command(&["RPUSH", "list", "a", "b\r\nc", ""]).unwrap(), "3");
    assert_eq!(server.command(&["LRANGE", "list", "0", "-1"]).unwrap(), "a\nb\r\nc\n");
    assert_eq!(server.command(&["GET", "nothing"]).unwrap(), "");
    let wrong = said(server.command(&["GET", "list"]));
    assert!(wrong.starts_with("WRONGTYPE"), "{wrong}");
}

#[test]
fn a_wrong_setting_is_a_failure_that_tells_why() {
    let failure = Redis::start(quick().set("no-such-setting", "1")).unwrap_err();
    assert!(failure.to_string().contains("no-such-setting"), "{failure}");
}

#[test]
fn a_stranger_gets_no_further_than_the_password() {
    let server = Redis::start(quick().password("secret")).unwrap();
    assert_eq!(server.url(), format!("redis://:secret@127.0.0.1:{}", server.port()));
    assert_eq!(server.command(&["PING"]).unwrap(), "PONG");
    let wrong = said(server.command(&["AUTH", "wrong"]));
    assert!(wrong.starts_with("WRONGPASS"), "{wrong}");
    let replica = server.replica().unwrap();
    assert!(replica.command(&["ROLE"]).unwrap().starts_with("slave\n127.0.0.1\n"));
}

#[test]
fn clients_may_speak_tls() {
    let shown = || rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (ours, another) = (shown(), shown());
    let certificate = ours.cert.pem();
    let server =
        Redis::start(quick().tls(&certificate, &ours.signing_key.serialize_pem(), &certificate)).unwrap();
    let ping = |authority: &str| {
        let file = server.folder().join("trusted.crt");
        fs::write(&file, authority).unwrap();
        let mut client = Command::new("redis-cli");
        client.args(["-u", &server.tls_url().unwrap(), "--cacert"]).arg(file).arg("PING");
        String::from_utf8(client.output().unwrap().stdout).unwrap()
    };
    assert_eq!(ping(&certificate), "PONG\n");
    assert_eq!(ping(&another.cert.pem()), "");
    // The other port is for who does not, such as we.
    assert_eq!(server.command(&["PING"]).unwrap(), "PONG");
    assert_eq!(Redis::start(quick()).unwrap().tls_url(), None);
}

#[test]
fn what_was_acknowledged_outlives_a_kill() {
    let mut server = Redis::start(RedisSettings::default()).unwrap();
    let (url, port) = (server.url(), server.port());
    server.command(&["SET", "kept", "1"]).unwrap();
    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();

    server.kill().unwrap();
    assert!(matches!(server.command(&["PING"]), Err(Failure::Stopped)));
    assert!(matches!(server.kill(), Err(Failure::Stopped)));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    drop(client);

    server.restart().unwrap();
    assert_eq!((server.url(), server.port()), (url, port));
    assert_eq!(server.command(&["GET", "kept"]).unwrap(), "1");
}

#[test]
fn without_a_file_everything_is_lost() {
    let mut server = Redis::start(quick()).unwrap();
    server.command(&["SET", "kept", "1"]).unwrap();
    server.restart().unwrap();
    assert_eq!(server.command(&["EXISTS", "kept"]).unwrap(), "0");
    server.stop().unwrap();
    server.stop().unwrap();
    assert!(!server.is_running());
}

#[test]
fn a_server_that_stood_still_goes_on_or_ends() {
    let mut server = Redis::start(quick()).unwrap();
    server.command(&["SET", "kept", "1"]).unwrap();
    server.freeze().unwrap();
    assert!(matches!(server.command(&["PING"]), Err(Failure::Stopped)));
    // The kernel still takes connections for it.
    TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    server.thaw().unwrap();
    assert_eq!(server.command(&["GET", "kept"]).unwrap(), "1");
    server.freeze().unwrap();
    server.restart().unwrap();
    assert_eq!(server.command(&["PING"]).unwrap(), "PONG");
    server.freeze().unwrap();
}

#[test]
fn a_replica_has_what_its_master_has() {
    let mut master = Redis::start(quick()).unwrap();
    master.command(&["SET", "before", "1"]).unwrap();
    let replica = master.replica().unwrap();
    assert_eq!(replica.command(&["GET", "before"]).unwrap(), "1");
    let refused = said(replica.command(&["SET", "a", "1"]));
    assert!(refused.starts_with("READONLY"), "{refused}");
    master.kill().unwrap();
    replica.command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    replica.command(&["SET", "a", "1"]).unwrap();
}

#[test]
fn nothing_stays_behind() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let (port, folder) = (server.port(), server.folder().to_owned());
    server.command(&["SET", "a", "1"]).unwrap();
    assert!(fs::read_dir(folder.join("data")).unwrap().count() > 0);
    drop(server);
    assert!(!folder.exists());
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn the_shared_servers_are_there_for_everybody() {
    let url = shared_redis_url();
    assert_eq!(url, shared_redis_url());
    assert!(url.starts_with("redis://127.0.0.1:"), "{url}");
    let url = shared_redis_cluster_url();
    assert_eq!(url, shared_redis_cluster_url());
    let places = url.strip_prefix("redis+cluster://").unwrap();
    assert_eq!(places.split(',').flat_map(TcpStream::connect).count(), 3);
}

#[test]
fn three_masters_share_the_slots() {
    let mut cluster = RedisCluster::start(&RedisSettings::default()).unwrap();
    let urls = cluster.urls();
    let places: Vec<&str> = urls.iter().map(|url| url.trim_start_matches("redis://")).collect();
    assert_eq!(cluster.url(), format!("redis+cluster://{}", places.join(",")));
    let owners = [0, 5460, 5461, 10_921, 10_922, 16_383].map(|slot| cluster.node_of_slot(slot).unwrap());
    assert_eq!(owners, [0, 0, 1, 1, 2, 2]);

    // `foo` is in a slot of the last one, and everybody knows.
    let slot = cluster.slot_of("foo").unwrap();
    assert_eq!((slot, cluster.slot_of("{foo}bar").unwrap()), (12_182, slot));
    cluster.node(2).command(&["SET", "foo", "1"]).unwrap();
    let moved = format!("MOVED {slot} 127.0.0.1:{}", cluster.node(2).port());
    for node in [0, 1] {
        assert_eq!(said(cluster.node(node).command(&["GET", "foo"])), moved);
    }

    // Without it, the rest refuses to serve; with it, all is as it was.
    cluster.kill(2).unwrap();
    cluster.wait_until_lost(2).unwrap();
    let down = said(cluster.node(0).command(&["GET", "foo"]));
    assert!(down.starts_with("CLUSTERDOWN"), "{down}");
    cluster.restart(2).unwrap();
    assert_eq!(cluster.node(2).command(&["GET", "foo"]).unwrap(), "1");
    assert_eq!(said(cluster.node(0).command(&["GET", "foo"])), moved);
}

#[test]
fn a_slot_is_moved_key_by_key() {
    let cluster = RedisCluster::start(&quick().password("secret")).unwrap();
    let slot = cluster.slot_of("{foo}").unwrap();
    let (old, new) = (cluster.node(2), cluster.node(0));
    let keys = [1, 2, 3].map(|number| format!("{{foo}}{number}"));
    for key in &keys {
        old.command(&["SET", key, "kept"]).unwrap();
    }
    let ask = format!("ASK {slot} 127.0.0.1:{}", new.port());
    let mut pauses = Vec::new();
    cluster
        .move_slot_slowly(slot, 0, |moved| {
            pauses.push(moved);
            let answers: Vec<_> = keys.iter().map(|key| old.command(&["GET", key])).collect();
            let here = answers.iter().filter(|answer| answer.as_ref().is_ok_and(|value| value == "kept"));
            assert_eq!(here.count(), 3 - moved);
            for asked in answers.into_iter().filter(Result::is_err) {
                assert_eq!(said(asked), ask);
            }
            assert_eq!(cluster.node_of_slot(slot).unwrap(), 2);
        })
        .unwrap();
    assert_eq!(pauses, [0, 1, 2, 3]);
    assert_eq!(cluster.node_of_slot(slot).unwrap(), 0);
    for key in &keys {
        assert_eq!(new.command(&["GET", key]).unwrap(), "kept");
        for other in [1, 2] {
            let moved = said(cluster.node(other).command(&["GET", key]));
            assert_eq!(moved, format!("MOVED {slot} 127.0.0.1:{}", new.port()));
        }
    }
    // Where it is already, and back.
    cluster.move_slot(slot, 0).unwrap();
    cluster.move_slot(slot, 2).unwrap();
    assert_eq!(old.command(&["GET", &keys[0]]).unwrap(), "kept");
}

#[test]
fn a_replica_takes_the_place_of_its_master() {
    let mut cluster = RedisCluster::start_with_replicas(&quick()).unwrap();
    let slot = cluster.slot_of("foo").unwrap();
    cluster.node(2).command(&["SET", "foo", "1"]).unwrap();
    assert_eq!(cluster.node(2).command(&["WAIT", "1", "30000"]).unwrap(), "1");
    cluster.freeze(2).unwrap();
    cluster.wait_until_lost(2).unwrap();
    cluster.wait_until_ok().unwrap();
    assert_eq!(cluster.node_of_slot(slot).unwrap(), 5);
    assert_eq!(cluster.node(5).command(&["GET", "foo"]).unwrap(), "1");
    // The old one still believes that it is one, and is taught otherwise.
    cluster.thaw(2).unwrap();
    cluster.wait_until_ok().unwrap();
    assert_eq!(cluster.node_of_slot(slot).unwrap(), 5);
}
