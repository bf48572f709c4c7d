// Package result holds the types of a result, their fixed JSON keys, and the files of a
// result directory. A [Summary] is one run, a [CapacitySummary] a search for the highest
// rate.
//
// It guarantees:
//
//   - Unknown is never zero. A figure that was not measured is null and its pointer nil.
//     A percentile with too few samples beyond it is null, too: see [LatencyOf].
//   - Percentiles are read from histograms and never averaged.
//   - [ReadResult] returns what [Write] wrote.
//
// Package validity decides whether a result is valid, package merge combines
// results of several load hosts, package report renders.
package result
