package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

func (c *Controller) reconcileNamespace(ctx context.Context, key store.Key, namespace object) error {
	if isDeleting(namespace) {
		if c.Namespaces {
			return c.empty(ctx, key, namespace)
		}
		return nil
	}
	if !c.ServiceAccounts {
		return nil
	}
	account := store.Key{Resource: "serviceaccounts", Namespace: key.Name, Name: "default"}
	if _, found := c.Store.Get(account); !found {
		obj := object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": "default", "namespace": key.Name}}
		if err := c.create(ctx, account, obj); err != nil {
			return err
		}
	}
	authority := store.Key{Resource: "configmaps", Namespace: key.Name, Name: "kube-root-ca.crt"}
	if _, found := c.Store.Get(authority); found {
		return nil
	}
	return c.create(ctx, authority, object{
		"apiVersion": "v1", "kind": "ConfigMap", "data": object{"ca.crt": string(c.Certificate)},
		"metadata": object{"name": "kube-root-ca.crt", "namespace": key.Name, "annotations": object{
			"kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. " +
				"No other usage is guaranteed across distributions of Kubernetes clusters.",
		}},
	})
}

// empty deletes the objects of a terminating namespace, and then removes its finalizer.
func (c *Controller) empty(ctx context.Context, key store.Key, namespace object) error {
	remaining, waiting, err := c.deleteContent(ctx, key.Name)
	if err != nil {
		return err
	}
	changed := copyOf(namespace)
	c.reportRemaining(nested.EnsureMap(changed, "status"), remaining, waiting)
	if err := c.update(ctx, key, "status", changed, namespace); err != nil {
		return err
	}
	if len(remaining) > 0 {
		return nil // each deletion queues the namespace again
	}
	current, found := c.Store.Get(key)
	if !found {
		return nil
	}
	finished := copyOf(current)
	spec := nested.EnsureMap(finished, "spec")
	if names, ok := spec["finalizers"].([]any); ok {
		spec["finalizers"] = slices.DeleteFunc(names, func(name any) bool { return name == "kubernetes" })
	}
	return c.update(ctx, key, "finalize", finished, current)
}

// deleteContent deletes the objects of a namespace. It returns the number of remaining objects by resource and by finalizer.
func (c *Controller) deleteContent(ctx context.Context, namespace string) (remaining, waiting map[string]int, err error) {
	remaining = map[string]int{}
	waiting = map[string]int{}
	seen := map[string]bool{}
	for _, resource := range c.Registry.Resources() {
		name := resource.Plural + "." + resource.Group
		if !resource.Namespaced || seen[name] {
			continue
		}
		seen[name] = true
		all, _, err := c.Store.List(resource.Group, resource.Plural, namespace, 0)
		if err != nil {
			return nil, nil, err
		}
		for _, obj := range all {
			key := keyOf(resource, obj)
			if !isDeleting(obj) {
				if err := c.delete(ctx, key, uidOf(obj), object{"propagationPolicy": "Background"}); err != nil {
					return nil, nil, err
				}
			}
			left, found := c.Store.Get(key)
			if !found {
				continue
			}
			remaining[name]++
			for _, finalizer := range finalizers(left) {
				waiting[finalizer]++
			}
		}
	}
	return remaining, waiting, nil
}

// reportRemaining sets the conditions of a terminating namespace.
func (c *Controller) reportRemaining(status object, remaining, waiting map[string]int) {
	now := c.timestamp()
	setCondition(status, "NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered", now, false)
	setCondition(status, "NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions", "All legacy kube types successfully parsed", now, false)
	setCondition(status, "NamespaceDeletionContentFailure", "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization", now, false)
	if len(remaining) == 0 {
		setCondition(status, "NamespaceContentRemaining", "False", "ContentRemoved", "All content successfully removed", now, false)
	} else {
		setCondition(status, "NamespaceContentRemaining", "True", "SomeResourcesRemain",
			"Some resources are remaining: "+enumerate(remaining, "%s has %d resource instances"), now, false)
	}
	if len(waiting) == 0 {
		setCondition(status, "NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", "All content-preserving finalizers finished", now, false)
	} else {
		setCondition(status, "NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain",
			"Some content in the namespace has finalizers remaining: "+enumerate(waiting, "%s in %d resource instances"), now, false)
	}
}

func enumerate(counts map[string]int, format string) string {
	var parts []string
	for name, count := range counts {
		parts = append(parts, fmt.Sprintf(format, name, count))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
