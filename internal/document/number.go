package document

import "sagabench/internal/format"

// Unknown is format.Unknown. Use that one.
const Unknown = format.Unknown

// Number is format.Number. Use that one.
func Number(x float64) string { return format.Number(x) }

// Count is format.Count. Use that one.
func Count(n int64) string { return format.Count(n) }
