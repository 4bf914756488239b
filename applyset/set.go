package applyset

import (
	"cmp"
	"fmt"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

// Set is a set of objects with a parent. It holds no state of the cluster and is safe for concurrent use.
type Set struct {
	client *dynamic.Client
	parent Parent
	id     string
	opts   Options
	// tooling is written to the parent during a handover, "" otherwise.
	tooling string
}

// Options configure a [Set].
type Options struct {
	// Namespace is the namespace of namespaced objects that name none. The default is the parent's namespace, or else the
	// namespace of the client's config.
	Namespace string
	// Workers is the number of concurrent requests. 0 means 10.
	Workers int
	// Rules are readiness rules for kinds of their own, as of dynamic.Ready.
	Rules []readiness.Rule
	// LockDuration is the time after which the lock of this process expires if the process ends. 0 means 15 seconds.
	LockDuration time.Duration
	// Holder names the process in the lock, for the errors of other runs. The default is the host's name and the process ID.
	Holder string
}

const (
	defaultWorkers      = 10
	defaultLockDuration = 15 * time.Second
)

// New returns the set of a parent. It sends no request.
func New(client *dynamic.Client, parent Parent, opts *Options) *Set {
	configNamespace := client.ForAPIResource(nil).Conn().Namespace()
	if parent.isBuiltin() {
		parent.Namespace = cmp.Or(parent.Namespace, configNamespace)
	}
	set := &Set{parent: parent, id: parent.ID(), opts: valueOf(opts)}
	if set.opts.Workers <= 0 {
		set.opts.Workers = defaultWorkers
	}
	if set.opts.LockDuration <= 0 {
		set.opts.LockDuration = defaultLockDuration
	}
	if set.opts.Holder == "" {
		set.opts.Holder = defaultHolder()
	}
	if set.opts.Namespace == "" {
		set.opts.Namespace = cmp.Or(parent.Namespace, configNamespace)
	}
	set.client = client.WithDefaults(&dynamic.Defaults{FieldManager: set.FieldManager(), Namespace: set.opts.Namespace})
	return set
}

// Parent returns the parent, with its namespace.
func (s *Set) Parent() Parent { return s.parent }

const maxFieldManager = 128

// FieldManager returns the field manager of the set: "applyset/NAME.NAMESPACE.KIND.GROUP", or "applyset/ID" if that is longer than
// 128 characters.
func (s *Set) FieldManager() string {
	manager := "applyset/" + s.parent.key()
	if len(manager) > maxFieldManager {
		return "applyset/" + s.id
	}
	return manager
}

// Reference names an object without its version.
type Reference struct {
	Kind schema.GroupKind
	// Namespace is empty for a cluster-scoped object.
	Namespace, Name string
}

// String returns kind, namespace and name: Deployment.apps "shop/web".
func (r Reference) String() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %q", r.Kind, name)
}

// ReferenceTo returns the reference to an object.
func ReferenceTo(obj *unstructured.Object) Reference {
	return Reference{Kind: obj.GroupVersionKind().GroupKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// MarshalText returns kind, namespace and name: Deployment.apps shop/web.
func (r Reference) MarshalText() ([]byte, error) {
	return []byte(r.Kind.String() + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")), nil
}

// UnmarshalText parses the form of MarshalText.
func (r *Reference) UnmarshalText(text []byte) error {
	kind, name, isReference := strings.Cut(string(text), " ")
	if !isReference {
		return fmt.Errorf("reference %q: the name is missing (want KIND.GROUP NAMESPACE/NAME)", text)
	}
	*r = Reference{Kind: schema.ParseGroupKind(kind), Name: name}
	if namespace, own, isNamespaced := strings.Cut(name, "/"); isNamespaced {
		r.Namespace = namespace
		r.Name = own
	}
	return nil
}

func (r Reference) compare(other Reference) int {
	return strings.Compare(r.String(), other.String())
}

// SortReferences sorts by kind, namespace and name, in their text.
func SortReferences(refs []Reference) {
	sort.Slice(refs, func(i, j int) bool { return refs[i].compare(refs[j]) < 0 }) // slices.SortFunc adds 20 kB to programs for each struct
}

// Action is the outcome for an object.
type Action string

// Actions of [Set.Apply] and [Set.Delete].
const (
	// Created and Configured objects were applied. In a dry run they would be.
	Created    Action = "created"
	Configured Action = "configured"
	// Unchanged objects needed no request, or the server changed nothing.
	Unchanged Action = "unchanged"
	// Pruned objects were deleted, or their deletion had begun before. They may still be terminating.
	Pruned Action = "pruned"
	// Kept objects left the set and still exist: Event.Reason says why.
	Kept Action = "kept"
	// NotChecked objects cannot be checked in a dry run: Event.Reason says why.
	NotChecked Action = "not checked"
	// Failed objects have Event.Err.
	Failed Action = "failed"
)

// Event is the outcome for an object.
type Event struct {
	Object Reference
	Action Action
	// Reason explains Kept and NotChecked, and lists fields that [ConflictSkip] left out.
	Reason string
	// Err is an [*ObjectError], of Failed.
	Err error
	// Live is the object after the action, or its last known state if it was deleted. It is nil with NotChecked and Failed. It is
	// shared with the caller of Apply and read-only.
	Live *unstructured.Object
}

// ObjectError is the error of a single object. It unwraps to its cause.
type ObjectError struct {
	Object Reference
	// Position is the object's position in the manifest, if it has one: "web.yaml: document 3, line 41".
	Position string
	Err      error
}

func (e *ObjectError) Error() string {
	text := fmt.Sprintf("%s: %v", e.Object, e.Err)
	if e.Position != "" {
		text = e.Position + ": " + text
	}
	return text
}

// Unwrap returns Err.
func (e *ObjectError) Unwrap() error { return e.Err }

// ToolingError reports that the parent belongs to a different tool. [Set.Adopt] takes the set over.
type ToolingError struct {
	Parent Parent
	// Tooling is the tool with its version: "kubectl/v1.36.3".
	Tooling string
}

func (e *ToolingError) Error() string {
	return fmt.Sprintf("the parent %s is managed by tooling %q (call Adopt to take the set over)", e.Parent, e.Tooling)
}

// OwnedError reports that an object is a member of a different set.
type OwnedError struct {
	// ID is the ID of that set, and Manager the field manager of its label. Manager is empty if it is not known.
	ID, Manager string
}

func (e *OwnedError) Error() string {
	text := fmt.Sprintf("it belongs to the set %q", e.ID)
	if e.Manager != "" {
		text += fmt.Sprintf(" of manager %q", e.Manager)
	}
	return text + " (remove it from one of the sets)"
}
