package dynamic_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// kubectlNames returns what kubectl get lists of a resource in all namespaces, sorted as it prints it.
func kubectlNames(t *testing.T, resource, selector string) []string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), cluster.Kubectl(t), "--kubeconfig", cluster.Kubeconfig(t), "get", resource, "-A", "-l", selector,
		"-o", `jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{"\n"}{end}`).Output()
	require.NoError(t, err)
	return strings.Fields(string(output))
}

// TestResource_ForEachOnSandbox changes, labels and deletes a selection in two namespaces, of a built-in and a custom kind.
func TestResource_ForEachOnSandbox(t *testing.T) {
	client, one := newNamespace(t)
	_, two := newNamespace(t)
	for kind, of := range map[string]*dynamic.Resource{"configmaps": resource(t, client, "cm"), "widgets": sharedWidgets(t, client, one)} {
		t.Run(kind, func(t *testing.T) {
			full := of.APIResource().GVR.Resource + "." + of.APIResource().GVR.Group
			selected := "run=" + one
			labelled := "run=" + one + ",done=yes"
			var names []string
			for i := range 60 {
				name := fmt.Sprintf("o%02d", i)
				namespace := []string{one, two}[i%2]
				run := one
				if i%3 == 0 {
					run = "other"
				} else {
					names = append(names, namespace+"/"+name)
				}
				_, err := of.Namespace(namespace).Create(t.Context(), &unstructured.Object{Object: map[string]any{
					"metadata": map[string]any{"name": name, "labels": map[string]any{"run": run}},
				}}, nil)
				require.NoError(t, err)
			}
			list := &metav1.ListOptions{LabelSelector: selected, Limit: 7}
			var progress atomic.Int32
			opts := &dynamic.ForEachOptions{OnProgress: func(p dynamic.ForEachProgress) { progress.Store(int32(p.Done)) }}
			label := func(ctx context.Context, in *dynamic.Resource, obj *unstructured.Object) error {
				_, err := in.Patch(ctx, obj.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"done":"yes"}}}`), nil)
				return err
			}
			require.NoError(t, of.AllNamespaces().Metadata().ForEach(t.Context(), list, opts, label))
			assert.EqualValues(t, len(names), progress.Load())
			assert.ElementsMatch(t, names, kubectlNames(t, full, labelled))
			assert.Len(t, kubectlNames(t, full, "run=other"), 20)
			assert.Empty(t, kubectlNames(t, full, "run=other,done=yes"))

			// Objects that have changed since they were listed fail alone.
			stale := func(ctx context.Context, in *dynamic.Resource, obj *unstructured.Object) error {
				if obj.GetName() == "o01" || obj.GetName() == "o02" {
					if err := label(ctx, in, obj); err != nil {
						return err
					}
					if _, err := in.Patch(ctx, obj.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"more":"yes"}}}`), nil); err != nil {
						return err
					}
				}
				obj.SetLabels(map[string]string{"run": one, "done": "no"})
				_, err := in.Update(ctx, obj, nil)
				return err
			}
			err := of.AllNamespaces().ForEach(t.Context(), list, nil, stale)
			require.True(t, apierrors.IsConflict(err), "%v", err)
			joined, ok := err.(interface{ Unwrap() []error })
			require.True(t, ok)
			var failed []string
			for _, err := range joined.Unwrap() {
				var object *dynamic.ObjectError
				require.ErrorAs(t, err, &object)
				require.True(t, apierrors.IsConflict(object), "%v", object)
				failed = append(failed, object.Key.String())
			}
			assert.ElementsMatch(t, []string{two + "/o01", one + "/o02"}, failed)
			assert.ElementsMatch(t, failed, kubectlNames(t, full, labelled))
			assert.Len(t, kubectlNames(t, full, "run="+one+",done=no"), len(names)-2)

			require.NoError(t, of.Namespace(one).ForEach(t.Context(), list, nil, func(ctx context.Context, in *dynamic.Resource, obj *unstructured.Object) error {
				_, err := in.Delete(ctx, obj.GetName(), &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(obj.GetUID())}})
				return err
			}))
			for _, left := range kubectlNames(t, full, selected) {
				assert.True(t, strings.HasPrefix(left, two+"/"), left)
			}
			assert.Len(t, kubectlNames(t, full, selected), 20)
		})
	}
}
