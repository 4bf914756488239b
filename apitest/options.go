package apitest

import (
	"time"

	"github.com/anykind/anykind/unstructured"
)

// Options configure a Server. The zero value is a server on loopback with the built-in kinds, in which everything is allowed.
type Options struct {
	// Objects are created when the server starts, in their order except that namespaces and CustomResourceDefinitions come
	// first. They are defaulted and validated like any others, may have a status, and are not changed.
	Objects []*unstructured.Object
	// InMemory connects clients over pipes in memory without TLS, so that the server works inside a testing/synctest bubble and
	// without a network. Only Client, Config and HTTPClient reach it.
	InMemory bool
	// Now is the clock below [Server.Clock]. By default it is that of package time, which inside a testing/synctest bubble is the
	// bubble's.
	Now func() time.Time
	// History is the number of writes and of requests that the server remembers, by default 10,000: a watch can begin, a list can
	// be made and StatesOf and Requests look back so far. The server's memory is bounded by the objects that there are and twice as
	// many old states; a watch that lags behind by more ends with 410.
	History int
	// BookmarkInterval is the time between the bookmarks of a watch, by default a minute.
	BookmarkInterval time.Duration
	// HideWarnings leaves out the Warning headers that say what was not validated or defaulted as a real server would.
	HideWarnings bool
	// Users are those that may authenticate besides the one of Client and Config, who may do everything. Requests without a
	// credential are those of system:anonymous.
	Users []User
	// RBAC allows users only what the stored Roles, ClusterRoles and their bindings do. Without it everybody may do everything.
	RBAC bool
	// Mutate and Validate are admission functions: called for every write over HTTP and by Create in the API server's order, all
	// mutations before validation, then all validations.
	Mutate, Validate []AdmissionFunc
	// Rules compiles and evaluates the CEL rules of CustomResourceDefinitions: cel.Rules{} of the module apitest/cel. Without it the
	// response to a write of an object whose schema has rules carries a warning.
	Rules RuleCompiler
	// DisableWebhooks ignores the stored webhook configurations, which are called otherwise.
	DisableWebhooks bool
	// ServiceURL returns the URL at which a service that a webhook configuration names is reached. Without it the call of such a
	// webhook fails.
	ServiceURL func(namespace, name string, port int32) (string, error)
	// Streams answer logs, exec, attach, port-forward and proxy.
	Streams Streams
	// Controllers are the parts of a cluster that are simulated, such as GarbageCollection|NamespaceDeletion; by default none, so
	// that a deployment has no pods and a namespace that is deleted stays.
	Controllers Controllers
	// Faults go wrong from the start; see [Server.Inject].
	Faults []Fault
	// Seed makes the random choices of faults and of a skewed clock repeatable and, unless it is 0, the UIDs and generated names of
	// objects that are created over HTTP or by Create, if these come in the same order.
	Seed uint64
}
