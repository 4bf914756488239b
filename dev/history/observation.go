package history

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
)

// Kind is the kind of an observation.
type Kind uint8

// Kinds of observations.
const (
	Added          Kind = iota + 1 // a delivered change; Revision is the object's
	Modified                       // a delivered change
	Deleted                        // a delivered change; Revision is the deletion's
	DeletedUnknown                 // a delivered change, inferred; Revision is the last known revision
	Relist                         // a list begins: a stream has lost its place, or a cache starts
	Synced                         // the initial list is delivered
	Progress                       // all changes up to Revision are delivered
	Read                           // an object in a cache; Revision 0 if it is not there
	Wrote                          // an accepted write; Revision is the object's, 0 for a deletion of the object at Expected
	Awaited                        // a WaitForWrites without an error
	Evaluated                      // an object for which Wait called its condition
	Returned                       // the result of Wait; Revision 0 for a deletion
	Reconciled                     // from Begin to End
	Led                            // a write that a leader sent at Begin; Revision is the leader's token
	Get                            // a consistent read from the server; Revision 0 for a missing object
	Create                         // a creation on the server
	Update                         // an update at the revision Expected
	Delete                         // a deletion at the revision Expected
	Settled                        // all streams had delivered the state at Revision, or had the time for it
)

var kindNames = [...]string{
	"", "Added", "Modified", "Deleted", "DeletedUnknown", "Relist", "Synced", "Progress", "Read", "Wrote", "Awaited", "Evaluated", "Returned",
	"Reconciled", "Led", "Get", "Create", "Update", "Delete", "Settled",
}

func (k Kind) String() string { return kindNames[k] }

// Outcome is the outcome of a request.
type Outcome uint8

// Outcomes of a request. An unknown outcome is Accepted or Rejected.
const (
	Accepted Outcome = iota
	Rejected
	Unknown
)

// Role is the role of an observer. It selects the properties.
type Role uint8

// Roles of observers.
const (
	Follower  Role = iota // Follow, with OnProgress
	Consumer              // cache.Changes
	Operator              // a handler of an Operator
	Reader                // reads from a cache
	Snapshot              // reads of all objects in a cache before Settled
	Writer                // writes, WaitForWrites and reads from a cache
	Waiter                // Wait
	Client                // requests to the server
	Processes             // reconciles and leaders of all processes
)

// ID is an interned string. 0 is "".
type ID uint32

// Observation is something observed in a run. Times are nanoseconds since its start by the monotonic clock.
type Observation struct {
	Begin, End int64
	Revision   int64 // a resourceVersion
	Expected   int64 // the precondition of a write
	Key        ID    // the key in etcd
	UID        ID
	Observer   uint16 // in History.Observers
	Kind       Kind
	Outcome    Outcome
}

// Recorder collects observations in memory: 48 bytes each, and each string once. It is safe for concurrent use.
type Recorder struct {
	start time.Time

	mu        sync.Mutex
	ids       map[string]ID
	texts     []string
	observers []*Observer
	messages  []Message
	chunks    [][]Observation // full, except the last: a growing slice would be copied
	count     int
}

// chunkSize is the number of observations in a chunk, 400 kB.
const chunkSize = 8192

// NewRecorder returns an empty recorder.
func NewRecorder() *Recorder {
	return &Recorder{start: time.Now(), ids: map[string]ID{"": 0}, texts: []string{""}}
}

// Now returns the time since the start of the run.
func (r *Recorder) Now() int64 { return int64(time.Since(r.start)) }

func (r *Recorder) intern(text string) ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.internLocked(text)
}

func (r *Recorder) internLocked(text string) ID {
	id, found := r.ids[text]
	if !found {
		id = ID(len(r.texts))
		text = strings.Clone(text) // it may be a part of a response
		r.ids[text] = id
		r.texts = append(r.texts, text)
	}
	return id
}

// Observer is a sequential source of observations, unless its role is Processes.
type Observer struct {
	Name string
	Role Role
	// Scope is the prefix of the observed keys in etcd, such as /registry/configmaps/shop/.
	Scope string
	// Process is the process with recorded messages, or 0.
	Process uint8

	recorder *Recorder
	resource string
	index    uint16
}

// Observer returns a new observer of the objects of a resource in namespaces with a prefix. resource is the prefix of its keys in
// etcd, such as /registry/configmaps/.
func (r *Recorder) Observer(role Role, name, resource, namespaces string) *Observer {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := &Observer{Name: name, Role: role, Scope: resource + namespaces, resource: resource, recorder: r, index: uint16(len(r.observers))}
	r.observers = append(r.observers, o)
	return o
}

// Now is [Recorder.Now].
func (o *Observer) Now() int64 { return o.recorder.Now() }

// Note adds an observation of an object, namespace/name, or "" for none. Without End it ends now, without Begin it begins at its end.
func (o *Observer) Note(name string, uid types.UID, observed Observation) {
	r := o.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	if observed.End == 0 {
		observed.End = r.Now()
	}
	if observed.Begin == 0 {
		observed.Begin = observed.End
	}
	if name != "" {
		observed.Key = r.internLocked(o.resource + name)
		observed.UID = r.internLocked(string(uid))
	}
	observed.Observer = o.index
	if r.count%chunkSize == 0 {
		r.chunks = append(r.chunks, make([]Observation, 0, chunkSize))
	}
	last := &r.chunks[len(r.chunks)-1]
	*last = append(*last, observed)
	r.count++
}

// Object is the metadata of an observed object.
type Object interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
}

// Object adds an observation of an object at its resourceVersion.
func (o *Observer) Object(obj Object, observed Observation) {
	observed.Revision = Revision(obj.GetResourceVersion())
	o.Note(obj.GetNamespace()+"/"+obj.GetName(), obj.GetUID(), observed)
}

// Change adds an observation of a change by Follow, cache.Changes or an Operator.
func (o *Observer) Change(changeType watch.EventType, obj Object, isFinalStateUnknown bool) {
	switch {
	case changeType == watch.Added:
		o.Object(obj, Observation{Kind: Added})
	case changeType == watch.Modified:
		o.Object(obj, Observation{Kind: Modified})
	case changeType == watch.Deleted && isFinalStateUnknown:
		o.Object(obj, Observation{Kind: DeletedUnknown})
	case changeType == watch.Deleted:
		o.Object(obj, Observation{Kind: Deleted})
	case changeType == dynamic.Synced:
		o.Note("", "", Observation{Kind: Synced})
	}
}

// Revision returns a resourceVersion as a number, 0 for "".
func Revision(resourceVersion string) int64 {
	revision, _ := strconv.ParseInt(resourceVersion, 10, 64)
	return revision
}

// Count returns the number of observations.
func (r *Recorder) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

// History returns all observations so far, with etcd's epochs.
func (r *Recorder) History(epochs []*Epoch) *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &History{Epochs: epochs, Observers: r.observers, Messages: r.messages, texts: r.texts, Observations: make([]Observation, 0, r.count+1)}
	for _, chunk := range r.chunks {
		h.Observations = append(h.Observations, chunk...)
	}
	return h
}

func (h *History) describe(o *Observation) string {
	text := fmt.Sprintf("%s %s %s", seconds(o.Begin), h.Observers[o.Observer].Name, o.Kind)
	if o.End != o.Begin {
		text += fmt.Sprintf(" (until %s)", seconds(o.End))
	}
	if o.Key != 0 {
		text += " " + h.texts[o.Key]
	}
	if o.UID != 0 {
		text += " uid " + h.texts[o.UID]
	}
	if o.Expected != 0 {
		text += fmt.Sprintf(" at %d", o.Expected)
	}
	return text + fmt.Sprintf(" revision %d%s", o.Revision, [...]string{"", " rejected", " outcome unknown"}[o.Outcome])
}
