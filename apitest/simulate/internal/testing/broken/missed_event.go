package broken

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// missedEvent deletes the volume of a deleted Database. The broken version reacts to the delete event, which it misses while it
// is down. The corrected version has a finalizer.
func missedEvent() Controller {
	return Controller{
		Name:   "MissedEvent",
		Defect: "a deletion is not observed, and the volume stays: instaclustr/cassandra-operator#398, percona K8SPSMDB-434",
		Run:    runOperator,
		Steps:  []Step{create(), removeNoWait()},
	}
}

func runOperator(ctx context.Context, client *dynamic.Client, isCorrected bool) error {
	r, err := open(ctx, client)
	if err != nil {
		return err
	}
	cleanUp := func(ctx context.Context, database *unstructured.Object) error {
		_, err := r.configMaps.Delete(ctx, database.GetName()+"-volume", nil)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	operator := controller.NewOperator(options())
	operator.Watch(r.databases, func(ctx context.Context, change cache.Change[unstructured.Object]) error {
		database := change.Object
		switch {
		case isCorrected && change.Type == watch.Deleted:
			return nil // cleaned up already
		case isCorrected:
			live, deleted, err := controller.Finalize(ctx, r.databases, database, "example.com/volume", cleanUp)
			if err != nil || deleted {
				return err
			}
			database = live
		case change.Type == watch.Deleted:
			return cleanUp(ctx, database)
		}
		_, err := r.configMaps.Apply(ctx, newObject(database, "-volume", "data", "empty"), &metav1.ApplyOptions{FieldManager: "databases", Force: true})
		return err
	})
	return operator.Run(ctx)
}
