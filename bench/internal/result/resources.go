package result

// Resources is the average use of resources during a measurement.
type Resources struct {
	// CPU, in busy cores.
	LoadCores         *float64 `json:"load_cores" label:"load, cores" merge:"sum"`
	AppCores          *float64 `json:"app_cores" label:"app, cores"`
	StoreCores        *float64 `json:"store_cores" label:"store, cores" merge:"store"`
	StoreMainCore     *float64 `json:"store_main_core" label:"store's main thread, cores" merge:"store"`       // of a Redis: the one that runs its commands; of a cluster that of the busiest master
	StorePrimaryCores *float64 `json:"store_primary_cores" label:"store's primary, cores" merge:"store"`       // of a server with a replica: its own, which are a part of the store's
	StoreChildCores   *float64 `json:"store_child_cores" label:"store's children, cores" merge:"store"`        // of a Redis: rewrites and snapshots that ended meanwhile, all of their CPU
	StoreOneCore      bool     `json:"store_one_core"`                                                         // whether the store's server, or each node of a cluster, runs its commands on one core
	StoreCPUImbalance *float64 `json:"store_cpu_imbalance" label:"CPU imbalance of the masters" merge:"store"` // of a Redis Cluster: CPU of the busiest master divided by the mean of all masters

	// Cores that the processes may use: those of the CPU affinity, or of the cgroup's CPU
	// quota if that is less.
	LoadCoresUsable  *float64 `json:"load_cores_usable" merge:"sum"`
	AppCoresUsable   *float64 `json:"app_cores_usable"` // of all app servers
	StoreCoresUsable *float64 `json:"store_cores_usable" merge:"store"`

	// Share of the periods of the cgroup's CPU quota (mostly 100 ms each) in which the
	// process used up the quota and was stopped until the next one.
	LoadThrottled  *float64 `json:"load_throttled" label:"load, throttled" unit:"share" merge:"max"`
	AppThrottled   *float64 `json:"app_throttled" label:"app, throttled" unit:"share"` // average of the app servers
	StoreThrottled *float64 `json:"store_throttled" label:"store, throttled" unit:"share" merge:"store"`

	// CPU of the load generator's machine, as shares of 1: of all cores and of the busiest
	// core, busy; of all cores, taken by the hypervisor; of the time, in which something
	// that could run waited for a CPU.
	HostBusy        *float64 `json:"host_busy" label:"machine" unit:"share" merge:"max"`
	BusiestCore     *float64 `json:"busiest_core" label:"busiest core" unit:"share" merge:"max"`
	HostSteal       *float64 `json:"host_steal" label:"steal" unit:"share" merge:"max"`
	HostCPUPressure *float64 `json:"host_cpu_pressure" label:"CPU pressure" unit:"share" merge:"max"`

	StoreFsyncsPerS      *float64 `json:"store_fsyncs_per_s" label:"fsyncs/s" merge:"store"`
	StoreCallsInFlight   *float64 `json:"store_calls_busy" label:"calls in flight"`                                   // calls of the app to the store, on average
	StoreLockWaits       *float64 `json:"store_lock_waits" label:"lock waits" merge:"store"`                          // waits for row locks in progress
	AppAcceptWait        *float64 `json:"app_kept_out" label:"app servers that refuse clients"`                       // app servers whose connections were all in use
	StoreConns           *float64 `json:"store_conns"`                                                                // highest number of connections of the app to the store's server
	StoreConnWaits       *float64 `json:"store_conn_waits" label:"connection waits"`                                  // calls in flight that waited for a connection
	StoreServerConns     *float64 `json:"store_server_conns" label:"server's connections" unit:"share" merge:"store"` // open connections at the end, of those that the server allows
	StoreRSSBytes        *float64 `json:"store_rss_bytes" label:"store's memory" unit:"bytes" merge:"store"`          // resident memory of the store's server at the end
	AppRSSBytes          *float64 `json:"app_rss_bytes" label:"app's memory" unit:"bytes"`                            // resident memory of all app servers at the end
	StoreUsedBytes       *float64 `json:"store_used_bytes" merge:"store"`                                             // of these, what Redis says that it uses
	StoreDebtBytes       *float64 `json:"store_debt_bytes" label:"unpaid background work" unit:"bytes" merge:"store"` // by how much the work grew that the store put off: compactions, checkpoints, rewrites
	StoreDeviceBytesPerS *float64 `json:"store_device_bytes_per_s" label:"store's device, bytes/s" merge:"store"`     // written to the device of the store's files, by all: the store, the file system's journal, others
	NetworkBytesPerS     *float64 `json:"network_bytes_per_s" label:"network, bytes/s" merge:"sum"`                   // both directions, on the load generator's machine, to other machines
	NetworkShare         *float64 `json:"network_share" label:"network" unit:"share" merge:"max"`                     // of the slowest used link; null: its speed is unknown
}

// ResourceFields lists the figures of a Resources.
var ResourceFields = fieldsOf[Resources]()
