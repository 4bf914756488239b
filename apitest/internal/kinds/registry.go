// Package kinds has the resources served by an API server: the built-in resources of a Kubernetes version, recorded from a real
// server, and the resources of CustomResourceDefinitions. It serves discovery and OpenAPI requests.
//
// A Registry publishes immutable snapshots. A change drops the snapshot, and the next reader builds a new snapshot. Defining a
// hundred kinds in a row therefore builds a single snapshot. Recorded data is decoded at first use and shared by all registries
// of the process.
package kinds

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/structural"
)

// Registry has the resources served by a server: the built-in resources and those of its CustomResourceDefinitions. It is safe
// for concurrent use.
type Registry struct {
	rules   structural.RuleCompiler
	current atomic.Pointer[snapshot] // nil after a change

	mu          sync.Mutex
	definitions map[string][]*Resource // CRD name to its served versions
	changed     chan struct{}          // closed at the next change
}

// New returns a Registry of the built-in resources. rules compiles the CEL rules of definitions; nil evaluates none.
func New(rules structural.RuleCompiler) *Registry {
	return &Registry{rules: rules, definitions: map[string][]*Resource{}, changed: make(chan struct{})}
}

// Rules returns the compiler of CEL rules, or nil.
func (r *Registry) Rules() structural.RuleCompiler { return r.rules }

// Lookup returns a served version of a resource, or nil.
func (r *Registry) Lookup(group, version, plural string) *Resource {
	return r.snapshot().lookup(schema.GroupVersionResource{Group: group, Version: version, Resource: plural})
}

// OfKind returns the resource with objects of a kind, or nil. Kinds of requests, such as Scale, have no resource.
func (r *Registry) OfKind(kind schema.GroupVersionKind) *Resource {
	return r.snapshot().ofKind(kind)
}

// Resources returns all served versions of all resources, in the order of discovery.
func (r *Registry) Resources() []*Resource {
	return slices.Clone(r.snapshot().resources)
}

// Versions returns the served versions of a resource, the preferred version first.
func (r *Registry) Versions(group, plural string) []*Resource {
	var versions []*Resource
	for _, v := range r.snapshot().versions(group) {
		if resource := r.Lookup(group, v, plural); resource != nil {
			versions = append(versions, resource)
		}
	}
	return versions
}

// SetDefinition adds or replaces the resources of a CustomResourceDefinition of apiextensions.k8s.io/v1. It must be validated and
// defaulted. The caller must not modify it later.
func (r *Registry) SetDefinition(definition map[string]any) error { return r.set(definition, false) }

// SetUntyped is [Registry.SetDefinition] for a resource whose schema is not known.
func (r *Registry) SetUntyped(definition map[string]any) error { return r.set(definition, true) }

func (r *Registry) set(definition map[string]any, isUntyped bool) error {
	resources, err := resourcesOf(definition, r.rules)
	if err != nil {
		return err
	}
	for _, resource := range resources {
		resource.IsUntyped = isUntyped
	}
	name := nested.String(definition, "metadata", "name")
	if len(resources) > 0 && builtinSnapshot().serves(resources[0].GroupResource()) {
		return fmt.Errorf("define %s: the resource is built in", name)
	}
	r.change(func() { r.definitions[name] = resources })
	return nil
}

// RemoveDefinition removes the resources of the CustomResourceDefinition with the name.
func (r *Registry) RemoveDefinition(name string) {
	r.change(func() { delete(r.definitions, name) })
}

func (r *Registry) change(apply func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	apply()
	r.current.Store(nil)
	close(r.changed)
	r.changed = make(chan struct{})
}

// Changed returns a channel that is closed by the next SetDefinition or RemoveDefinition.
func (r *Registry) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

func (r *Registry) snapshot() *snapshot {
	if s := r.current.Load(); s != nil {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.current.Load(); s != nil {
		return s
	}
	s := builtinSnapshot()
	if len(r.definitions) > 0 {
		s = newSnapshot(s, r.definitions)
	}
	r.current.Store(s)
	return s
}
