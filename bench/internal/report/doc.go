// Package report is what a run leaves behind: the [Summary] with its fixed
// JSON keys, or the [CapacitySummary] of a search, the files of a result directory,
// and the words and the charts that show both to people, one by one or
// [SideBySide]. It also judges: [Judge] says whether a result may be believed, and
// why not. And it puts together what several load hosts measured: see [Merge].
//
// What it guarantees:
//
//   - Unknown is never zero. A number that could not be measured is null, and
//     its pointer nil; a percentile with too few samples behind it is null too.
//   - Percentiles come from histograms and are never averaged.
//   - Whatever is shown can be shown again from the files: [Read] returns what
//     [Write] wrote.
//
// Measuring is left to packages load and probe, the audit of the store to
// package audit, laying out to package document.
package report
