package capacity

import (
	"math"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
)

const (
	intervalLevel  = 0.95
	intervalRounds = 400
	intervalSeed   = 1

	// Latencies are counted in buckets of 0.5%, which costs less than to sort them.
	bucketRatio = 1.005
)

// intervals returns the interval of each latency of the service level within these
// seconds. It resamples blocks of √n seconds: what slows one second down lasts.
func intervals(seconds []result.Second, slo result.SLO) (all []result.LatencyInterval) {
	buckets := 0
	counts := make([][]int64, len(seconds)) // by second and bucket
	for i, s := range seconds {
		for _, us := range s.LatencyUS {
			b := bucketOf(us)
			for len(counts[i]) <= b {
				counts[i] = append(counts[i], 0)
			}
			counts[i][b]++
		}
		buckets = max(buckets, len(counts[i]))
	}
	sum := make([]int64, buckets+1)
	block := max(1, int(math.Round(math.Sqrt(float64(len(seconds))))))
	for _, goal := range slo.Latencies {
		low, high := stats.Between(stats.BlockBootstrap(len(seconds), block, intervalSeed, intervalRounds, func(positions []int) float64 {
			clear(sum)
			total := int64(0)
			for _, at := range positions {
				for b, n := range counts[at] {
					sum[b] += n
				}
				// They took longer than anything that was answered.
				lost := seconds[at].Errors + seconds[at].Dropped
				sum[buckets] += lost
				total += int64(len(seconds[at].LatencyUS)) + lost
			}
			return msOf(quantile(sum, total, goal.Percentile/100))
		}), intervalLevel)
		all = append(all, result.LatencyInterval{Percentile: goal.Percentile, LowMS: result.Round(low), HighMS: result.Round(high)})
	}
	return all
}

func bucketOf(us uint32) int { return int(math.Log(max(1, float64(us))) / math.Log(bucketRatio)) }

// msOf returns the middle of a bucket.
func msOf(bucket int) float64 { return math.Pow(bucketRatio, float64(bucket)+0.5) / 1000 }

// quantile returns the bucket of a quantile.
func quantile(counts []int64, total int64, q float64) int {
	left := int64(math.Ceil(q * float64(total)))
	for b, n := range counts {
		if left -= n; left <= 0 {
			return b
		}
	}
	return len(counts) - 1
}
