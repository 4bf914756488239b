package apitest

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/clustercopy"
	"github.com/anykind/anykind/apitest/streams"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/unstructured"
)

// Options configure a Server. The zero value is a server on loopback with the built-in kinds. It allows everything.
type Options struct {
	// Objects are created when the server starts, in their order except that namespaces and CustomResourceDefinitions come first.
	// They are defaulted and validated like in [Server.Create] and may have a status. The given objects are not modified.
	Objects []*unstructured.Object
	// Copy has objects of a cluster. They are stored as they are, neither defaulted nor validated, under their own resourceVersions, and replace
	// the objects of a new server. Writes continue after the largest resourceVersion. Lists and watches at an older one get 410.
	// Objects without a resourceVersion are defaulted and get a UID if they have none. Missing namespaces are created. The definitions of Objects are created before, the rest of Objects after. See [Server.CopyDifferences].
	Copy *clustercopy.Copy
	// InMemory connects clients over pipes in memory without TLS. The server then works inside a testing/synctest bubble and without
	// a network. Only Client, Config and HTTPClient reach it.
	InMemory bool
	// Now is the base of [Server.Clock]. The default is time.Now, so inside a testing/synctest bubble it is the bubble's clock.
	Now func() time.Time
	// History is the number of writes and of requests to keep, by default 10,000. It limits how far back a watch can begin, a list
	// can be made, and StatesOf and Requests look. Memory is bounded by the current objects and 2*History old states. A watch that
	// lags further behind ends with 410. The bodies of requests take up to 64 MiB. Older requests are kept without their Body.
	History int
	// ShardedListAndWatch turns on the feature gate of that name, which is off in Kubernetes 1.36: lists and watches of a shard
	// (https://kep.k8s.io/5866).
	ShardedListAndWatch bool
	// BookmarkInterval is the time between the bookmarks of a watch, by default a minute.
	BookmarkInterval time.Duration
	// OnNotValidated is called with each text about validation, defaulting or printing that the server does not implement, instead
	// of the Warning header. A function that calls t.Errorf fails the test, and an empty function hides the texts. The request is
	// unfinished: it has no Code. It has no Method if the object is in Objects or given to Create.
	OnNotValidated func(request Request, text string)
	// Users can authenticate in addition to the admin of Client and Config. Requests without a credential are from system:anonymous.
	Users []User
	// RBAC authorizes users by the stored Roles, ClusterRoles and bindings. By default everything is allowed.
	RBAC bool
	// Mutate and Validate are admission functions. They are called for every write over HTTP and by Create in the API server's
	// order: all of Mutate, validation, all of Validate.
	Mutate, Validate []AdmissionFunc
	// Rules compiles and evaluates the CEL rules of CustomResourceDefinitions: cel.Rules{} of the module apitest/cel. Without it, a
	// write of an object whose schema has rules returns a warning.
	Rules RuleCompiler
	// Policies evaluates the stored MutatingAdmissionPolicies and ValidatingAdmissionPolicies: &cel.Policies{} of the module
	// apitest/cel. Without it, a write returns a warning if there are bindings of policies.
	Policies PolicyEvaluator
	// DisableWebhooks calls no stored webhooks: a matching webhook is a warning. By default they are called.
	DisableWebhooks bool
	// ServiceURL resolves a service of a webhook configuration or of a conversion webhook to a URL. Without it, calls of such webhooks
	// fail.
	ServiceURL func(namespace, name string, port int32) (string, error)
	// Streams handle logs, exec, attach, port-forward and proxy.
	Streams streams.Handlers
	// Controllers are the simulated controllers, such as GarbageCollection|NamespaceDeletion. By default there are none: a
	// Deployment has no pods and a deleted namespace stays.
	Controllers Controllers
	// Faults are the initial faults; see [Server.Inject].
	Faults []Fault
	// Seed makes the random choices of faults and of a skewed clock repeatable. A Seed other than 0 also fixes the UIDs and
	// generated names of objects created over HTTP or by Create, as long as the order of creations is the same.
	Seed uint64
}

// RuleCompiler compiles the CEL rules of CustomResourceDefinitions (x-kubernetes-validations) for Options.Rules. Rules of the
// module apitest/cel implements it with the API server's own code.
type RuleCompiler interface {
	schema.RuleCompiler

	// ValidateDefinition returns the errors in the rules of a CustomResourceDefinition. old is nil for a creation.
	ValidateDefinition(ctx context.Context, definition, old map[string]any) field.ErrorList
}
