package result

// Resources is the average use of resources during a measurement.
type Resources struct {
	// CPU, in busy cores.
	LoadCores      *float64 `json:"load_cores" label:"load, cores" merge:"sum"`
	AppCores       *float64 `json:"app_cores" label:"app, cores"`
	StoreCores     *float64 `json:"store_cores" label:"store, cores" merge:"store"`
	AppCoresUsable *float64 `json:"app_cores_usable"` // number of cores that the app servers may use
	StoreOneCore   bool     `json:"store_one_core"`   // whether the store's server runs its commands on one core

	// CPU of the load generator's machine, as shares of 1: of all cores, of the busiest
	// core, and taken by the hypervisor.
	HostBusy    *float64 `json:"host_busy" label:"machine" unit:"share" merge:"max"`
	BusiestCore *float64 `json:"busiest_core" label:"busiest core" unit:"share" merge:"max"`
	HostSteal   *float64 `json:"host_steal" merge:"max"`

	StoreFsyncsPerS    *float64 `json:"store_fsyncs_per_s" label:"fsyncs/s" merge:"store"`
	StoreCallsInFlight *float64 `json:"store_calls_busy" label:"calls in flight"`                                   // calls of the app to the store, on average
	StoreLockWaits     *float64 `json:"store_lock_waits" label:"lock waits" merge:"store"`                          // waits for row locks in progress
	AppAcceptWait      *float64 `json:"app_kept_out" label:"app servers that refuse clients"`                       // app servers whose connections were all in use
	StoreConns         *float64 `json:"store_conns"`                                                                // highest number of connections of the app to the store's server
	StoreConnWaits     *float64 `json:"store_conn_waits" label:"connection waits"`                                  // calls in flight that waited for a connection
	StoreServerConns   *float64 `json:"store_server_conns" label:"server's connections" unit:"share" merge:"store"` // open connections at the end, of those that the server allows
	NetworkBytesPerS   *float64 `json:"network_bytes_per_s" label:"network, bytes/s" merge:"sum"`                   // both directions, on the load generator's machine, to other machines
	NetworkShare       *float64 `json:"network_share" label:"network" unit:"share" merge:"max"`                     // of the slowest used link; null: its speed is unknown
}

// ResourceFields lists the figures of a Resources.
var ResourceFields = fieldsOf[Resources]()
