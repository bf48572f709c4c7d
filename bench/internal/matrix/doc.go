// Package matrix runs tables of variants and says which of them the data show to be better.
//
// A variant file names axes, such as the store and the scenario. All combinations of their
// values are the variants of a table. Each block of a table runs every variant once, in
// random order, so that a change of the machine affects all of them. [Parse] reads a file,
// [Run] makes the runs that are missing in a directory, and [Judge] compares the variants.
//
// It guarantees:
//
//   - If a variant is in a table under two names, a winner is named between them in at most
//     one table of twenty: all comparisons of a table share these 5%.
//   - No winner is named if the durability of the variants differs or is not known, or if a
//     run is not valid.
//   - A run that is there is not made again. A directory of another file or other settings
//     is refused.
//
// How a run is made is left to a [Runner] for each measure, and so is its validity.
package matrix
