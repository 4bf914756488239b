package plan_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/plan"
	"github.com/anykind/anykind/unstructured/manifest"
)

func ExampleObjects() {
	show := func(ctx context.Context, client *dynamic.Client, objects []*manifest.Object) error {
		planned, err := plan.Objects(ctx, client, objects, &plan.Options{
			Namespace: "shop", FieldManager: "deployer",
			Set: applyset.New(client, applyset.Parent{Namespace: "shop", Name: "web"}, nil),
		})
		if err != nil {
			return err
		}
		for _, change := range planned.Changes {
			fmt.Println(change.Action, change.Object, change.Reason, change.NotValidated)
			for _, field := range change.Fields {
				fmt.Println(" ", field.Path, field.Live, "→", field.Planned, field.Managers)
			}
		}
		return planned.WriteText(os.Stdout, nil)
	}
	_ = show
}

// A plan is applied later, unless an object has changed.
func ExamplePlan_Apply() {
	apply := func(ctx context.Context, client *dynamic.Client, objects []*manifest.Object) error {
		planned, err := plan.Objects(ctx, client, objects, nil)
		if err != nil {
			return err
		}
		var file bytes.Buffer
		if err := planned.Save(&file); err != nil {
			return err
		}
		loaded, err := plan.Load(&file)
		if err != nil {
			return err
		}
		_, err = loaded.Apply(ctx, client, &plan.ApplyOptions{Replace: true})
		var changed *plan.ChangedError
		if errors.As(err, &changed) {
			fmt.Println(changed.Object, changed.Change)
		}
		return err
	}
	_ = apply
}

func ExamplePlan_WriteShort() {
	planned := &plan.Plan{Changes: []*plan.Change{
		{Object: applyset.Reference{Namespace: "shop", Name: "web"}, Action: plan.Configure, Fields: []plan.Field{{Path: ".spec.replicas"}}},
		{Object: applyset.Reference{Namespace: "shop", Name: "old"}, Action: plan.Unchanged},
	}}
	planned.Changes[0].Object.Kind.Group = "apps"
	planned.Changes[0].Object.Kind.Kind = "Deployment"
	if err := planned.WriteShort(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// **Plan:** 1 to configure, 1 unchanged.
	//
	// | action | object | details |
	// | --- | --- | --- |
	// | configure | `Deployment.apps "shop/web"` | `.spec.replicas` |
}
