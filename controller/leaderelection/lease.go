package leaderelection

import (
	"time"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// record is the spec of a Lease, https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/.
type record struct {
	Holder          string `json:"holderIdentity"`
	DurationSeconds int64  `json:"leaseDurationSeconds"`
	Acquired        string `json:"acquireTime"`
	Renewed         string `json:"renewTime"`
	Transitions     int64  `json:"leaseTransitions"`
}

func recordOf(lease *unstructured.Object) (record, error) {
	decoded, err := unstructured.As[struct {
		Spec record `json:"spec"`
	}](lease)
	if err != nil {
		return record{}, err
	}
	return decoded.Spec, nil
}

// applyTo returns a copy of a Lease with the record's fields.
func (r record) applyTo(lease *unstructured.Object) *unstructured.Object {
	changed := lease.DeepCopy()
	spec, _ := changed.Object["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
		changed.Object["spec"] = spec
	}
	spec["holderIdentity"], spec["leaseDurationSeconds"] = r.Holder, r.DurationSeconds
	spec["acquireTime"], spec["renewTime"] = r.Acquired, r.Renewed
	spec["leaseTransitions"] = r.Transitions
	return changed
}

func timestamp(t time.Time) string { return t.UTC().Format(metav1.RFC3339Micro) }
