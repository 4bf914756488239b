package rehearsal

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/internal/finalstate"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/plan"
	"github.com/anykind/anykind/unstructured"
)

// Report has the writes of a controller in a rehearsal.
type Report struct {
	Outcome Outcome `json:"outcome"`
	// Err is the error of the controller, nil after a stop.
	Err      error         `json:"-"`
	Duration time.Duration `json:"-"`
	// Changes are the created, changed and deleted objects, ordered by kind, namespace and name. Live is the object before the
	// rehearsal, Planned the object at its end.
	Changes []*plan.Change `json:"-"`
	// Status are the objects with a changed status and no further change.
	Status []*plan.Change `json:"-"`
	// Events are the created Events, and Leases the created and changed Leases, as NAMESPACE/NAME.
	Events []Event  `json:"events,omitempty"`
	Leases []string `json:"leases,omitempty"`
	// Repeated are the objects with several writes, most writes first. A controller that is never quiet has its cause here.
	Repeated []Repeated `json:"repeated,omitempty"`
	// Failed are the rejected requests, without 404 and 409: controllers expect these.
	Failed []Failed `json:"failed,omitempty"`
	// NotValidated lists the checks left out by the server.
	NotValidated []string `json:"notValidated,omitempty"`

	final []*unstructured.Object
}

// Event is a created Event.
type Event struct {
	Object  string `json:"object"` // KIND NAMESPACE/NAME
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Repeated is an object with several writes.
type Repeated struct {
	Object string `json:"object"` // RESOURCE NAMESPACE/NAME, with the subresource
	Writes int    `json:"writes"`
}

// Failed is a kind of rejected request.
type Failed struct {
	Request string `json:"request"` // VERB RESOURCE
	Code    int    `json:"code"`
	Count   int    `json:"count"`
}

func byReference(objects []*unstructured.Object) map[applyset.Reference]*unstructured.Object {
	found := map[applyset.Reference]*unstructured.Object{}
	for _, obj := range objects {
		found[applyset.ReferenceTo(obj)] = obj
	}
	return found
}

// sortedReferences returns the references of both maps.
func sortedReferences(before, after map[applyset.Reference]*unstructured.Object) []applyset.Reference {
	all := maps.Clone(before)
	maps.Copy(all, after)
	refs := slices.Collect(maps.Keys(all))
	applyset.SortReferences(refs)
	return refs
}

// addChanges adds the different objects.
func (r *Report) addChanges(before, after []*unstructured.Object) {
	old := byReference(before)
	current := byReference(after)
	for _, ref := range sortedReferences(old, current) {
		was := old[ref]
		is := current[ref]
		if was != nil && is != nil && was.GetResourceVersion() == is.GetResourceVersion() && was.GetUID() == is.GetUID() {
			continue
		}
		switch {
		case ref.Kind.Kind == "Lease":
			r.Leases = append(r.Leases, ref.Namespace+"/"+ref.Name)
		case ref.Kind.Kind == "Event" && is != nil:
			r.Events = append(r.Events, eventOf(is))
		case ref.Kind.Kind == "Event":
		case isStatusOnly(was, is):
			r.Status = append(r.Status, plan.Compare(was, is))
		default:
			if change := plan.Compare(was, is); change.Action != plan.Unchanged {
				r.Changes = append(r.Changes, change)
			}
		}
	}
}

// isStatusOnly reports whether two states differ, and only in the status.
func isStatusOnly(before, after *unstructured.Object) bool {
	if before == nil || after == nil || before.GetUID() != after.GetUID() {
		return false
	}
	without := func(obj *unstructured.Object) map[string]any {
		fields := finalstate.Normalize(obj, nil)
		delete(fields, "status")
		return fields
	}
	return !reflect.DeepEqual(before.Object["status"], after.Object["status"]) && reflect.DeepEqual(without(before), without(after))
}

func eventOf(obj *unstructured.Object) Event {
	fields := obj.Object
	about := nested.Map(fields, "involvedObject")
	if about == nil {
		about = nested.Map(fields, "regarding") // of events.k8s.io
	}
	name := strings.Trim(nested.String(about, "namespace")+"/"+nested.String(about, "name"), "/")
	return Event{
		Object: nested.String(about, "kind") + " " + name, Type: nested.String(fields, "type"), Reason: nested.String(fields, "reason"),
		Message: cmp.Or(nested.String(fields, "message"), nested.String(fields, "note")),
	}
}

// addRequests adds the facts of requests: repeated writes, rejections and missing validation.
func (r *Report) addRequests(requests []apitest.Request) {
	writes := map[string]int{}
	failed := map[Failed]int{}
	var notValidated []string
	for _, request := range requests {
		resource := schema.GroupResource{Group: request.Group, Resource: request.Resource}.String()
		if request.Subresource != "" {
			resource += "/" + request.Subresource
		}
		if isWrite(request) && request.Name != "" {
			writes[resource+" "+strings.Trim(request.Namespace+"/"+request.Name, "/")]++
		}
		if request.Code >= 400 && request.Code != 404 && request.Code != 409 {
			failed[Failed{Request: request.Verb + " " + resource, Code: request.Code}]++
		}
		for _, text := range request.Warnings {
			if rest, found := strings.CutPrefix(text, "apitest: "); found {
				notValidated = append(notValidated, resource+": "+rest)
			}
		}
	}
	for object, count := range writes {
		if count > 1 {
			r.Repeated = append(r.Repeated, Repeated{object, count})
		}
	}
	slices.SortFunc(r.Repeated, func(a, b Repeated) int {
		if a.Writes != b.Writes {
			return b.Writes - a.Writes
		}
		return strings.Compare(a.Object, b.Object)
	})
	for request, count := range failed {
		request.Count = count
		r.Failed = append(r.Failed, request)
	}
	slices.SortFunc(r.Failed, func(a, b Failed) int {
		return strings.Compare(fmt.Sprint(a.Request, a.Code), fmt.Sprint(b.Request, b.Code))
	})
	slices.Sort(notValidated)
	r.NotValidated = slices.Compact(notValidated)
}

// Compare returns the different objects at the end of two rehearsals of the same copy, for example of two versions of an operator.
// Live is the object of the first, Planned the object of the second. Leases and Events are left out, and UIDs, times, generations and
// generated names are not compared.
func Compare(first, second *Report) []*plan.Change {
	before := byReference(withoutIncidental(first.final))
	after := byReference(withoutIncidental(second.final))
	oldUIDs := finalstate.UIDs(first.final)
	newUIDs := finalstate.UIDs(second.final)
	var changes []*plan.Change
	for _, ref := range sortedReferences(before, after) {
		was := before[ref]
		is := after[ref]
		if was != nil && is != nil && reflect.DeepEqual(finalstate.Normalize(was, oldUIDs), finalstate.Normalize(is, newUIDs)) {
			continue
		}
		change := plan.Compare(was, is)
		if change.Action == plan.Replace { // each run has its own UIDs
			change.Action = plan.Configure
		}
		changes = append(changes, change)
	}
	return changes
}

func withoutIncidental(objects []*unstructured.Object) []*unstructured.Object {
	return slices.DeleteFunc(slices.Clone(objects), isLeaseOrEvent)
}
