package dynamic

import (
	"context"
	"slices"
	"time"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxDiscoveryLag bounds how long discovery may lag behind a definition's condition Established: some hundred milliseconds
// on one API server, several seconds where there are more.
const maxDiscoveryLag = 10 * time.Second

// awaitDiscovery waits until discovery has what an established CustomResourceDefinition defines, so that a kind can be
// looked up once a Wait for its definition has returned. Any other object needs no waiting, and neither does nil. That
// discovery lags longer, or fails, is the next lookup's to report.
func (r *Resource) awaitDiscovery(ctx context.Context, obj *unstructured.Object) {
	defined := r.definedBy(obj)
	if r.discovery == nil || len(defined) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxDiscoveryLag)
	defer cancel()
	snapshot, err := r.discovery.Snapshot(ctx)
	backoff := retry.Backoff{Min: 10 * time.Millisecond, Max: time.Second}
	for n := 1; err != nil || !servesAll(snapshot, defined); n++ {
		if n > 1 && backoff.Wait(ctx, n-1) != nil {
			return
		}
		if snapshot, err = r.discovery.Refresh(ctx); ctx.Err() != nil {
			return
		}
	}
}

// definedBy returns the served versions of an established definition, nil of what is none or is being deleted.
func (r *Resource) definedBy(obj *unstructured.Object) (defined []definedKind) {
	isDefinition := r.mapping.GVR.Group == "apiextensions.k8s.io" && r.mapping.GVR.Resource == "customresourcedefinitions"
	if !isDefinition || obj == nil || obj.GetDeletionTimestamp() != nil {
		return nil
	}
	if established := conditionOf(obj, "Established"); established["status"] != "True" {
		return nil
	}
	text := func(fields ...string) string {
		value, _, _ := unstructured.Get[string](obj, fields...) // the API server has checked the definition
		return value
	}
	group, plural, kind := text("spec", "group"), text("spec", "names", "plural"), text("spec", "names", "kind")
	versions, _, _ := unstructured.Get[[]any](obj, "spec", "versions")
	for _, version := range versions {
		version, _ := version.(map[string]any)
		if name, _ := version["name"].(string); version["served"] == true {
			gv := schema.GroupVersion{Group: group, Version: name}
			defined = append(defined, definedKind{gv.WithResource(plural), gv.WithKind(kind)})
		}
	}
	return defined
}

func servesAll(snapshot *discovery.Snapshot, defined []definedKind) bool {
	served := map[definedKind]bool{}
	for _, group := range snapshot.Groups {
		if group.Name != defined[0].resource.Group {
			continue
		}
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				served[definedKind{resource.GVR, resource.GVK}] = true
			}
		}
	}
	return !slices.ContainsFunc(defined, func(kind definedKind) bool { return !served[kind] })
}

// definedKind is one version of what a definition defines.
type definedKind struct {
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind
}
