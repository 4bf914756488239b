package broken

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// wrongOwner keeps a ConfigMap for each Database. The broken version adopts any ConfigMap of that name. The ConfigMap may belong
// to an earlier Database and be about to be garbage-collected.
func wrongOwner() Controller {
	return Controller{
		Name:              "WrongOwner",
		Defect:            "an object of an earlier owner of the same name is taken for the own one: rabbitmq/cluster-operator#648, datastax/cass-operator#412",
		Run:               runOwner,
		Steps:             []Step{create(), remove(), create()},
		GarbageCollection: true,
	}
}

func runOwner(ctx context.Context, client *dynamic.Client, isCorrected bool) error {
	r, err := open(ctx, client)
	if err != nil {
		return err
	}
	databases := newCache(r.databases)
	configMaps := newCache(r.configMaps)
	trigger := controller.Watches(configMaps, func(configMap *unstructured.Object) []types.NamespacedName {
		reference := metav1.GetControllerOf(configMap)
		if reference == nil {
			return nil
		}
		database, found := databases.Get(configMap.GetNamespace(), reference.Name)
		if !found || database.GetUID() != reference.UID {
			return nil
		}
		return []types.NamespacedName{cache.KeyOf(database)}
	})
	if isCorrected {
		trigger = controller.Owns(configMaps, r.databases)
	}
	return RunWith(ctx, func(ctx context.Context) error {
		return controller.Run(ctx, databases, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
			database, found := databases.Get(key.Namespace, key.Name)
			if !found {
				return 0, nil // the garbage collector deletes the ConfigMap
			}
			if configMap, found := configMaps.Get(key.Namespace, key.Name+"-config"); found && (!isCorrected || metav1.IsControlledBy(configMap, database)) {
				return 0, nil
			}
			configMap := newObject(database, "-config", "data", "config")
			if err := controller.SetControllerReference(database, configMap); err != nil {
				return 0, err
			}
			_, err := r.configMaps.Create(ctx, configMap, nil)
			return 0, err // AlreadyExists, until the garbage collector has deleted the earlier ConfigMap
		}, options(trigger))
	}, databases, configMaps)
}
