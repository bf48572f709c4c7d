package pebblestore

import (
	"os"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

const (
	memTableBytes = 16 << 20
	cacheBytes    = 64 << 20
)

func (s *Store) options() *pebble.Options {
	o := &pebble.Options{
		FS:                 s.disk,
		Lock:               s.lock,
		Logger:             s.log,
		EventListener:      &pebble.EventListener{},
		FormatMajorVersion: pebble.FormatValueSeparation,
		MemTableSize:       memTableBytes,
		CacheSize:          cacheBytes,
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	o.MemTableSize = uint64(envi("MEM", 16)) << 20
	o.MemTableStopWritesThreshold = envi("MEMSTOP", 4)
	o.CacheSize = int64(envi("CACHE", 128)) << 20
	o.L0CompactionThreshold = envi("L0", 8)
	o.L0StopWritesThreshold = envi("L0STOP", 1000)
	o.LBaseMaxBytes = int64(envi("LBASE", 64)) << 20
	o.TargetFileSizes[0] = int64(envi("TFS", 2)) << 20
	switch os.Getenv("COMP") {
	case "none":
		o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	case "fastest":
		o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
	case "balanced":
		o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionBalanced })
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize = envi("BLOCK", 4) << 10
	}
	if os.Getenv("SPLIT") != "0" {
		o.Experimental.SpanPolicyFunc = func(start []byte) (pebble.SpanPolicy, []byte, error) {
			return pebble.SpanPolicy{}, []byte{start[0] + 1}, nil
		}
	}
	if os.Getenv("EVENTS") != "" {
		o.EventListener.CompactionEnd = func(i pebble.CompactionInfo) { println(i.String()) }
		o.EventListener.FlushEnd = func(i pebble.FlushInfo) { println(i.String()) }
	}
	if s.cfg.tune != nil {
		s.cfg.tune(o)
	}
	return o
}

func envi(n string, d int) int {
	if v, err := strconv.Atoi(os.Getenv(n)); err == nil {
		return v
	}
	return d
}
