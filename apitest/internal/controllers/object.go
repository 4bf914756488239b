package controllers

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

type object = store.Object

func copyOf(obj object) object   { return runtime.DeepCopyJSON(obj) }
func nameOf(obj object) string   { return nested.String(obj, "metadata", "name") }
func uidOf(obj object) string    { return nested.String(obj, "metadata", "uid") }
func isDeleting(obj object) bool { return nested.String(obj, "metadata", "deletionTimestamp") != "" }

func keyOf(resource *kinds.Resource, obj object) store.Key {
	return store.Key{Group: resource.Group, Resource: resource.Plural, Namespace: nested.String(obj, "metadata", "namespace"), Name: nameOf(obj)}
}

func finalizers(obj object) []string {
	items := nested.Slice(obj, "metadata", "finalizers")
	names := make([]string, 0, len(items))
	for _, item := range items {
		name, _ := item.(string)
		names = append(names, name)
	}
	return names
}

// owner is an owner reference.
type owner struct {
	apiVersion, kind, name, uid string
	controller, blocks          bool
}

func owners(obj object) []owner {
	var all []owner
	for _, ref := range nested.Maps(obj, "metadata", "ownerReferences") {
		all = append(all, owner{nested.String(ref, "apiVersion"), nested.String(ref, "kind"), nested.String(ref, "name"), nested.String(ref, "uid"), nested.Bool(ref, "controller"), nested.Bool(ref, "blockOwnerDeletion")})
	}
	return all
}

// resourceOf returns the resource of an owner, nil if its kind is not served.
func (c *Controller) resourceOf(ref owner) *kinds.Resource {
	gv, err := schema.ParseGroupVersion(ref.apiVersion)
	if err != nil {
		return nil
	}
	return c.Registry.OfKind(gv.WithKind(ref.kind))
}

// controllerOf returns the key of obj's controller.
func (c *Controller) controllerOf(obj object, namespace string) (store.Key, bool) {
	for _, ref := range owners(obj) {
		if !ref.controller {
			continue
		}
		if resource := c.resourceOf(ref); resource != nil {
			if !resource.Namespaced {
				namespace = ""
			}
			return store.Key{Group: resource.Group, Resource: resource.Plural, Namespace: namespace, Name: ref.name}, true
		}
	}
	return store.Key{}, false
}

// controlled returns the objects of a resource controlled by owner, sorted by name.
func (c *Controller) controlled(group, plural string, owner object) []object {
	all, _, err := c.Store.List(group, plural, nested.String(owner, "metadata", "namespace"), 0)
	if err != nil {
		return nil
	}
	var own []object
	for _, obj := range all {
		for _, ref := range owners(obj) {
			if ref.controller && ref.uid == uidOf(owner) {
				own = append(own, obj)
			}
		}
	}
	slices.SortFunc(own, func(a, b object) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return own
}

// controllerRef returns owner references with owner as the controller.
func controllerRef(owner object) []any {
	return []any{object{
		"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": nameOf(owner), "uid": uidOf(owner), "controller": true, "blockOwnerDeletion": true,
	}}
}

// templateHash returns a hash of a pod template for names and labels.
func templateHash(template object) string {
	content, _ := json.Marshal(template)
	sum := fnv.New32a()
	_, _ = sum.Write(content)
	return rand.SafeEncodeString(fmt.Sprint(sum.Sum32()))
}

// podFromTemplate returns a pod of the owner, without a name.
func podFromTemplate(owner, template object, labels map[string]string) object {
	copied := copyOf(template)
	metadata := nested.EnsureMap(copied, "metadata")
	metadata["ownerReferences"] = controllerRef(owner)
	for name, value := range labels {
		nested.EnsureMap(metadata, "labels")[name] = value
	}
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copied["spec"]}
}

// setCondition sets a condition in a list. lastTransitionTime changes with the status only.
func setCondition(status object, kind, value, reason, message, now string, updates bool) {
	conditions := nested.Slice(status, "conditions")
	next := object{"type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": now}
	if updates {
		next["lastUpdateTime"] = now
	}
	for i, one := range conditions {
		one, _ := one.(object)
		if nested.String(one, "type") != kind {
			continue
		}
		if nested.String(one, "status") == value {
			next["lastTransitionTime"] = one["lastTransitionTime"]
			if nested.String(one, "reason") == reason && nested.String(one, "message") == message {
				return
			}
		}
		conditions[i] = next
		return
	}
	status["conditions"] = append(conditions, next)
}

func isReady(pod object) bool {
	return nested.HasCondition(pod, "Ready") && !isDeleting(pod)
}

// isAvailable reports whether a pod has been ready for so many seconds, and the remaining time otherwise.
func (c *Controller) isAvailable(pod object, seconds int64) (available bool, wait time.Duration) {
	if !isReady(pod) {
		return false, 0
	}
	since, err := time.Parse(time.RFC3339, nested.String(nested.Condition(pod, "Ready"), "lastTransitionTime"))
	if seconds == 0 || err != nil {
		return true, 0
	}
	wait = since.Add(time.Duration(seconds) * time.Second).Sub(c.Now())
	return wait <= 0, wait
}

func isFinished(pod object) bool {
	phase := nested.String(pod, "status", "phase")
	return phase == "Succeeded" || phase == "Failed"
}

func (c *Controller) timestamp() string { return c.Now().UTC().Format(time.RFC3339) }
