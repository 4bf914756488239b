package dynamic

import (
	"context"
	"strconv"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Scale sets how many replicas an object of a scalable kind shall have, and returns its Scale as the server stored it:
// spec.replicas is what is wanted, status.replicas what there is. It writes through the subresource scale, so it works
// for Deployments as for any custom kind that has one; other kinds are refused. See
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#scale-subresource.
func (r *Resource) Scale(ctx context.Context, name string, replicas int64, opts *metav1.PatchOptions) (*unstructured.Object, error) {
	patch := `{"spec":{"replicas":` + strconv.FormatInt(replicas, 10) + `}}`
	return r.Sub("scale").Patch(ctx, name, types.MergePatchType, []byte(patch), opts)
}
