package broken

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// stuckFinalizer deletes a volume before it removes its finalizer. The broken version fails if the volume is already deleted, so
// a crash between the two writes blocks the deletion for ever.
func stuckFinalizer() Controller {
	return Controller{
		Name:   "StuckFinalizer",
		Defect: "a cleanup that cannot run twice keeps the finalizer for ever: Sieve's intermediate states",
		Run:    runFinalizer,
		Steps:  []Step{create(), removeNoWait()},
	}
}

func runFinalizer(ctx context.Context, client *dynamic.Client, isCorrected bool) error {
	r, err := open(ctx, client)
	if err != nil {
		return err
	}
	databases := newCache(r.databases)
	cleanUp := func(ctx context.Context, database *unstructured.Object) error {
		_, err := r.configMaps.Delete(ctx, database.GetName()+"-volume", nil)
		if isCorrected && apierrors.IsNotFound(err) {
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
			live, deleted, err := controller.Finalize(ctx, r.databases, database, "example.com/volume", cleanUp)
			if err != nil || deleted {
				return 0, err
			}
			_, err = r.configMaps.Apply(ctx, newObject(live, "-volume", "data", "empty"), &metav1.ApplyOptions{FieldManager: "databases", Force: true})
			return 0, err
		}, options())
	}, databases)
}
