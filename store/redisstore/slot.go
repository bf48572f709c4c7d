package redisstore

import (
	"strconv"
	"strings"

	"sagabench/store/redisstore/redisconn"
)

const slots = redisconn.SlotCount

// slotOf returns the hash slot of a key: CRC-16/XMODEM of its hash tag, or of all of it if
// it has none, modulo the slots. Source: "Redis cluster specification", key distribution
// model.
func slotOf(key string) int {
	tag := key
	if _, after, ok := strings.Cut(key, "{"); ok {
		if inside, _, ok := strings.Cut(after, "}"); ok && inside != "" {
			tag = inside
		}
	}
	var crc uint16
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}

// shardTags returns the hash tags of n shards. Shard i has a slot in the middle half of
// part i of n equal parts of all slots, so that masters that share the slots evenly
// share the shards evenly too. One shard has the tag 0.
func shardTags(n int) []string {
	if n == 1 {
		return []string{"0"}
	}
	tags := make([]string, n)
	for number, left := 0, n; left > 0; number++ {
		tag := strconv.FormatInt(int64(number), 36)
		position := slotOf(tag) * n
		shard, within := position/slots, position%slots
		if tags[shard] == "" && within >= slots/4 && within < 3*slots/4 {
			tags[shard] = tag
			left--
		}
	}
	return tags
}
