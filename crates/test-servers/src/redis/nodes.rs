//! What a node says of its cluster.

use std::ops::RangeInclusive;

/// One line of `CLUSTER NODES`: a node, as another one or it itself sees it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) id: String,
    /// Where clients find it.
    pub(super) port: u16,
    flags: Vec<String>,
    /// Who has the higher one is right about a slot that two claim.
    pub(super) epoch: u64,
    slots: Vec<RangeInclusive<u16>>,
}

impl Node {
    pub(super) fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|has| has == flag)
    }

    pub(super) fn serves(&self, slot: u16) -> bool {
        self.slots.iter().any(|slots| slots.contains(&slot))
    }

    /// Such as `ID 127.0.0.1:PORT@BUS,HOSTNAME myself,master - 0 0 3 connected 0-5460 [77->-ID]`.
    fn of(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let id = fields.next()?.to_owned();
        let (place, _) = fields.next()?.split_once('@')?;
        let port = place.rsplit_once(':')?.1.parse().ok()?;
        let flags = fields.next()?.split(',').map(str::to_owned).collect();
        let epoch = fields.nth(3)?.parse().ok()?;
        let slots = fields.skip(1).filter_map(range).collect();
        Some(Self { id, port, flags, epoch, slots })
    }
}

/// All nodes that there are to the one that said this.
pub(super) fn nodes(said: &str) -> Vec<Node> {
    said.lines().filter_map(Node::of).collect()
}

/// One slot or several; one that is on the move is not a number.
fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_what_its_line_says() {
        let said = "a1 127.0.0.1:7001@7101 myself,master - 0 1426238316232 3 connected 0-2 7 [8->-b2] [9-<-b2]\n\
                    b2 127.0.0.1:7002@7102,host slave a1 0 1426238316232 2 connected\n\
                    c3 :0@0 master,noaddr,handshake - 0 0 0 disconnected\n\
                    nothing\n";
        let nodes = nodes(said);
        let [first, second, third] = nodes.as_slice() else { panic!("{nodes:?}") };
        assert_eq!((first.id.as_str(), first.port, first.epoch), ("a1", 7001, 3));
        assert!(first.is("myself") && first.is("master") && !first.is("slave"));
        let served: Vec<u16> = (0..20).filter(|&slot| first.serves(slot)).collect();
        assert_eq!(served, [0, 1, 2, 7]);
        assert!(second.port == 7002 && second.is("slave") && !second.serves(0));
        assert!(third.is("handshake"));
    }
}
