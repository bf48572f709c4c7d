// Package lua holds the scripts that change sagas on a Redis server, one file
// per operation, and nothing that runs them.
//
// # Layout of a saga
//
// A saga is one string. The offsets of its first fields are fixed, so that a script
// reads and writes only the bytes that it needs:
//
//	bytes   field
//	0-12    time of creation, ms since 1970, decimal
//	13-25   time of the last change of status, in the same format
//	26-33   owner, padded with blanks; all blanks if the saga was released
//	34-41   epoch, hexadecimal
//	42      status
//	43-     marks, one byte per branch, then a blank
//	        body
//	        with a note: a zero byte and the note
//
// Sagas in the same state have the same text from their owner to their marks. Scripts
// use that to do less work: see change.lua.
//
// A due index is a sorted set of the keys of unfinished sagas. Their scores are the
// due times, in ms since 1970 by the server's clock. It also holds [Ballast].
//
// # Calling convention
//
// A script takes many sagas per call, because dispatching a script costs as much as
// the work for one saga. Sagas are grouped by identical change. In KEYS, a group is its
// due index, if the script uses one, and its sagas. In ARGV, it is the number of its
// sagas and the change. All keys of a call must be on one node. On a cluster they must
// be in one slot: the hash tag of the keys does that with one shard per call.
//
// If the numbers of KEYS and ARGV do not match, the script returns an error that names
// the script and the numbers, and writes nothing.
//
// The reply lists only the refused sagas, as pairs: the position of the saga, counted
// from 1 over the whole call, and a Refused code. An empty reply means that all changes
// were made.
package lua

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
)

// Codes in a script's reply.
const (
	RefusedExists    = 1 // the gid has another body
	RefusedDuplicate = 2 // the gid has this body
	RefusedConflict  = 3 // epoch or status differ from those expected, or a mark has another value
	RefusedNotFound  = 4 // no such saga
	RefusedBranch    = 5 // the saga has fewer branches
)

// Offsets in the string of a saga; see the package comment.
const (
	AtUpdated = 13
	AtOwner   = 26
	AtEpoch   = 34
	AtStatus  = 42
	AtMarks   = 43
)

// Ballast is a member of every due index that is no saga. Its score +inf is never due.
// Redis stores a sorted set as a list while it has at most 128 members of at most 64
// bytes each. It searches that list from the start, twice to add a member and once to
// remove one. A longer member makes it a skip list for good. The scripts work without
// the ballast, at a higher cost.
const Ballast = "no saga: a member this long makes Redis keep the index as a skip list"

// Untouched is the byte of a change's marks that keeps a mark.
const Untouched = '.'

// MaxSagas limits the sagas of one call: a script passes their due times to one
// command, and Lua's stack holds 8,000 values.
const MaxSagas = 2000

// Script is one operation.
type Script struct {
	Name   string // of its file, without .lua
	Source string // with change.lua in front
	SHA1   string // for EVALSHA
}

//go:embed *.lua
var files embed.FS

// The operations.
var (
	Save       = read("save")
	Update     = read("update")
	Complete   = read("complete")
	Reschedule = read("reschedule")
	Claim      = read("claim")
)

// All returns every script.
func All() []Script { return []Script{Save, Update, Complete, Reschedule, Claim} }

// ReadDir reads another version of the scripts of All, in that order, from a directory
// of .lua files. The error names a file that is missing.
func ReadDir(dir fs.FS) ([]Script, error) {
	var scripts []Script
	for _, s := range All() {
		other, err := readFrom(dir, s.Name)
		if err != nil {
			return nil, err
		}
		scripts = append(scripts, other)
	}
	return scripts, nil
}

// readFrom puts change.lua in front of a script: a Redis script cannot load another.
func readFrom(dir fs.FS, name string) (Script, error) {
	source := ""
	for _, part := range []string{"change", name} {
		text, err := fs.ReadFile(dir, part+".lua")
		if err != nil {
			return Script{}, fmt.Errorf("lua: read script %s: %w", name, err)
		}
		source += string(text)
	}
	sum := sha1.Sum([]byte(source))
	return Script{Name: name, Source: source, SHA1: hex.EncodeToString(sum[:])}, nil
}

func read(name string) Script {
	script, err := readFrom(files, name)
	if err != nil {
		panic(err) // it is not embedded
	}
	return script
}
