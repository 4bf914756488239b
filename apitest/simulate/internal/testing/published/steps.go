package published

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// on returns a step on the objects of a resource.
func on(resource, text string, do func(ctx context.Context, r *dynamic.Resource) error) broken.Step {
	return broken.Step{Name: text, Do: func(ctx context.Context, client *dynamic.Client) error {
		r, err := client.Resource(ctx, resource)
		if err != nil {
			return err
		}
		return do(ctx, r.Namespace(namespace))
	}}
}

func create(spec map[string]any) broken.Step {
	return on(clusters, "creates the Cluster", func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.Create(ctx, &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": spec}}, nil)
		return err
	})
}

func change(text, spec string) broken.Step {
	return on(clusters, text, func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":`+spec+`}`), nil)
		if apierrors.IsForbidden(err) { // by a webhook
			return nil
		}
		return err
	})
}

func scaleTo(replicas int) broken.Step {
	return change(fmt.Sprintf("scales the Cluster to %d", replicas), fmt.Sprintf(`{"replicas":%d}`, replicas))
}

func configure() broken.Step { return change("changes the config to 2", `{"config":"2"}`) }

// remove deletes the Cluster and waits for its end.
func remove() broken.Step {
	return on(clusters, "deletes the Cluster", func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.Delete(ctx, name, nil)
		if err == nil {
			_, err = r.Wait(ctx, name, dynamic.Deleted())
		}
		return err
	})
}

// await waits until an object exists.
func await(resource, object string) broken.Step {
	return on(resource, "waits for "+object, func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.Wait(ctx, object, dynamic.Exists())
		return err
	})
}

// storeRows writes data that nothing creates again, once the claim exists.
func storeRows(claim string) broken.Step {
	return on(claims, "stores rows in "+claim, func(ctx context.Context, r *dynamic.Resource) error {
		for {
			if _, err := r.Wait(ctx, claim, dynamic.Exists()); err != nil {
				return err
			}
			_, err := r.Patch(ctx, claim, types.MergePatchType, []byte(`{"metadata":{"annotations":{"rows":"42"}}}`), nil)
			if !apierrors.IsNotFound(err) {
				return err
			}
		}
	})
}

// awaitEnd waits for the end of a claim.
func awaitEnd(claim string) broken.Step {
	return on(claims, "waits for the end of "+claim, func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.Wait(ctx, claim, dynamic.Deleted())
		return err
	})
}

func isTerminating() dynamic.WaitCondition {
	return dynamic.Matches("is terminating", func(obj *unstructured.Object) (bool, error) { return obj.GetDeletionTimestamp() != nil, nil })
}

// endPod is the kubelet's part of the deletion of a pod.
func endPod(pod string) broken.Step {
	return on(pods, "ends "+pod+", as the kubelet does", func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.Wait(ctx, pod, isTerminating())
		if err == nil {
			_, err = r.Delete(ctx, pod, &metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		}
		return err
	})
}

// bindClaim is the binding of a claim by the controller of volumes.
func bindClaim(claim, storage string) broken.Step {
	return on(claims, "binds "+claim+", as the controller of volumes does", func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.Wait(ctx, claim, dynamic.Exists())
		if err == nil {
			_, err = r.Subresource("status").Patch(ctx, claim, types.MergePatchType, []byte(`{"status":{"phase":"Bound","capacity":{"storage":"`+storage+`"}}}`), nil)
		}
		return err
	})
}

// check returns an assertion about an object in the final state. holds gets nil if it does not exist.
func check(resource, object, text string, holds func(obj *unstructured.Object) bool) func(ctx context.Context, client *dynamic.Client) error {
	return on(resource, text, func(ctx context.Context, r *dynamic.Resource) error {
		obj, err := r.Get(ctx, object, nil)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if !holds(obj) {
			return fmt.Errorf("not so: %s", text)
		}
		return nil
	}).Do
}

// hasRows reports whether a claim has the data of the users .
func hasRows(claim *unstructured.Object) bool {
	return claim != nil && claim.GetAnnotations()["rows"] != ""
}

func isGone(obj *unstructured.Object) bool { return obj == nil }
