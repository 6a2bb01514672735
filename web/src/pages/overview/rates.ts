// What the counts of samples come to in a second.

/** What is counted between one sample and the next. */
export interface Counted {
  at: string;
  enqueued: number;
  acked: number;
  failed: number;
}

export interface Rates {
  enqueued: number[];
  acked: number[];
  failed: number[];
}

/**
 * The rates of samples that should be `interval_ms` apart. Where a busy server was late, the time that really passed counts: a sample
 * of thirty seconds is no peak.
 */
export function rates(samples: readonly Counted[], interval_ms: number): Rates {
  const seconds = samples.map((sample, at) => {
    const before = samples[at - 1];
    const passed = before ? Date.parse(sample.at) - Date.parse(before.at) : interval_ms;
    return (passed > 0 ? passed : interval_ms) / 1_000;
  });
  const of = (count: (sample: Counted) => number) => samples.map((sample, at) => count(sample) / (seconds[at] ?? 1));
  return { enqueued: of((one) => one.enqueued), acked: of((one) => one.acked), failed: of((one) => one.failed) };
}
