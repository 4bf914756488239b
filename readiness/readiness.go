// Package readiness computes the status of an object of any kind from the object alone, without requests:
//
//	result := readiness.Compute(deployment)
//	if result.Status != readiness.Current {
//		fmt.Println(result) // InProgress: 1 of 3 replicas are available
//	}
//
// A caller's [Rule] supports kinds with their status in custom fields. dynamic.Ready is the wait condition for a status.
//
// The rules are kstatus's, as used by Flux, Helm and kpt. They are applied in this order, and the first decisive rule wins:
//
//  1. An object with a deletionTimestamp is Terminating.
//  2. An object with status.observedGeneration != metadata.generation is InProgress: its controller has yet to see the last
//     change.
//  3. The condition Reconciling with status True makes it InProgress, Stalled makes it Failed.
//  4. The caller's [Rule] for its kind decides.
//  5. The rules for built-in kinds decide: Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Pod, Job,
//     CronJob, PersistentVolumeClaim, Service, ConfigMap, Secret, PodDisruptionBudget, CustomResourceDefinition, APIService.
//  6. The condition Ready decides: Current if its status is True, InProgress otherwise.
//  7. Everything else is Current.
//
// Two of kstatus's rules surprise: a Job is Current as soon as it has started, and a Service of type LoadBalancer as soon as it
// has a cluster IP. A Rule changes that. This package differs from kstatus:
//
//   - A Pod whose phase is Failed is Failed, not Current.
//   - A paused Deployment with all replicas updated and available is Current, as for kubectl rollout status.
//   - A StatefulSet, ReplicaSet, ReplicationController, Deployment or PodDisruptionBudget without a
//     status.observedGeneration is InProgress: it has just been created.
//   - A ReplicationController is read like a ReplicaSet, and an APIService by its condition Available.
//   - Reconciling, Stalled and Ready are ignored if their own observedGeneration is set and behind.
//   - A field of an unexpected type makes the status Unknown. So does a condition read by a rule if its status is not True,
//     False or Unknown.
package readiness

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/unstructured"
)

// Status is the overall status of an object.
type Status string

const (
	// Current means that the cluster is in the desired state.
	Current Status = "Current"
	// InProgress means that controllers have work left to do.
	InProgress Status = "InProgress"
	// Failed means that controllers report a failure. A later change of the object or of the cluster may still make it Current.
	Failed Status = "Failed"
	// Terminating means that the object is being deleted.
	Terminating Status = "Terminating"
	// Unknown means that the rules cannot read the object. For example, a field has an unexpected type.
	Unknown Status = "Unknown"
)

// Result is the status of an object and its reason.
type Result struct {
	Status Status
	// Field is the path of the decisive field, as of [unstructured.ParsePath]: "status.readyReplicas",
	// "status.conditions[type=Ready].status". The object may lack this field. Field is empty if no field decided: the object is
	// Current by default.
	Field string
	// Message explains the status in one line of printable text: "1 of 3 replicas are available". It contains the reason and
	// message of the decisive condition.
	Message string
}

// String returns the status and the message: "InProgress: 1 of 3 replicas are available".
func (r Result) String() string { return string(r.Status) + ": " + r.Message }

// maxMessage limits a Message, in bytes.
const maxMessage = 1000

// Compute returns the status of an *Object or a *Lazy. Both have the same result, but only the fields used by the rules are
// decoded of a Lazy. The object must be whole, status included: metadata alone is mostly Current.
//
// The first of the caller's rules with the object's group and kind replaces the built-in rule. The status is Unknown if that rule
// is not valid ([Rule.Validate]) or obj is nil.
//
// The result depends on the time for an unschedulable Pod: it is InProgress for its first 15 seconds and Failed later. Compute is
// safe for concurrent use while nobody changes the object.
func Compute[O *unstructured.Object | *unstructured.Lazy](obj O, rules ...Rule) Result {
	if obj == nil {
		return Result{Status: Unknown, Message: "there is no object"}
	}
	o := &object{
		value:   func(fields ...string) (any, bool, error) { return unstructured.Get[any](obj, fields...) },
		text:    func(fields ...string) (string, bool, error) { return unstructured.Get[string](obj, fields...) },
		integer: func(fields ...string) (int64, bool, error) { return unstructured.Get[int64](obj, fields...) },
	}
	result := o.compute(rules)
	if o.err != nil {
		result = Result{Status: Unknown, Field: o.badField, Message: o.err.Error()}
	}
	result.Message = sanitize.Text(result.Message, maxMessage)
	return result
}

func (o *object) compute(rules []Rule) Result {
	o.readConditions()
	if result := o.generic(); result != (Result{}) || o.err != nil {
		return result
	}
	kind := schema.FromAPIVersionAndKind(o.string("apiVersion"), o.string("kind")).GroupKind()
	for _, rule := range rules {
		if rule.Group != kind.Group || rule.Kind != kind.Kind {
			continue
		}
		if err := rule.Validate(); err != nil {
			return Result{Status: Unknown, Message: err.Error()}
		}
		return rule.apply(o)
	}
	if builtin := builtinRule(kind); builtin != nil {
		return builtin(o)
	}
	ready, found := o.condition("Ready")
	behind := o.behind(ready)
	switch {
	case !found:
		return Result{Status: Current, Message: "no condition or rule says otherwise"}
	case behind != Result{}:
		return behind
	case ready.status == "True":
		return ready.result(Current)
	case ready.status == "False", ready.status == "Unknown":
		return ready.result(InProgress)
	default:
		return Result{Unknown, ready.path("status"), fmt.Sprintf("condition Ready has status %q", ready.status)}
	}
}

// generic applies the rules for every kind. It returns the zero Result if no rule decides.
func (o *object) generic() Result {
	if since := o.string("metadata", "deletionTimestamp"); since != "" {
		message := "being deleted since " + since
		if finalizers := o.strings("metadata", "finalizers"); len(finalizers) > 0 {
			message += ", with the finalizers " + strings.Join(finalizers, ", ")
		}
		return Result{Terminating, "metadata.deletionTimestamp", message}
	}
	if generation, found := o.number("metadata", "generation"); found {
		if observed, found := o.number("status", "observedGeneration"); found && observed != generation {
			message := fmt.Sprintf("generation %d is not observed yet: status is of generation %d", generation, observed)
			return Result{InProgress, "status.observedGeneration", message}
		}
	}
	for _, c := range o.conditions {
		switch {
		case c.status != "True":
		case c.name == "Reconciling":
			return cmp.Or(o.behind(c), c.result(InProgress))
		case c.name == "Stalled":
			return cmp.Or(o.behind(c), c.result(Failed))
		}
	}
	return Result{}
}
