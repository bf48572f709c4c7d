package result

// Resources is what was used on average during a measurement.
type Resources struct {
	// CPU, in cores kept busy.
	LoadCores  *float64 `json:"load_cores" label:"load, cores" merge:"sum"`
	AppCores   *float64 `json:"app_cores" label:"app, cores"`
	StoreCores *float64 `json:"store_cores" label:"store, cores" merge:"store"`
	// AppCoresUsable is how many the app servers may use, wherever they run.
	AppCoresUsable *float64 `json:"app_cores_usable"`
	// StoreOneCore: the store's server runs its commands on one core.
	StoreOneCore bool `json:"store_one_core"`

	// Shares of the load generator's machine: of all cores, of the busiest one,
	// and what its hypervisor took.
	HostBusy    *float64 `json:"host_busy" label:"machine" unit:"share" merge:"max"`
	BusiestCore *float64 `json:"busiest_core" label:"busiest core" unit:"share" merge:"max"`
	HostSteal   *float64 `json:"host_steal" merge:"max"`

	StoreFsyncsPerS    *float64 `json:"store_fsyncs_per_s" label:"fsyncs/s" merge:"store"`
	StoreCallsInFlight *float64 `json:"store_calls_busy" label:"calls in flight"`                                   // of the app to the store
	StoreLockWaits     *float64 `json:"store_lock_waits" label:"lock waits" merge:"store"`                          // waits for row locks in progress
	AppAcceptWait      *float64 `json:"app_kept_out" label:"app servers that refuse clients"`                       // all connections that they accept were in use
	StoreConns         *float64 `json:"store_conns"`                                                                // connections that the app may have to the store's server
	StoreConnWaits     *float64 `json:"store_conn_waits" label:"connection waits"`                                  // calls in flight that waited for one of them
	StoreServerConns   *float64 `json:"store_server_conns" label:"server's connections" unit:"share" merge:"store"` // of all that the server allows, open at the end
	NetworkBytesPerS   *float64 `json:"network_bytes_per_s" label:"network, bytes/s" merge:"sum"`                   // both ways, between machines, on the load generator's
	NetworkShare       *float64 `json:"network_share" label:"network" unit:"share" merge:"max"`                     // of its slowest used link; null: its speed is not known
}

// ResourceFields lists the figures of a Resources.
var ResourceFields = fieldsOf[Resources]()
