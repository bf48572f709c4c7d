package result

import "slices"

// Cost is the cost of one acknowledged saga, without the warm-up.
type Cost struct {
	StoreCPUUS        *float64 `json:"store_cpu_us" label:"store CPU" unit:"µs" group:"CPU" short:"store" merge:"store"`
	AppCPUUS          *float64 `json:"app_cpu_us" label:"app CPU" unit:"µs" group:"CPU" short:"app" merge:"app"`
	LoadCPUUS         *float64 `json:"load_cpu_us" label:"load CPU" unit:"µs" group:"CPU" short:"load" merge:"load"`
	StoreBytesIn      *float64 `json:"store_bytes_in" label:"to the store" unit:"bytes" group:"store" short:"in" merge:"store"`
	StoreBytesOut     *float64 `json:"store_bytes_out" label:"from the store" unit:"bytes" group:"store" short:"out" merge:"store"`
	StoreMemoryBytes  *float64 `json:"store_memory_bytes" label:"kept in the store" unit:"bytes" group:"store" short:"kept" merge:"store"`   // by a finished saga
	StoreBytesWritten *float64 `json:"store_bytes_written" label:"written to disk" unit:"bytes" group:"store" short:"written" merge:"store"` // by the store's server, or the embedded store
	StoreCalls        *float64 `json:"store_calls" label:"store calls" group:"store operations" short:"calls" merge:"store"`                 // commands sent by clients
	StoreRoundTrips   *float64 `json:"store_round_trips" label:"store round trips" group:"store operations" short:"round trips" merge:"app"`
	StoreFsyncs       *float64 `json:"store_fsyncs" label:"store fsyncs" group:"store operations" short:"fsyncs" merge:"store"`
	StoreBusiestCPUUS *float64 `json:"store_busiest_cpu_us" label:"busiest master's CPU" unit:"µs" group:"cluster" short:"CPU of the busiest master" merge:"store"` // of a Redis Cluster: of the master that used most, per saga of all masters

	// NotMeasurable has the keys of figures that are null because they are below what can be
	// measured: other work hides them.
	NotMeasurable []string `json:"not_measurable"`
}

// CostFields lists the figures of a Cost.
var CostFields = fieldsOf[Cost]()

// OfBusiest returns the CPU of the busiest master of the store, in µs. One server is its own
// busiest. It returns nil if the CPU is unknown or that of two servers.
func (c Cost) OfBusiest(s Store) *float64 {
	if s.Masters() > 0 || s.Replicated() {
		return c.StoreBusiestCPUUS
	}
	return c.StoreCPUUS
}

// groupCPU is the group of the figures that are CPU time. Their short names are the
// processes: store, app and load.
const groupCPU = "CPU"

// groupCluster is the group of the figures that only the store of a cluster has.
const groupCluster = "cluster"

// OfCluster reports whether only the store of a cluster has the figure.
func (f Field[T]) OfCluster() bool { return f.Group == groupCluster }

// IsCPU reports whether the figure is CPU time.
func (f Field[T]) IsCPU() bool { return f.Group == groupCPU }

// CPUFields lists the figures of a Cost that are CPU time.
var CPUFields = slices.DeleteFunc(slices.Clone(CostFields), func(f Field[Cost]) bool { return !f.IsCPU() })
