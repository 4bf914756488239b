//go:build unix

// Command flux applies and prunes a set with Flux's library for server-side apply, as kustomize-controller does.
package main

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

func main() { measure.Main(prepare) }

// concurrency is kustomize-controller's default of --concurrent-ssa.
const concurrency = 4

func prepare(ctx context.Context, s *measure.Settings) (map[string]measure.Task, error) {
	log.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the default of 5 requests a second would dominate the result
	requests := &atomic.Int64{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counter{next, requests} })
	kube, mapper, err := connect(ctx, config, s.Namespace)
	if err != nil {
		return nil, err
	}
	manager := ssa.NewResourceManager(kube, polling.NewStatusPoller(kube, mapper, polling.Options{}),
		ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
	manager.SetConcurrency(concurrency)
	applier := &measure.Applier{Requests: requests, Apply: func(ctx context.Context, objects, previous []*unstructuredv1.Unstructured) (int, error) {
		return apply(ctx, manager, objects, previous)
	}}
	return map[string]measure.Task{"applyset": func(ctx context.Context, m *measure.Meter) error {
		return measure.ApplySet(ctx, m, applier)
	}}, nil
}

// connect returns a client and its mapper after a first request of each kind: no stage pays for discovery.
func connect(ctx context.Context, config *rest.Config, namespace string) (client.Client, meta.RESTMapper, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, nil, err
	}
	kube, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: runtime.NewScheme(), Mapper: mapper})
	if err != nil {
		return nil, nil, err
	}
	objects, err := measure.SetObjects(namespace, measure.SetKinds)
	if err != nil {
		return nil, nil, err
	}
	for _, obj := range objects {
		if err := client.IgnoreNotFound(kube.Get(ctx, client.ObjectKeyFromObject(obj), obj)); err != nil {
			return nil, nil, err
		}
	}
	return kube, mapper, nil
}

// apply applies objects and deletes the previous objects not among them. It returns the number of changed objects.
func apply(ctx context.Context, manager *ssa.ResourceManager, objects, previous []*unstructuredv1.Unstructured) (changes int, err error) {
	const name = "set"
	manager.SetOwnerLabels(objects, name, "default")
	applied, err := manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
	if err != nil {
		return 0, err
	}
	kept := map[string]bool{}
	for _, obj := range objects {
		kept[obj.GroupVersionKind().String()+" "+obj.GetName()] = true
	}
	var left []*unstructuredv1.Unstructured
	for _, obj := range previous {
		if !kept[obj.GroupVersionKind().String()+" "+obj.GetName()] {
			left = append(left, obj)
		}
	}
	opts := ssa.DefaultDeleteOptions()
	opts.Inclusions = manager.GetOwnerLabels(name, "default")
	deleted, err := manager.DeleteAll(ctx, left, opts)
	if err != nil {
		return 0, err
	}
	for _, entry := range append(applied.Entries, deleted.Entries...) {
		switch entry.Action {
		case ssa.CreatedAction, ssa.ConfiguredAction, ssa.DeletedAction:
			changes++
		default:
		}
	}
	return changes, nil
}

// counter counts requests.
type counter struct {
	next     http.RoundTripper
	requests *atomic.Int64
}

func (c *counter) RoundTrip(req *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.next.RoundTrip(req)
}
