// Package validity decides whether a result is valid, and warns of what limits its use.
// [Judge] is for one run, [JudgeStep] for one measurement of a sweep, [JudgeSweep] for what
// the measurements of a sweep have in common, [JudgeCapacity] for a search.
//
// Each warning states the figures it is based on. A figure that is unknown counts
// neither for nor against a result.
package validity
