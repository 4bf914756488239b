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
	"github.com/anykind/anykind/apitest/internal/store"
)

type object = store.Object

func child(obj object, path ...string) object {
	for _, name := range path {
		obj, _ = obj[name].(object)
	}
	return obj
}

func text(obj object, name string) string  { s, _ := obj[name].(string); return s }
func number(obj object, name string) int64 { n, _ := obj[name].(int64); return n }
func truth(obj object, name string) bool   { b, _ := obj[name].(bool); return b }

func objects(obj object, name string) []object {
	items, _ := obj[name].([]any)
	out := make([]object, 0, len(items))
	for _, item := range items {
		if item, ok := item.(object); ok {
			out = append(out, item)
		}
	}
	return out
}

// ensure returns the object in a field, and creates it if it is missing.
func ensure(obj object, name string) object {
	existing, ok := obj[name].(object)
	if !ok {
		existing = object{}
		obj[name] = existing
	}
	return existing
}

func copyOf(obj object) object   { return runtime.DeepCopyJSON(obj) }
func nameOf(obj object) string   { return text(child(obj, "metadata"), "name") }
func uidOf(obj object) string    { return text(child(obj, "metadata"), "uid") }
func isDeleting(obj object) bool { return text(child(obj, "metadata"), "deletionTimestamp") != "" }

func keyOf(resource *kinds.Resource, obj object) store.Key {
	return store.Key{Group: resource.Group, Resource: resource.Plural, Namespace: text(child(obj, "metadata"), "namespace"), Name: nameOf(obj)}
}

func finalizers(obj object) []string {
	items, _ := child(obj, "metadata")["finalizers"].([]any)
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
	for _, ref := range objects(child(obj, "metadata"), "ownerReferences") {
		all = append(all, owner{text(ref, "apiVersion"), text(ref, "kind"), text(ref, "name"), text(ref, "uid"), truth(ref, "controller"), truth(ref, "blockOwnerDeletion")})
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
	all, _, err := c.Store.List(group, plural, text(child(owner, "metadata"), "namespace"), 0)
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
	metadata := ensure(copied, "metadata")
	metadata["ownerReferences"] = controllerRef(owner)
	for name, value := range labels {
		ensure(metadata, "labels")[name] = value
	}
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copied["spec"]}
}

func condition(obj object, kind string) object {
	for _, one := range objects(child(obj, "status"), "conditions") {
		if text(one, "type") == kind {
			return one
		}
	}
	return nil
}

// setCondition sets a condition in a list. lastTransitionTime changes with the status only.
func setCondition(status object, kind, value, reason, message, now string, updates bool) {
	conditions, _ := status["conditions"].([]any)
	next := object{"type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": now}
	if updates {
		next["lastUpdateTime"] = now
	}
	for i, one := range conditions {
		one, _ := one.(object)
		if text(one, "type") != kind {
			continue
		}
		if text(one, "status") == value {
			next["lastTransitionTime"] = one["lastTransitionTime"]
			if text(one, "reason") == reason && text(one, "message") == message {
				return
			}
		}
		conditions[i] = next
		return
	}
	status["conditions"] = append(conditions, next)
}

func isReady(pod object) bool {
	return text(condition(pod, "Ready"), "status") == "True" && !isDeleting(pod)
}

// isAvailable reports whether a pod has been ready for so many seconds, and the remaining time otherwise.
func (c *Controller) isAvailable(pod object, seconds int64) (available bool, wait time.Duration) {
	if !isReady(pod) {
		return false, 0
	}
	since, err := time.Parse(time.RFC3339, text(condition(pod, "Ready"), "lastTransitionTime"))
	if seconds == 0 || err != nil {
		return true, 0
	}
	wait = since.Add(time.Duration(seconds) * time.Second).Sub(c.Now())
	return wait <= 0, wait
}

func isFinished(pod object) bool {
	phase := text(child(pod, "status"), "phase")
	return phase == "Succeeded" || phase == "Failed"
}

func (c *Controller) timestamp() string { return c.Now().UTC().Format(time.RFC3339) }
