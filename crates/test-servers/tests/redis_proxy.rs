//! Faults between a client and its Redis, each of them shown to have happened.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use redrive_test_servers::proxy::{Fault, Proxy, Rule, Trigger};
use redrive_test_servers::{Redis, RedisCluster, RedisSettings};

const PATIENCE: Duration = Duration::from_mins(1);

/// A client that understands answers of one line.
struct Client(BufReader<TcpStream>);

impl Client {
    fn of(proxy: &Proxy) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    fn send(&mut self, words: &[&str]) -> io::Result<()> {
        let stream = self.0.get_mut();
        write!(stream, "*{}\r\n", words.len())?;
        words.iter().try_for_each(|word| write!(stream, "${}\r\n{word}\r\n", word.len()))
    }

    fn answer(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    fn ask(&mut self, words: &[&str]) -> io::Result<String> {
        self.send(words)?;
        self.answer()
    }
}

fn scene() -> (Redis, Proxy) {
    let server = Redis::start(RedisSettings::default().appendonly(false)).unwrap();
    let proxy = Proxy::before(&server.url()).unwrap();
    (server, proxy)
}

#[test]
fn without_a_rule_everything_passes() {
    let (server, proxy) = scene();
    let mut client = Client::of(&proxy);
    let big = "x".repeat(1_000_000);
    assert_eq!(client.ask(&["SET", "a", &big]).unwrap(), "+OK");
    assert_eq!(client.ask(&["STRLEN", "a"]).unwrap(), ":1000000");
    assert!(client.ask(&["NOTHING"]).unwrap().starts_with("-ERR"));
    for _ in 0..100 {
        client.send(&["INCR", "b"]).unwrap();
    }
    for count in 1..=100 {
        assert_eq!(client.answer().unwrap(), format!(":{count}"));
    }
    assert_eq!((server.command(&["GET", "b"]).unwrap().as_str(), proxy.connections()), ("100", 1));
    assert_eq!(proxy.url(), format!("redis://127.0.0.1:{}", proxy.port()));
}

#[test]
fn a_command_without_its_reply_is_done() {
    let (server, proxy) = scene();
    let rule = proxy.inject(Rule::new(Trigger::Request, Fault::CutReply).after(2));
    let mut client = Client::of(&proxy);
    assert_eq!(client.ask(&["INCR", "a"]).unwrap(), ":1");
    assert_eq!(client.ask(&["INCR", "a"]).unwrap(), ":2");
    assert!(client.ask(&["INCR", "a"]).is_err());
    assert_eq!((rule.seen(), rule.fired()), (3, 1));
    assert_eq!(server.command(&["GET", "a"]).unwrap(), "3");
    // It was for once.
    assert_eq!(Client::of(&proxy).ask(&["INCR", "a"]).unwrap(), ":4");
}

#[test]
fn a_command_that_never_arrives_is_not_done() {
    let (server, proxy) = scene();
    let rule = proxy.inject(Rule::new(Trigger::Statement("set b".to_owned()), Fault::CutBefore));
    let mut client = Client::of(&proxy);
    assert_eq!(client.ask(&["SET", "a", "1"]).unwrap(), "+OK");
    assert!(client.ask(&["SET", "b", "1"]).is_err());
    assert_eq!((rule.seen(), rule.fired()), (1, 1));
    assert_eq!(server.command(&["EXISTS", "a", "b"]).unwrap(), "1");
}

#[test]
fn what_was_pipelined_before_the_fault_is_answered() {
    let (_server, proxy) = scene();
    let rule = proxy.inject(Rule::new(Trigger::Statement("INCR b".to_owned()), Fault::CutReply));
    let mut client = Client::of(&proxy);
    for key in ["a", "b", "c"] {
        client.send(&["INCR", key]).unwrap();
    }
    assert_eq!(client.answer().unwrap(), ":1");
    assert!(client.answer().is_err());
    assert_eq!(rule.fired(), 1);
}

#[test]
fn a_stalled_reply_comes_when_the_rule_is_lifted() {
    let (server, proxy) = scene();
    let rule = proxy.inject(Rule::new(Trigger::Statement("incr".to_owned()), Fault::StallReply));
    let mut client = Client::of(&proxy);
    let asked = thread::spawn(move || client.ask(&["INCR", "a"]));
    assert!(rule.wait_fired(1, PATIENCE));
    assert_eq!(server.command(&["GET", "a"]).unwrap(), "1");
    assert!(!asked.is_finished());
    rule.lift();
    assert_eq!(asked.join().unwrap().unwrap(), ":1");
}

#[test]
fn new_connections_are_refused_until_the_rule_is_lifted() {
    let (_server, proxy) = scene();
    let rule = proxy.inject(Rule::new(Trigger::Connect, Fault::CutBefore).always());
    for _ in 0..3 {
        assert!(Client::of(&proxy).ask(&["PING"]).is_err());
    }
    assert_eq!((rule.seen(), rule.fired()), (3, 3));
    rule.lift();
    assert_eq!(Client::of(&proxy).ask(&["PING"]).unwrap(), "+PONG");
}

#[test]
fn a_cluster_leads_its_clients_to_the_proxy() {
    let cluster = RedisCluster::start(&RedisSettings::default().appendonly(false)).unwrap();
    let proxy = Proxy::before(&cluster.node(2).url()).unwrap();
    cluster.announce(2, proxy.port()).unwrap();
    let slot = cluster.slot_of("foo").unwrap();
    for node in [0, 1] {
        let moved = cluster.node(node).command(&["SET", "foo", "1"]).unwrap_err().to_string();
        assert!(moved.contains(&format!("MOVED {slot} 127.0.0.1:{}", proxy.port())), "{moved}");
    }
    assert_eq!(Client::of(&proxy).ask(&["SET", "foo", "1"]).unwrap(), "+OK");
    assert_eq!(cluster.node_of_slot(slot).unwrap(), 2);
}
