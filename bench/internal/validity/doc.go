// Package validity decides whether a result may be believed, and what to know before it
// is quoted. [Judge] is for one run, [JudgeStep] for one measurement among several,
// [JudgeSweep] for what several have in common, [JudgeCapacity] for a search.
//
// Each warning states the figures it is based on. A figure that is unknown counts
// neither for nor against a result.
package validity
