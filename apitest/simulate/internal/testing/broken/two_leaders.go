package broken

import (
	"context"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/leaderelection"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// twoLeaders runs while it holds a Lease. The broken version continues after the loss of the Lease, so two managers write.
func twoLeaders() Controller {
	return Controller{
		Name:   "TwoLeaders",
		Defect: "a manager goes on writing after another one has taken its lease, and fights with it",
		Run:    runElected,
		Steps:  []Step{create(), upgrade("2"), upgrade("3")},
	}
}

func runElected(ctx context.Context, client *dynamic.Client, isCorrected bool) error {
	r, err := open(ctx, client)
	if err != nil {
		return err
	}
	leases, err := client.Resource(ctx, "leases.coordination.k8s.io")
	if err != nil {
		return err
	}
	opts := &leaderelection.Options{Logger: slog.New(slog.DiscardHandler)}
	return leaderelection.Run(ctx, leases.Namespace(namespace), "databases", opts, func(leading context.Context, _ int64) error {
		if !isCorrected {
			leading = ctx
		}
		return runVersions(leading, r)
	})
}

// runVersions keeps the version of each Database in a ConfigMap.
func runVersions(ctx context.Context, r resources) error {
	databases := newCache(r.databases)
	return RunWith(ctx, func(ctx context.Context) error {
		return controller.Run(ctx, databases, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
			database, found := databases.Get(key.Namespace, key.Name)
			if !found {
				return 0, nil
			}
			version, _, err := unstructured.Get[string](database, "spec", "version")
			if err != nil {
				return 0, err
			}
			_, err = r.configMaps.Apply(ctx, newObject(database, "-version", "data", version), &metav1.ApplyOptions{FieldManager: "databases", Force: true})
			return 0, err
		}, options())
	}, databases)
}
