package applyset_test

import (
	"context"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// A release is applied in the order of its objects, pruned and awaited. Delete ends it.
func ExampleSet_Apply() {
	release := func(ctx context.Context, client *dynamic.Client) error {
		objects, err := manifest.Reader{Paths: []string{"deploy/"}}.Read(ctx)
		if err != nil {
			return err
		}
		set := applyset.New(client, applyset.Parent{Namespace: "shop", Name: "web"}, nil)
		events, err := set.Apply(ctx, objects, nil)
		for _, event := range events { // also those before an error
			fmt.Println(event.Object, event.Action, event.Reason)
		}
		if err != nil {
			return err
		}
		if err := set.Wait(ctx, objects, nil); err != nil {
			return err
		}
		states, err := set.Status(ctx, objects)
		if err != nil {
			return err
		}
		for _, state := range states {
			fmt.Println(state.Object, state.Readiness, state.Drift)
		}
		_, err = set.Delete(ctx, nil)
		return err
	}
	_ = release
}

// Objects of kubectl apply become objects of a set. Fields that left the manifests are removed by Apply.
func ExampleSet_Adopt() {
	adopt := func(ctx context.Context, client *dynamic.Client, objects []*manifest.Object) error {
		set := applyset.New(client, applyset.Parent{Namespace: "shop", Name: "web"}, nil)
		events, err := set.Adopt(ctx, objects, nil)
		if err != nil {
			return err
		}
		for _, event := range events {
			fmt.Println(event.Object, event.Action, event.Reason)
		}
		_, err = set.Apply(ctx, objects, nil)
		return err
	}
	_ = adopt
}

// The objects of a Helm release that are not among the chart's new manifests are deleted by Apply.
func ExampleHelmRelease() {
	adopt := func(ctx context.Context, client *dynamic.Client, objects []*manifest.Object) error {
		members, err := applyset.HelmRelease(ctx, client, "shop", "web")
		if err != nil {
			return err
		}
		set := applyset.New(client, applyset.Parent{Namespace: "shop", Name: "web"}, nil)
		_, err = set.Adopt(ctx, objects, &applyset.AdoptOptions{Members: members, Managers: applyset.Managers("helm")})
		return err
	}
	_ = adopt
}

func ExampleFluxInventory() {
	kustomization, err := unstructured.Decode([]byte(`{"kind":"Kustomization","metadata":{"name":"shop"},
		"status":{"inventory":{"entries":[{"id":"shop_web_apps_Deployment","v":"v1"},{"id":"_shop__reader_rbac.authorization.k8s.io_ClusterRole","v":"v1"}]}}}`))
	if err != nil {
		log.Fatal(err)
	}
	members, err := applyset.FluxInventory(kustomization)
	fmt.Println(members, err)
	// Output: [Deployment.apps "shop/web" ClusterRole.rbac.authorization.k8s.io "shop:reader"] <nil>
}

// After the call: KUBECTL_APPLYSET=true kubectl apply --server-side --prune --applyset=web --namespace=shop -f …
func ExampleSet_Handover() {
	handOver := func(ctx context.Context, client *dynamic.Client) error {
		set := applyset.New(client, applyset.Parent{Namespace: "shop", Name: "web"}, nil)
		_, err := set.Handover(ctx, "v1.36.3")
		return err
	}
	_ = handOver
}

// The program applies an object that kubectl apply has created. The last apply removes fields that left the configuration.
func ExampleMigrateFields() {
	apply := func(ctx context.Context, client *dynamic.Client, resource *dynamic.Resource, obj *unstructured.Object) error {
		live, err := resource.Get(ctx, obj.GetName(), nil)
		if err != nil {
			return err
		}
		stored, reason, err := applyset.MigrateFields(ctx, client, live, "shopctl", applyset.KubectlManagers)
		if err != nil {
			return err
		}
		fmt.Println("moved:", stored != nil, reason)
		_, err = resource.Apply(ctx, obj, &metav1.ApplyOptions{FieldManager: "shopctl"})
		return err
	}
	_ = apply
}
