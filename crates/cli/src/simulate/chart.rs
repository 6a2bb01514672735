//! A small chart: one line of blocks for each measure.

/// From nothing to the most.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A line of blocks, the highest for the largest value. What is not nothing is seen.
pub(super) fn line(values: impl IntoIterator<Item = u64> + Clone) -> String {
    let most = values.clone().into_iter().max().unwrap_or_default().max(1);
    let block = |value: u64| {
        let step = u128::from(value) * (BLOCKS.len() as u128 - 1);
        let step = usize::try_from(step.div_ceil(u128::from(most))).unwrap_or_default();
        BLOCKS[step.min(BLOCKS.len() - 1)]
    };
    values.into_iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_full_and_a_little_is_seen() {
        assert_eq!(line([0, 1, 50, 100]), " ▁▄█");
        assert_eq!(line([0, 0]), "  ");
        assert_eq!(line([u64::MAX, 1, 0]), "█▁ ");
        assert_eq!(line([]), "");
    }
}
