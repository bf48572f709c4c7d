package store

import "errors"

// Errors of a store, and of opening one. They are wrapped: match them with errors.Is.
var (
	// ErrConflict: the saga does not have the epoch or the status that the
	// transition expects, or a mark already has another value. Nothing was written.
	ErrConflict = errors.New("the saga has changed meanwhile")

	// ErrNotFound: no saga has this gid, or its retention has passed.
	ErrNotFound = errors.New("no such saga")

	// ErrExists: the gid belongs to a saga with another body. Nothing was written.
	ErrExists = errors.New("the gid belongs to another saga")

	// ErrDuplicate: the saga exists with the same body. Nothing was written. Get
	// returns its state.
	ErrDuplicate = errors.New("the saga was submitted before")

	// ErrInvalid: a field is outside the limits of this package. The text names the
	// field, its value and the limit. Nothing was written.
	ErrInvalid = errors.New("invalid request")

	// ErrUnreadable: this version cannot read the record. It was changed by hand, or
	// another version wrote it.
	ErrUnreadable = errors.New("the record cannot be read")

	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")

	// ErrInUse: another process has the store open, and this store allows only one.
	ErrInUse = errors.New("the store is in use by another process")

	// ErrAbsent: the store had to exist already, and does not. Nothing was created.
	ErrAbsent = errors.New("there is no store of sagas here")

	// ErrPartial: some of the store's servers did not answer. What was returned covers
	// the others.
	ErrPartial = errors.New("not all servers answered")

	// ErrUnsafe: the server may delete unfinished sagas, or the data has a layout
	// that these settings or this version do not match.
	ErrUnsafe = errors.New("the store cannot be used safely")
)
