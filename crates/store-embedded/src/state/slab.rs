//! Many things of one size, in chunks: growing copies nothing, and a thing keeps its number.

const CHUNK: usize = 4_096;

/// Things by number; the number of one that was removed is given out again.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
    next: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), next: 0 }
    }
}

impl<T> Slab<T> {
    /// Puts a thing in and answers its number.
    pub(crate) fn insert(&mut self, thing: T) -> u32 {
        if let Some(number) = self.free.pop() {
            *self.at_mut(number) = thing;
            return number;
        }
        let number = self.next;
        self.next = number.checked_add(1).expect("memory ends before four thousand million messages");
        if (number as usize).is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        self.chunks.last_mut().expect("a chunk was just pushed").push(thing);
        number
    }

    /// The thing of a number that was given out and not taken back.
    pub(crate) fn at(&self, number: u32) -> &T {
        &self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }

    pub(crate) fn at_mut(&mut self, number: u32) -> &mut T {
        &mut self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }

    /// Takes a number back.
    pub(crate) fn remove(&mut self, number: u32) {
        self.free.push(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_out_again() {
        let mut slab = Slab::default();
        let numbers: Vec<u32> = (0..10_000).map(|n| slab.insert(n)).collect();
        assert!(numbers.iter().all(|number| *slab.at(*number) == *number));
        slab.remove(77);
        assert_eq!(slab.insert(5), 77);
        assert_eq!((*slab.at(77), *slab.at(78)), (5, 78));
    }
}
