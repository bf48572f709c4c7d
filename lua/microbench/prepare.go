package microbench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"sagabench/lua"
)

// Server is what the server says of itself.
type Server struct {
	Version   string            `json:"version"`
	Allocator string            `json:"allocator"`
	Settings  map[string]string `json:"settings"` // those that could be read
}

// look asks the server what it is. What it does not let us read is noted.
func (b *Bench) look() (Server, error) {
	i, err := b.control.info("all")
	if err != nil {
		return Server{}, err
	}
	s := Server{Version: i["redis_version"], Allocator: i["mem_allocator"], Settings: map[string]string{}}
	for _, name := range []string{"io-threads", "appendonly", "appendfsync", "save", "hz", "zset-max-ziplist-entries"} {
		r, err := b.control.do("CONFIG", "GET", name)
		if isRefused(err) {
			b.note("its settings were not read: %v", err)
			break
		}
		if err != nil {
			return s, err
		}
		if len(r.items) == 2 { // older servers do not have every one
			s.Settings[name] = r.items[1].text
		}
	}
	return s, nil
}

// before tells whether the server is older than the version.
func (s Server) before(major, minor int) bool {
	var is, of int
	_, _ = fmt.Sscanf(s.Version, "%d.%d", &is, &of)
	return is < major || is == major && of < minor
}

// prepare lists the probes and puts there what they need.
func (b *Bench) prepare(ctx context.Context) error {
	probes, err := b.list()
	if err != nil {
		return err
	}
	loaded := map[string]bool{}
	for _, p := range probes {
		if err := b.fill(ctx, p.DueIndex); err != nil {
			return err
		}
		if !b.filled[p.DueIndex] {
			continue // and said why
		}
		if p.script.Source != "" && !loaded[p.script.SHA1] {
			loaded[p.script.SHA1] = true
			if err := b.loadScript(p.script); err != nil {
				return err
			}
		}
		b.cells = append(b.cells, &cell{probe: p, samples: map[int]sample{}, like: b.cellOf(p.comparedWith())})
	}
	return nil
}

func (b *Bench) loadScript(script lua.Script) error {
	if _, err := b.control.do("SCRIPT", "LOAD", script.Source); err != nil {
		return fmt.Errorf("script %s: %w", script.Name, err)
	}
	return nil
}

// functions says whether there is a function to be called.
func (b *Bench) functions() bool {
	switch {
	case b.server.before(7, 0):
		b.note("FCALL: Redis %s has no functions", b.server.Version)
		return false
	case !b.cfg.Functions:
		b.note("FCALL: its function would stay on this server if this program were killed")
		return false
	}
	if _, err := b.control.do("FUNCTION", "LOAD", functionLibrary(b.keys.function())); err != nil {
		b.note("FCALL: %v", err)
		return false
	}
	b.function = true
	return true
}

// keep is how long, in ms, what is large stays on the server if this process is
// killed before it can remove it.
const keep = "3600000"

// fillFinished makes the sagas that have ended.
func (b *Bench) fillFinished() error {
	var all calls
	ended := operations(ours())[2].stored(base)
	all.add("SET", b.keys.record(), ended)
	for n := range b.cfg.Finished {
		all.add("SET", b.keys.finished(n), ended, "PX", keep)
	}
	if err := b.control.doAll(&all); err != nil {
		return fmt.Errorf("preparing finished sagas: %w", err)
	}
	return nil
}

// fill makes the sagas that are due, unless they are there or there is no room
// for them.
func (b *Bench) fill(ctx context.Context, size int) error {
	if _, tried := b.filled[size]; tried {
		return nil
	}
	room, err := b.room(int64(size) * dueBytes)
	if err != nil {
		return err
	}
	if b.filled[size] = room; !room {
		return nil
	}
	if err := b.fillIndex(ctx, size); err != nil {
		return fmt.Errorf("preparing %d due sagas: %w", size, err)
	}
	return nil
}

func (b *Bench) fillIndex(ctx context.Context, size int) error {
	each := size / indexes(size)
	if size == 0 {
		each = inFlight
	} else {
		b.doing("making %d sagas due", size)
	}
	now := time.Now().UnixMilli()
	for n := range indexes(size) {
		var all calls
		index := b.keys.index(size, n)
		all.add("ZADD", index, "+inf", lua.Ballast)
		words := []string{"ZADD", index}
		for i := range each {
			// As if they had been saved evenly over the last lease.
			score := now + int64(i)*lease.Milliseconds()/int64(each)
			words = append(words, strconv.FormatInt(score, 10), b.keys.saga(index, 1e15+i))
			if len(words) >= 2*chunk || i == each-1 {
				all.add(words...)
				words = words[:2]
			}
		}
		all.add("PEXPIRE", index, keep)
		if err := errors.Join(ctx.Err(), b.control.doAll(&all)); err != nil {
			return err
		}
	}
	return nil
}

// dueBytes is what a saga takes in a large due index, rounded up.
const dueBytes = 200

// room says whether the server has memory for so much more, and half as much
// again.
func (b *Bench) room(bytes int64) (bool, error) {
	i, err := b.control.info("memory")
	if err != nil {
		return false, err
	}
	used, err := i.number("used_memory")
	if err != nil {
		return false, err
	}
	limit, _ := strconv.ParseFloat(i["maxmemory"], 64)
	if limit == 0 {
		limit, _ = strconv.ParseFloat(i["total_system_memory"], 64)
	}
	if limit > 0 && used+1.5*float64(bytes) > limit {
		b.note("due index of %d: the server has %.0f MB left, and it would need %d", bytes/dueBytes, (limit-used)/1e6, bytes/1e6)
		return false, nil
	}
	return true, nil
}

// wipe removes every key that was made, by its name: what others keep on the
// server is not even looked at.
func (b *Bench) wipe() error {
	if b.left != nil {
		if err := b.left(); err != nil {
			return err
		}
	}
	var all calls
	words := []string{"DEL", b.keys.record(), b.keys.value()}
	for _, size := range append([]int{0}, b.cfg.Due...) {
		for n := range indexes(size) {
			words = append(words, b.keys.index(size, n))
		}
	}
	all.add(words...)
	words = words[:1]
	for n := range b.cfg.Finished {
		if words = append(words, b.keys.finished(n)); len(words) > chunk || n == b.cfg.Finished-1 {
			all.add(words...)
			words = words[:1]
		}
	}
	err := b.control.doAll(&all)
	if b.function {
		_, deleted := b.control.do("FUNCTION", "DELETE", b.keys.function())
		err = errors.Join(err, deleted)
	}
	return err
}
