package clients_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/anykind/anykind/apitest/simulate"
	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

const finalizer = "example.com/secret"

// secretReconciler keeps a Secret for each ConfigMap with a label. The broken one cannot clean up twice.
type secretReconciler struct {
	crclient.Client
	isCorrected bool
}

// Reconcile implements reconcile.Reconciler.
func (r *secretReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var owner corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &owner); err != nil {
		return reconcile.Result{}, crclient.IgnoreNotFound(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name}}
	if !owner.DeletionTimestamp.IsZero() {
		err := r.Delete(ctx, secret)
		if r.isCorrected {
			err = crclient.IgnoreNotFound(err)
		}
		if err == nil && controllerutil.RemoveFinalizer(&owner, finalizer) {
			err = crclient.IgnoreNotFound(r.Update(ctx, &owner))
		}
		return reconcile.Result{}, err
	}
	if controllerutil.AddFinalizer(&owner, finalizer) {
		return reconcile.Result{}, r.Update(ctx, &owner)
	}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, secret, func() error {
		secret.Data = map[string][]byte{"text": []byte(owner.Data["text"])}
		return nil
	})
	return reconcile.Result{}, err
}

// cachedReader reads ConfigMaps from a cache, as a manager's client does, and other objects from the server.
type cachedReader struct {
	crclient.Reader
	configMaps *cache.Cache[unstructured.Object]
}

// Get implements crclient.Reader.
func (c *cachedReader) Get(ctx context.Context, key crclient.ObjectKey, obj crclient.Object, opts ...crclient.GetOption) error {
	if _, isConfigMap := obj.(*corev1.ConfigMap); !isConfigMap {
		return c.Reader.Get(ctx, key, obj, opts...)
	}
	stored, found := c.configMaps.Get(key.Namespace, key.Name)
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(stored.DeepCopy().Object, obj)
}

// runReconciler runs a reconciler of controller-runtime until ctx ends.
func runReconciler(ctx context.Context, p *simulate.Process, isCorrected bool) error {
	cfg := &rest.Config{Host: p.URL, Transport: p.HTTPClient.Transport, QPS: -1}
	direct, err := crclient.New(cfg, crclient.Options{})
	if err != nil {
		return err
	}
	configMaps, err := p.Client.Resource(ctx, "configmaps")
	if err != nil {
		return err
	}
	stored := cache.New(configMaps.Namespace("default"), (*cache.Options[unstructured.Object])(nil))
	cached, err := crclient.New(cfg, crclient.Options{Cache: &crclient.CacheOptions{Reader: &cachedReader{direct, stored}}})
	if err != nil {
		return err
	}
	reconciler := &secretReconciler{cached, isCorrected}
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop(nil)
	running.Go(func() { stop(stored.Run(ctx)) })
	return controller.Run(ctx, stored, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		result, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.Name}})
		return result.RequeueAfter, err
	}, nil)
}

func reconcilerScenario(isCorrected bool) *simulate.Scenario {
	do := func(change func(ctx context.Context, configMaps *dynamic.Resource) error) func(context.Context, *dynamic.Client) error {
		return func(ctx context.Context, c *dynamic.Client) error {
			configMaps, err := c.Resource(ctx, "configmaps")
			if err != nil {
				return err
			}
			return change(ctx, configMaps.Namespace("default"))
		}
	}
	create := func(ctx context.Context, configMaps *dynamic.Resource) error {
		_, err := configMaps.Create(ctx, &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": "app"}, "data": map[string]any{"text": "one"},
		}}, nil)
		return err
	}
	change := func(ctx context.Context, configMaps *dynamic.Resource) error {
		_, err := configMaps.Patch(ctx, "app", types.MergePatchType, []byte(`{"data":{"text":"two"}}`), nil)
		return err
	}
	remove := func(ctx context.Context, configMaps *dynamic.Resource) error {
		_, err := configMaps.Delete(ctx, "app", nil)
		return err
	}
	return &simulate.Scenario{
		Run:   func(ctx context.Context, p *simulate.Process) error { return runReconciler(ctx, p, isCorrected) },
		Steps: []simulate.Step{{Name: "creates the ConfigMap", Do: do(create)}, {Name: "changes it", Do: do(change)}, {Name: "deletes it", Do: do(remove)}},
		Check: func(ctx context.Context, c *dynamic.Client) error {
			secrets, err := c.Resource(ctx, "secrets")
			if err != nil {
				return err
			}
			if _, err = secrets.Namespace("default").Get(ctx, "app", nil); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the Secret is left: %w", err)
			}
			return nil
		},
	}
}

// TestSimulate_ControllerRuntimeReconciler runs a reconciler of controller-runtime, with a client like a manager's, in apitest/simulate.
func TestSimulate_ControllerRuntimeReconciler(t *testing.T) {
	t.Setenv("KUBE_FEATURE_WatchListClient", "false")
	t.Run("broken", func(t *testing.T) {
		failure := simulate.Find(t, reconcilerScenario(false), &simulate.Options{Seeds: 1000, NoEnumeration: true})
		require.NotNil(t, failure)
		assert.NotZero(t, failure.Seed)
		assert.Contains(t, failure.Error(), "WRITES delete secrets default/app")
		assert.NotContains(t, failure.Error(), "second run with the same choices")
		t.Log(failure)
	})
	t.Run("corrected", func(t *testing.T) {
		simulate.Test(t, reconcilerScenario(true), &simulate.Options{Seeds: 30})
	})
}
