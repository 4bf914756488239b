package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

const tenants = "tenants.example.com"

// tenantDefinition returns the definition of Tenants with the versions v1 and v2.
func tenantDefinition(v1, v2, isV2Stored bool) *unstructured.Object {
	version := func(name string, served, storage bool) any {
		fields := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		return map[string]any{
			"name": name, "served": served, "storage": storage, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": fields, "status": fields}}},
		}
	}
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": tenants},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": "tenants", "singular": "tenant", "kind": "Tenant", "listKind": "TenantList"},
			"versions": []any{version("v1", v1, !isV2Stored), version("v2", v2, isV2Stored)},
		},
	}}
}

func tenant(n, generation int) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Tenant", "metadata": map[string]any{"name": fmt.Sprint("t", n), "namespace": "default"},
		"spec": map[string]any{"size": fmt.Sprint(generation)},
	}}
}

// tenantController keeps a ConfigMap with the size of each Tenant, and a status.
type tenantController struct {
	tenants, configMaps *dynamic.Resource
	objects, owned      *cache.Cache[unstructured.Object]
}

// runTenants runs the controller until ctx ends or the version of its handle is not served any more.
func runTenants(ctx context.Context, p *Process) error {
	objects, err := p.Client.Resource(ctx, tenants)
	if err != nil {
		return err
	}
	configMaps, err := p.Client.Resource(ctx, "configmaps")
	if err != nil {
		return err
	}
	c := &tenantController{tenants: objects.Namespace("default"), configMaps: configMaps.Namespace("default")}
	c.objects = cache.New(c.tenants, (*cache.Options[unstructured.Object])(nil))
	c.owned = cache.New(c.configMaps, &cache.Options[unstructured.Object]{LabelSelector: "app=tenants"})
	opts := &controller.Options{Logger: slog.New(slog.DiscardHandler), Workers: 4, Triggers: []controller.Trigger{controller.Owns(c.owned, c.tenants)}}
	return broken.RunWith(ctx, func(ctx context.Context) error {
		ctx, stop := context.WithCancelCause(ctx)
		watching := make(chan struct{})
		go func() {
			defer close(watching)
			for change := range c.objects.Changes(ctx) {
				if change.Type == dynamic.NotServed {
					stop(errors.New("the version is not served any more"))
				}
			}
		}()
		err := controller.Run(ctx, c.objects, c.reconcile, opts)
		cause := context.Cause(ctx)
		stop(nil)
		<-watching
		return errors.Join(err, cause)
	}, c.objects, c.owned)
}

func (c *tenantController) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	obj, found := c.objects.Get(key.Namespace, key.Name)
	if !found || obj.GetDeletionTimestamp() != nil {
		return 0, nil
	}
	size, _, err := unstructured.Get[string](obj, "spec", "size")
	if err != nil {
		return 0, err
	}
	if owned, found := c.owned.Get(key.Namespace, key.Name); !found || !isUpToDate(owned, obj, size) {
		wanted := &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": key.Name, "namespace": key.Namespace, "labels": map[string]any{"app": "tenants"}},
			"data":     map[string]any{"size": size},
		}}
		if err := controller.SetControllerReference(obj, wanted); err != nil {
			return 0, err
		}
		if _, err := c.configMaps.Apply(ctx, wanted, &metav1.ApplyOptions{FieldManager: "tenants", Force: true}); err != nil {
			return 0, err
		}
	}
	if written, _, _ := unstructured.Get[string](obj, "status", "size"); written == size {
		return 0, nil
	}
	_, err = controller.SetStatus(ctx, c.tenants, obj, map[string]any{"size": size, "observedGeneration": nil})
	return 0, err
}

// isUpToDate reports whether a ConfigMap has the size and refers to its owner in the present version.
func isUpToDate(configMap, owner *unstructured.Object, size string) bool {
	got, _, _ := unstructured.Get[string](configMap, "data", "size")
	reference := metav1.GetControllerOf(configMap)
	return got == size && reference != nil && reference.UID == owner.GetUID() && reference.APIVersion == owner.GetAPIVersion()
}

// onTenants returns a step with a handle of the Tenants in the version that is served.
func onTenants(name string, do func(ctx context.Context, r *dynamic.Resource) error) Step {
	return Step{name, func(ctx context.Context, client *dynamic.Client) error {
		client.Discovery().Invalidate()
		r, err := client.Resource(ctx, tenants)
		if err != nil {
			return err
		}
		return do(ctx, r.Namespace("default"))
	}}
}

func setDefinition(name string, v1, v2, isV2Stored bool) Step {
	return Step{name, func(ctx context.Context, client *dynamic.Client) error {
		definitions, err := client.Resource(ctx, "customresourcedefinitions")
		if err != nil {
			return err
		}
		_, err = definitions.Apply(ctx, tenantDefinition(v1, v2, isV2Stored), &metav1.ApplyOptions{FieldManager: "users", Force: true})
		return err
	}}
}

// tenantSteps are the changes of a day: count single ones, a burst in the middle, and the change of the definition's version.
func tenantSteps(objects, count int) (steps []Step) {
	for i := range count {
		name := fmt.Sprint("t", i*7%objects)
		switch i {
		case count / 3:
			steps = append(steps, setDefinition("begins to serve v2", true, true, false))
		case count / 2:
			steps = append(steps, burst(objects/3), setDefinition("stores v2", true, true, true))
		case count * 2 / 3:
			steps = append(steps, setDefinition("stops serving v1", false, true, true))
		}
		switch i % 10 {
		case 3:
			steps = append(steps, onTenants("deletes "+name, func(ctx context.Context, r *dynamic.Resource) error {
				if _, err := r.Delete(ctx, name, nil); err != nil {
					return err
				}
				_, err := r.Wait(ctx, name, dynamic.Deleted())
				return err
			}), onTenants("creates "+name+" again", createObject(name, map[string]any{"size": "again"})))
		default:
			steps = append(steps, onTenants("changes "+name, patchObject(name, fmt.Sprintf(`{"spec":{"size":"%d"}}`, i))))
		}
	}
	return steps
}

func burst(count int) Step {
	return onTenants(fmt.Sprintf("changes %d objects", count), func(ctx context.Context, r *dynamic.Resource) error {
		for n := range count {
			if err := patchObject(fmt.Sprint("t", n), `{"spec":{"size":"burst"}}`)(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

func tenantScenario(objects, changes int) *Scenario {
	s := &Scenario{
		Server: apitest.Options{Controllers: apitest.GarbageCollection, Objects: []*unstructured.Object{tenantDefinition(true, false, false)}},
		Run:    runTenants, Steps: tenantSteps(objects, changes),
	}
	for n := range objects {
		s.Server.Objects = append(s.Server.Objects, tenant(n, 0))
	}
	return s
}
