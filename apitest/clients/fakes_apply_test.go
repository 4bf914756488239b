package clients_test

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func (w world) untyped(name string, data map[string]any) *unstructuredv1.Unstructured {
	return &unstructuredv1.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": w.namespace}, "data": data,
	}}
}

// createUntyped creates a config map without its Go type.
func (w world) createUntyped(ctx context.Context, name string) error {
	obj := w.untyped(name, map[string]any{"created": "true"})
	if w.runtime != nil {
		return w.runtime.Create(ctx, obj)
	}
	_, err := w.dynamic.Resource(configMaps).Namespace(w.namespace).Create(ctx, obj, metav1.CreateOptions{})
	return err
}

// apply applies a config map without its Go type, and returns its data.
func (w world) apply(ctx context.Context, manager, name string, data map[string]any) (map[string]string, error) {
	obj := w.untyped(name, data)
	applied := obj
	var err error
	if w.runtime != nil {
		err = w.runtime.Apply(ctx, runtimeclient.ApplyConfigurationFromUnstructured(obj), runtimeclient.FieldOwner(manager))
	} else {
		applied, err = w.dynamic.Resource(configMaps).Namespace(w.namespace).Apply(ctx, name, obj, metav1.ApplyOptions{FieldManager: manager})
	}
	if err != nil {
		return nil, err
	}
	stored, _, err := unstructuredv1.NestedStringMap(applied.Object, "data")
	return stored, err
}

// applyDeployment applies a deployment, or its status alone, and returns it.
func (w world) applyDeployment(ctx context.Context, obj *appsapply.DeploymentApplyConfiguration, statusAlone bool) error {
	const manager = "applier"
	opts := metav1.ApplyOptions{FieldManager: manager}
	var err error
	switch deployments := w.clientGo; {
	case w.runtime != nil && statusAlone:
		err = w.runtime.Status().Apply(ctx, obj, runtimeclient.FieldOwner(manager))
	case w.runtime != nil:
		err = w.runtime.Apply(ctx, obj, runtimeclient.FieldOwner(manager))
	case statusAlone:
		_, err = deployments.AppsV1().Deployments(w.namespace).ApplyStatus(ctx, obj, opts)
	default:
		_, err = deployments.AppsV1().Deployments(w.namespace).Apply(ctx, obj, opts)
	}
	return err
}

// replicas returns what a deployment's spec says, or "none".
func (w world) replicas(ctx context.Context, name string) string {
	obj := w.web(name)
	var err error
	if w.runtime != nil {
		err = w.runtime.Get(ctx, runtimeclient.ObjectKeyFromObject(obj), obj)
	} else {
		obj, err = w.clientGo.AppsV1().Deployments(w.namespace).Get(ctx, name, metav1.GetOptions{})
	}
	if err == nil && obj.Spec.Replicas == nil {
		return "none"
	}
	if err != nil {
		return outcome(err, "")
	}
	return outcome(nil, *obj.Spec.Replicas)
}

// applyLies are those of server-side apply and of clients without Go types.
func applyLies() []lie {
	return []lie{
		{"an apply of an object that is not there, without Go types", "1", "NotFound", "1", func(ctx context.Context, w world, _ time.Duration) string {
			stored, err := w.apply(ctx, "first", "new", map[string]any{"a": "1"})
			return outcome(err, stored["a"])
		}},
		{"an apply of a field that another manager applied, without Go types", "Conflict", "error", "Conflict", func(ctx context.Context, w world, _ time.Duration) string {
			if err := w.createUntyped(ctx, "contested"); err != nil {
				return err.Error()
			}
			if _, err := w.apply(ctx, "first", "contested", map[string]any{"a": "1"}); err != nil {
				return outcome(err, "")
			}
			_, err := w.apply(ctx, "second", "contested", map[string]any{"a": "2"})
			return outcome(err, "stored")
		}},
		{"an apply without a field that the same manager applied before, without Go types", "removed", "error", "removed", func(ctx context.Context, w world, _ time.Duration) string {
			if err := w.createUntyped(ctx, "given-up"); err != nil {
				return err.Error()
			}
			if _, err := w.apply(ctx, "first", "given-up", map[string]any{"a": "1", "b": "2"}); err != nil {
				return outcome(err, "")
			}
			stored, err := w.apply(ctx, "first", "given-up", map[string]any{"a": "1"})
			return outcome(err, map[bool]string{true: "stays", false: "removed"}[stored["b"] != ""])
		}},
		{"an apply of the status by the manager that applied the spec", "2", "none", "2", func(ctx context.Context, w world, _ time.Duration) string {
			labels := map[string]string{"app": "web"}
			pods := coreapply.PodTemplateSpec().WithLabels(labels).WithSpec(coreapply.PodSpec().WithContainers(coreapply.Container().WithName("web").WithImage("nginx")))
			spec := appsapply.DeploymentSpec().WithReplicas(2).WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).WithTemplate(pods)
			if err := w.applyDeployment(ctx, appsapply.Deployment("applied", w.namespace).WithSpec(spec), false); err != nil {
				return err.Error()
			}
			status := appsapply.DeploymentStatus().WithObservedGeneration(1)
			if err := w.applyDeployment(ctx, appsapply.Deployment("applied", w.namespace).WithStatus(status), true); err != nil {
				return err.Error()
			}
			return w.replicas(ctx, "applied")
		}},
		{"a list of a kind that the client was not told of", "listed", "panic", "listed", func(ctx context.Context, w world, _ time.Duration) (said string) {
			defer func() {
				if recover() != nil {
					said = "panic"
				}
			}()
			leases := &unstructuredv1.UnstructuredList{}
			leases.SetGroupVersionKind(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "LeaseList"})
			var err error
			if w.runtime != nil {
				err = w.runtime.List(ctx, leases, runtimeclient.InNamespace(w.namespace))
			} else {
				_, err = w.dynamic.Resource(leases.GroupVersionKind().GroupVersion().WithResource("leases")).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
			}
			return outcome(err, "listed")
		}},
	}
}
