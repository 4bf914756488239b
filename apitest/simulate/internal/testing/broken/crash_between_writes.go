package broken

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// crashBetweenWrites creates a Secret and sets a phase. The broken version sets the phase first. After a crash between the writes
// it takes the phase as proof of the Secret.
func crashBetweenWrites() Controller {
	return Controller{
		Name:   "CrashBetweenWrites",
		Defect: "the state between two writes is taken for the state after both: Sieve's intermediate states",
		Run:    runPhases,
		Steps:  []Step{create(), upgrade("2")},
	}
}

func runPhases(ctx context.Context, client *dynamic.Client, isCorrected bool) error {
	r, err := open(ctx, client)
	if err != nil {
		return err
	}
	databases := newCache(r.databases)
	setPhase := func(ctx context.Context, database *unstructured.Object) error {
		_, err := controller.SetStatus(ctx, r.databases, database, map[string]any{"phase": "Initialized", "observedGeneration": nil})
		return err
	}
	createSecret := func(ctx context.Context, database *unstructured.Object) error {
		_, err := r.secrets.Create(ctx, newObject(database, "-password", "stringData", "secret"), nil)
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	return RunWith(ctx, func(ctx context.Context) error {
		return controller.Run(ctx, databases, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
			database, found := databases.Get(key.Namespace, key.Name)
			if !found {
				return 0, nil
			}
			if phase, _, err := unstructured.Get[string](database, "status", "phase"); err != nil || phase == "Initialized" {
				return 0, err
			}
			writes := []func(context.Context, *unstructured.Object) error{setPhase, createSecret}
			if isCorrected {
				writes = []func(context.Context, *unstructured.Object) error{createSecret, setPhase}
			}
			for _, write := range writes {
				if err := write(ctx, database); err != nil {
					return 0, err
				}
			}
			return 0, nil
		}, options())
	}, databases)
}
