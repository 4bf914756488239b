// Package broken has six defective controllers and their corrected versions. Their defects are of the kinds found by Sieve in
// published operators (https://github.com/sieve-project/sieve, OSDI 2022): stale states, unobserved states, intermediate states.
// Without faults every controller works.
//
// All controllers manage Databases. A Database stores its data in ConfigMaps and Secrets of the same namespace, in place of
// volumes.
package broken

import (
	"context"
	_ "embed"
	"log/slog"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Controller is a controller with a defect, and the steps of its test.
type Controller struct {
	Name string
	// Defect describes the defect and names operators that had it.
	Defect string
	// Run runs the controller until ctx ends.
	Run func(ctx context.Context, client *dynamic.Client, isCorrected bool) error
	// Steps are the users' actions, in this order.
	Steps []Step
	// GarbageCollection runs a garbage collector in the cluster.
	GarbageCollection bool
}

// Step is an action of a user.
type Step struct {
	Name string
	Do   func(ctx context.Context, client *dynamic.Client) error
}

// All returns the controllers.
func All() []Controller {
	return []Controller{staleRead(), missedEvent(), crashBetweenWrites(), wrongOwner(), stuckFinalizer(), twoLeaders()}
}

//go:embed crd.yaml
var definition string

// Objects returns the initial objects of the server: the definition of Databases.
func Objects() ([]*unstructured.Object, error) {
	var objects []*unstructured.Object
	for obj, err := range unstructured.NewYAMLDecoder(strings.NewReader(definition)).All() {
		if err != nil {
			return nil, err
		}
		objects = append(objects, obj)
	}
	return objects, nil
}

const (
	namespace = "default"
	name      = "orders"
)

func databaseKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Database"}
}

// resources are the handles of the controllers.
type resources struct{ databases, configMaps, secrets *dynamic.Resource }

func open(ctx context.Context, client *dynamic.Client) (r resources, err error) {
	for kind, handle := range map[schema.GroupVersionKind]**dynamic.Resource{
		databaseKind(): &r.databases, {Version: "v1", Kind: "ConfigMap"}: &r.configMaps, {Version: "v1", Kind: "Secret"}: &r.secrets,
	} {
		found, err := client.ForKind(ctx, kind)
		if err != nil {
			return r, err
		}
		*handle = found.Namespace(namespace)
	}
	return r, nil
}

// options returns options with a discarding logger: failures are expected.
func options(triggers ...controller.Trigger) *controller.Options {
	return &controller.Options{Logger: slog.New(slog.DiscardHandler), Triggers: triggers}
}

func newCache(r *dynamic.Resource) *cache.Cache[unstructured.Object] {
	return cache.New(r, (*cache.Options[unstructured.Object])(nil))
}

// RunWith runs a controller with its caches, until ctx ends or a cache fails.
func RunWith(ctx context.Context, run func(ctx context.Context) error, caches ...*cache.Cache[unstructured.Object]) error {
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop(nil)
	for _, c := range caches {
		running.Go(func() { stop(c.Run(ctx)) })
	}
	return run(ctx)
}

func create() Step {
	return Step{"creates the Database", func(ctx context.Context, client *dynamic.Client) error {
		r, err := open(ctx, client)
		if err != nil {
			return err
		}
		_, err = r.databases.Create(ctx, &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"version": "1"},
		}}, nil)
		return err
	}}
}

// remove deletes the Database and waits for its removal.
func remove() Step {
	return Step{"deletes the Database", func(ctx context.Context, client *dynamic.Client) error {
		r, err := open(ctx, client)
		if err != nil {
			return err
		}
		if _, err = r.databases.Delete(ctx, name, nil); err == nil {
			_, err = r.databases.Wait(ctx, name, dynamic.Deleted())
		}
		return err
	}}
}

// removeNoWait deletes the Database.
func removeNoWait() Step {
	return Step{"deletes the Database", func(ctx context.Context, client *dynamic.Client) error {
		r, err := open(ctx, client)
		if err != nil {
			return err
		}
		_, err = r.databases.Delete(ctx, name, nil)
		return err
	}}
}

func upgrade(version string) Step {
	return Step{"upgrades the Database to version " + version, func(ctx context.Context, client *dynamic.Client) error {
		r, err := open(ctx, client)
		if err != nil {
			return err
		}
		_, err = r.databases.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"version":"`+version+`"}}`), nil)
		return err
	}}
}

// newObject returns an object named after the Database, with value in field.
func newObject(database *unstructured.Object, suffix, field, value string) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": database.GetName() + suffix, "namespace": database.GetNamespace()},
		field:      map[string]any{"value": value},
	}}
}
