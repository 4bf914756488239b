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

const databaseUID = "example.com/database-uid"

// staleRead deletes the volumes of deleted Databases at its start. The broken version lists Databases with resourceVersion=0 from
// the API server's watch cache. A stale cache misses a new Database, and its volume is deleted.
func staleRead() Controller {
	return Controller{
		Name:   "StaleRead",
		Defect: "a restarted controller reads an old state and deletes data: pravega/zookeeper-operator#312, instaclustr/cassandra-operator#402",
		Run:    runVolumes,
		Steps:  []Step{create(), {"stores rows in the volume", storeRows}, upgrade("2")},
	}
}

// storeRows waits for the volume and writes irreplaceable data.
func storeRows(ctx context.Context, client *dynamic.Client) error {
	r, err := open(ctx, client)
	if err != nil {
		return err
	}
	if _, err = r.configMaps.Wait(ctx, name+"-volume", dynamic.Exists()); err != nil {
		return err
	}
	_, err = r.configMaps.Patch(ctx, name+"-volume", types.MergePatchType, []byte(`{"data":{"rows":"42"}}`), nil)
	return err
}

func runVolumes(ctx context.Context, client *dynamic.Client, isCorrected bool) error {
	r, err := open(ctx, client)
	if err != nil {
		return err
	}
	version := "0" // any state in the watch cache
	if isCorrected {
		version = "" // the latest
	}
	if err := deleteUnusedVolumes(ctx, r, version); err != nil {
		return err
	}
	databases := newCache(r.databases)
	return RunWith(ctx, func(ctx context.Context) error {
		return controller.Run(ctx, databases, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
			database, found := databases.Get(key.Namespace, key.Name)
			if !found {
				return 0, deleteVolume(ctx, r, key.Name+"-volume")
			}
			return 0, ensureVolume(ctx, r, database)
		}, options())
	}, databases)
}

func deleteUnusedVolumes(ctx context.Context, r resources, version string) error {
	volumes, err := listAll(ctx, r.configMaps, "")
	if err != nil {
		return err
	}
	databases, err := listAll(ctx, r.databases, version)
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, database := range databases {
		used[string(database.GetUID())] = true
	}
	for _, volume := range volumes {
		if uid := volume.GetAnnotations()[databaseUID]; uid != "" && !used[uid] {
			if err := deleteObject(ctx, r.configMaps, volume); err != nil {
				return err
			}
		}
	}
	return nil
}

func listAll(ctx context.Context, r *dynamic.Resource, version string) (all []*unstructured.Object, err error) {
	for obj, err := range r.List(ctx, &metav1.ListOptions{ResourceVersion: version}) {
		if err != nil {
			return nil, err
		}
		all = append(all, obj)
	}
	return all, nil
}

// ensureVolume creates the volume of a Database. It replaces a volume of an earlier Database of that name.
func ensureVolume(ctx context.Context, r resources, database *unstructured.Object) error {
	uid := string(database.GetUID())
	volume, err := r.configMaps.Get(ctx, database.GetName()+"-volume", nil)
	switch {
	case err == nil && volume.GetAnnotations()[databaseUID] == uid:
		return nil
	case err == nil:
		err = deleteObject(ctx, r.configMaps, volume)
	case apierrors.IsNotFound(err):
		err = nil
	}
	if err != nil {
		return err
	}
	volume = newObject(database, "-volume", "data", "empty")
	volume.SetAnnotations(map[string]string{databaseUID: uid})
	_, err = r.configMaps.Create(ctx, volume, nil)
	return err
}

func deleteVolume(ctx context.Context, r resources, volumeName string) error {
	volume, err := r.configMaps.Get(ctx, volumeName, nil)
	if err == nil {
		err = deleteObject(ctx, r.configMaps, volume)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// deleteObject deletes obj with a UID precondition.
func deleteObject(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object) error {
	uid := obj.GetUID()
	_, err := r.Delete(ctx, obj.GetName(), &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
