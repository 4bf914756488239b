// Package readiness computes the status of an object of any kind from the object alone, without requests:
//
//	result := readiness.Compute(deployment, nil)
//	if result.Status != readiness.Current {
//		fmt.Println(result) // InProgress: 1 of 3 replicas are available
//	}
//
// A caller's [Rule] supports kinds with their status in custom fields. dynamic.Ready is the wait condition for a status.
//
// The first decisive rule wins:
//
//  1. An object with a deletionTimestamp is Terminating.
//  2. The caller's [Rule] for its kind decides.
//  3. An object with status.observedGeneration != metadata.generation is InProgress: its controller has yet to see the last
//     change.
//  4. The condition Reconciling with status True makes it InProgress, Stalled makes it Failed.
//  5. The rules for built-in kinds decide: Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Pod, Job,
//     CronJob, PersistentVolumeClaim, Service, Ingress, HorizontalPodAutoscaler, ConfigMap, Secret, PodDisruptionBudget,
//     CustomResourceDefinition, APIService.
//  6. A condition Accepted, Valid, ResolvedRefs, Programmed, Synced, Reconciled, Installed, Established, Healthy, Available or
//     Ready makes it InProgress if its status is not True. This includes the conditions of each parent, ancestor and listener, as
//     the Gateway API has them.
//  7. One of these conditions with status True makes it Current.
//  8. A custom resource without a status is InProgress if its kind has the subresource status: no controller has reported yet.
//     [Options] has the subresource. For a kind without a controller pass a [Rule] without checks.
//  9. Everything else is Current.
//
// A field of an unexpected type decides nothing, and Result.Message mentions it. In built-in kinds it makes the status Unknown.
// Conditions are ignored if their own observedGeneration is set and behind: the object is InProgress.
//
// The rules extend kstatus's, as used by Flux, Helm and kpt. docs/READINESS.md compares the results with kstatus's and Argo CD's,
// with a reason for each difference. A Job is Current as soon as it has started, as for kstatus. A Rule changes that.
package readiness

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtingroup"
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

// Options are rules and facts about the kind of an object.
type Options struct {
	// Rules replace the built-in rules of their kinds. The first rule with the object's group and kind applies. The status is
	// Unknown if that rule is not valid ([Rule.Validate]).
	Rules []Rule
	// StatusSubresource reports whether the object's kind has the subresource status, as discovery has it. nil means not known,
	// for example offline: a custom resource without a status is then Current, with a message about it.
	StatusSubresource *bool
}

// Compute returns the status of an *Object or a *Lazy. Both have the same result, but only the fields used by the rules are
// decoded of a Lazy. The object must be whole, status included: metadata alone is mostly Current. The status of nil is Unknown.
// opts may be nil. Handle.Readiness of package dynamic fills in the options.
//
// The result depends on the time for an unschedulable Pod: it is InProgress for its first 15 seconds and Failed later. Compute is
// safe for concurrent use while nobody changes the object.
func Compute[O *unstructured.Object | *unstructured.Lazy](obj O, opts *Options) Result {
	if obj == nil {
		return Result{Status: Unknown, Message: "there is no object"}
	}
	if opts == nil {
		opts = &Options{}
	}
	o := &object{
		value:   func(fields ...string) (any, bool, error) { return unstructured.Get[any](obj, fields...) },
		text:    func(fields ...string) (string, bool, error) { return unstructured.Get[string](obj, fields...) },
		integer: func(fields ...string) (int64, bool, error) { return unstructured.Get[int64](obj, fields...) },
	}
	result := o.compute(opts)
	if o.err != nil {
		result = Result{Status: Unknown, Field: o.badField, Message: o.err.Error()}
	}
	for _, observation := range o.observations {
		result.Message += "; " + observation
	}
	result.Message = sanitize.Text(result.Message, maxMessage)
	return result
}

func (o *object) compute(opts *Options) Result {
	if deleted := o.string("metadata", "deletionTimestamp"); deleted != "" {
		return o.terminating(deleted)
	}
	kind := schema.FromAPIVersionAndKind(o.string("apiVersion"), o.string("kind")).GroupKind()
	for _, rule := range opts.Rules {
		if rule.Group != kind.Group || rule.Kind != kind.Kind {
			continue
		}
		if err := rule.Validate(); err != nil {
			return Result{Status: Unknown, Message: err.Error()}
		}
		return rule.apply(o)
	}
	builtin := builtinRule(kind)
	o.isBuiltin = builtin != nil
	if result := cmp.Or(o.outdated(), o.kstatusConditions()); result != (Result{}) {
		return result
	}
	if builtin != nil {
		return builtin(o)
	}
	return cmp.Or(o.positiveConditions(), o.withoutConditions(kind.Group, opts.StatusSubresource))
}

func (o *object) terminating(deleted string) Result {
	message := "being deleted since " + deleted
	if finalizers := o.strings("metadata", "finalizers"); len(finalizers) > 0 {
		message += ", with the finalizers " + strings.Join(finalizers, ", ")
	}
	return Result{Terminating, "metadata.deletionTimestamp", message}
}

// outdated returns InProgress if the status is of an older or newer generation, or the zero Result.
func (o *object) outdated() Result {
	generation, hasGeneration := o.number("metadata", "generation")
	observed, isObserved := o.number("status", "observedGeneration")
	if !hasGeneration || !isObserved || observed == generation {
		return Result{}
	}
	message := fmt.Sprintf("generation %d is not observed yet: status is of generation %d", generation, observed)
	return Result{InProgress, "status.observedGeneration", message}
}

// withoutConditions returns the status of an object of any kind if no condition decides.
func (o *object) withoutConditions(group string, hasSubresource *bool) Result {
	current := Result{Status: Current, Message: "no condition or rule says otherwise"}
	status, _, _ := o.value("status") // obj is readable up to here
	fields, isMap := status.(map[string]any)
	isWritten := status != nil && (!isMap || len(fields) > 0)
	switch {
	case isWritten || builtingroup.Is(group):
		return current
	case hasSubresource == nil:
		current.Message = "there is no status, and it is not known whether the kind has the subresource status"
		return current
	case *hasSubresource:
		return Result{InProgress, "status", "no controller has reported yet"}
	default:
		return current
	}
}
