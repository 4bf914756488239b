package controller

import (
	"time"

	"github.com/anykind/anykind/unstructured"
)

// record is what a Lease says, https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/.
type record struct {
	holder      string
	duration    time.Duration
	acquired    string
	renewed     string
	transitions int64
}

func recordOf(lease *unstructured.Object) (r record, err error) {
	if r.holder, _, err = unstructured.Get[string](lease, "spec", "holderIdentity"); err != nil {
		return r, err
	}
	seconds, _, err := unstructured.Get[int64](lease, "spec", "leaseDurationSeconds")
	if err != nil {
		return r, err
	}
	r.duration = time.Duration(seconds) * time.Second
	if r.acquired, _, err = unstructured.Get[string](lease, "spec", "acquireTime"); err != nil {
		return r, err
	}
	if r.renewed, _, err = unstructured.Get[string](lease, "spec", "renewTime"); err != nil {
		return r, err
	}
	r.transitions, _, err = unstructured.Get[int64](lease, "spec", "leaseTransitions")
	return r, err
}

// with is a Lease that says r, and otherwise what lease says.
func (r record) with(lease *unstructured.Object) *unstructured.Object {
	changed := lease.DeepCopy()
	spec, _ := changed.Object["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
		changed.Object["spec"] = spec
	}
	spec["holderIdentity"] = r.holder
	spec["leaseDurationSeconds"] = int64(r.duration / time.Second)
	spec["acquireTime"], spec["renewTime"] = r.acquired, r.renewed
	spec["leaseTransitions"] = r.transitions
	return changed
}

func stamp(t time.Time) string { return t.UTC().Format(microTime) }
