package wire_test

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// ofGVR returns a handle from the GVR alone, as client-go's dynamic client makes it.
func ofGVR(r *dynamic.Resource) *dynamic.Resource {
	return dynamic.New(r.Conn(), nil).ForGVR(r.APIResource().GVR)
}

// handleCases are calls of handles that are made without a lookup, for one object, or with defaults.
func handleCases() map[string]wireCase {
	all := map[string]wireCase{
		"get by GVR": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := ofGVR(r).Namespace("shop").Get(ctx, "web", nil)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Get(ctx, "web", metav1.GetOptions{})
				return err
			}},
		"list by GVR, cluster-scoped": {"nodes",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := ofGVR(r).ListPage(ctx, nil)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.List(ctx, metav1.ListOptions{})
				return err
			}},
		"create by GVR": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := ofGVR(r).Namespace("shop").Create(ctx, wirePod(), nil)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Create(ctx, wirePod(), metav1.CreateOptions{})
				return err
			}},
		"watch one object": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error { return exhaust(r.Named("web").Watch(ctx, nil)) },
			func(ctx context.Context, r theirHandle) error {
				return drainWatch(r.Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: "web"})))
			}},
		"open a watch": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				opts := allWatchOptions()
				stream, err := r.OpenWatch(ctx, &opts)
				if err != nil {
					return err
				}
				stream.Close()
				return nil
			},
			func(ctx context.Context, r theirHandle) error { return drainWatch(r.Watch(ctx, allWatchOptions())) }},
		"apply the scale by name": {"deployments",
			func(ctx context.Context, r *dynamic.Resource) error {
				opts := allApplyOptions()
				_, err := r.Named("web").Subresource("scale").Apply(ctx, wireScale(), &opts)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Apply(ctx, "web", wireScale(), allApplyOptions(), "scale")
				return err
			}},
	}
	for sub, obj := range map[string]*unstructured.Object{
		"binding": wireObject("v1", "Binding", "web"), "eviction": wireObject("policy/v1", "Eviction", "web"),
	} {
		all["create "+sub+" by name"] = wireCase{"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.Named("web").Subresource(sub).Create(ctx, obj, nil)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Create(ctx, obj, metav1.CreateOptions{}, sub)
				return err
			}}
	}
	for name, call := range defaultsCases() {
		all[name] = call
	}
	return all
}

// defaultsCases compare a handle's defaults with client-go's options of each call.
func defaultsCases() map[string]wireCase {
	defaults := &dynamic.Defaults{FieldManager: "me", FieldValidation: metav1.FieldValidationStrict, DryRun: true}
	dryRun := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	return map[string]wireCase{
		"create with defaults": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.WithDefaults(defaults).Create(ctx, wirePod(), nil)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Create(ctx, wirePod(), allCreateOptions())
				return err
			}},
		"apply with defaults": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.WithDefaults(defaults).Apply(ctx, wirePod(), &metav1.ApplyOptions{Force: true})
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Apply(ctx, "web", wirePod(), allApplyOptions())
				return err
			}},
		"delete with defaults": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.WithDefaults(defaults).Delete(ctx, "web", nil)
				return err
			},
			func(ctx context.Context, r theirHandle) error { return r.Delete(ctx, "web", dryRun) }},
		"delete a collection with defaults": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.WithDefaults(defaults).DeleteCollection(ctx, nil, nil)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				return r.DeleteCollection(ctx, dryRun, metav1.ListOptions{})
			}},
	}
}

// wireScale returns a Scale without a name.
func wireScale() *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": map[string]any{"replicas": int64(3)},
	}}
}
