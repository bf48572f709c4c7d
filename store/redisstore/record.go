package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sagabench/lua"
	"sagabench/store"
)

// decode parses the string of a saga. Package lua describes it.
func decode(gid, value string) (store.Record, error) {
	bad := func(what string) (store.Record, error) {
		return store.Record{}, fmt.Errorf("redis: saga %s: %w: %s: was the key changed by hand?", gid, store.ErrUnreadable, what)
	}
	if len(value) <= lua.AtMarks {
		return bad("its value")
	}
	created, err := strconv.ParseInt(value[:lua.AtUpdated], 10, 64)
	if err != nil {
		return bad("its time of creation")
	}
	epoch, err := strconv.ParseUint(value[lua.AtEpoch:lua.AtStatus], 16, 32)
	if err != nil {
		return bad("its epoch")
	}
	updated, err := strconv.ParseInt(value[lua.AtUpdated:lua.AtOwner], 10, 64)
	if err != nil {
		return bad("its time of change")
	}
	marks, rest, ok := strings.Cut(value[lua.AtMarks:], " ")
	if !ok {
		return bad("its marks")
	}
	body, note, _ := strings.Cut(rest, "\x00")
	record := store.Record{
		GID:     gid,
		Status:  store.Status(value[lua.AtStatus]),
		Marks:   store.Marks(marks),
		Epoch:   uint32(epoch),
		Owner:   strings.TrimRight(value[lua.AtOwner:lua.AtEpoch], " "),
		Created: time.UnixMilli(created),
		Updated: time.UnixMilli(updated),
		Note:    note,
		Body:    []byte(body),
	}
	return record, record.Check()
}
