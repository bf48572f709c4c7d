// Package lua holds the scripts that change sagas on a Redis server, one file
// per operation, and nothing that runs them.
//
// # Layout of a saga
//
// A saga is one string. Its first part has fixed places, so that a script reads
// and writes only the bytes it is about:
//
//	bytes   what
//	0-12    when it was created, ms since 1970, decimal
//	13-25   when its status last changed, likewise
//	26-33   its owner, padded with blanks; only blanks when it was released
//	34-41   its epoch, hexadecimal
//	42      its status
//	43-     its marks, one byte per branch, then a blank
//	        its body
//	        if there is a note: a zero byte and the note
//
// From the owner to the marks the strings of sagas that are at the same point
// are the same, which spares a script most of its work: see change.lua.
//
// A due index is a sorted set of the keys of unfinished sagas, scored by when
// they are due, in ms since 1970 by the server's clock. It also holds [Ballast].
//
// # Calling convention
//
// A script takes many sagas at a time, because dispatching a script costs as
// much as the work for a saga. They come in groups of those that are to be done
// the same thing to: in KEYS a group is its due index, if the script touches one,
// followed by its sagas; in ARGV the number of its sagas followed by what is to
// be done. All keys of a call must be on one node, and on a cluster in one slot,
// which the hash tag of the keys sees to with one shard per call.
//
// Numbers of KEYS and ARGV that do not fit together are answered with an error that
// names the script and what is wrong, before anything is written.
//
// The answer lists only the sagas that were refused, as pairs: which one, counted
// from 1 over the whole call, and one of the Refused codes. An empty answer
// means that all were done.
package lua

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
)

// Codes in a script's answer.
const (
	RefusedExists    = 1 // the gid has another body
	RefusedDuplicate = 2 // the gid has this body
	RefusedConflict  = 3 // other epoch or status than expected, or a mark set otherwise
	RefusedNotFound  = 4 // no such saga
	RefusedBranch    = 5 // the saga has fewer branches
)

// Places in the string of a saga, from 0; see the package comment.
const (
	AtUpdated = 13
	AtOwner   = 26
	AtEpoch   = 34
	AtStatus  = 42
	AtMarks   = 43
)

// Ballast is a member of every due index that is no saga, with a score, +inf, at
// which it is never due. As long as a sorted set has at most 128 members of at
// most 64 bytes each, Redis keeps it as a list, which it searches from its start,
// twice to add a member and once to remove one. A longer member makes it a skip
// list for good. Without it the scripts do the same and cost more.
const Ballast = "no saga: a member this long makes Redis keep the index as a skip list"

// Untouched in a patch of marks leaves the mark in its place as it is.
const Untouched = '.'

// MaxSagas bounds the sagas of one call: a script hands their due times to one
// command, and Lua's stack holds 8,000 values.
const MaxSagas = 2000

// Script is one operation.
type Script struct {
	Name   string // of its file, without .lua
	Source string
	SHA1   string // by which EVALSHA calls it
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

// All lists every script, for loading.
func All() []Script { return []Script{Save, Update, Complete, Reschedule, Claim} }

// ReadDir reads the operations, in the order of All, from a directory of .lua files
// like this package's own: those of another version, to be compared with it. The
// error names the file that is missing.
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

// readFrom puts the common beginning, change.lua, in front of a script: Redis has
// no way for one script to use another.
func readFrom(dir fs.FS, name string) (Script, error) {
	source := ""
	for _, part := range []string{common, name} {
		text, err := fs.ReadFile(dir, part+".lua")
		if err != nil {
			return Script{}, fmt.Errorf("lua: read script %s: %w", name, err)
		}
		source += string(text)
	}
	sum := sha1.Sum([]byte(source))
	return Script{Name: name, Source: source, SHA1: hex.EncodeToString(sum[:])}, nil
}

// common names what every script begins with.
const common = "change"

func read(name string) Script {
	script, err := readFrom(files, name)
	if err != nil {
		panic(err) // it is not embedded
	}
	return script
}
