package result

// Cost is what one acknowledged saga cost, warm-up left out.
type Cost struct {
	StoreCPUUS       *float64 `json:"store_cpu_us" label:"store CPU" unit:"µs" spender:"store" merge:"store"`
	AppCPUUS         *float64 `json:"app_cpu_us" label:"app CPU" unit:"µs" spender:"app" merge:"app"`
	LoadCPUUS        *float64 `json:"load_cpu_us" label:"load CPU" unit:"µs" spender:"load" merge:"load"`
	StoreBytesIn     *float64 `json:"store_bytes_in" label:"to the store" unit:"bytes" merge:"store"`
	StoreBytesOut    *float64 `json:"store_bytes_out" label:"from the store" unit:"bytes" merge:"store"`
	StoreMemoryBytes *float64 `json:"store_memory_bytes" label:"kept in the store" unit:"bytes" merge:"store"` // by a finished saga
	StoreCalls       *float64 `json:"store_calls" label:"store calls" merge:"store"`                           // commands sent by clients
	StoreRoundTrips  *float64 `json:"store_round_trips" label:"store round trips" merge:"app"`
	StoreFsyncs      *float64 `json:"store_fsyncs" label:"store fsyncs" merge:"store"`
}

// CostFields lists the figures of a Cost.
var CostFields = fieldsOf[Cost]()

// CPUFields lists the figures of a Cost that are CPU time.
func CPUFields() (fields []Field[Cost]) {
	for _, f := range CostFields {
		if f.Spender != "" {
			fields = append(fields, f)
		}
	}
	return fields
}
