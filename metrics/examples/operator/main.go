// Command operator gives each Website a Deployment and an entry in the ConfigMap hosts of its namespace.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/events"
	"github.com/anykind/anykind/controller/manager"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/metrics/prommetrics"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

//go:embed crd.yaml
var definition []byte

func main() {
	address := flag.String("listen", "127.0.0.1:8081", "`address` of /metrics, /healthz and /readyz")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	cfg, err := transport.Load(ctx, nil)
	if err == nil {
		log.Print("waiting for Websites; metrics and probes are on ", *address)
		err = run(ctx, cfg, *address)
	}
	stop()
	if !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// run runs the operator until ctx ends. Its Lease is in the namespace of cfg.
func run(ctx context.Context, cfg *transport.Config, address string) error {
	registry := prometheus.NewRegistry()
	recorded, err := prommetrics.New(registry)
	if err != nil {
		return err
	}
	cfg.OnAttempt = recorded.OnAttempt
	client, err := dynamic.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := controller.RegisterCRDs(ctx, client, definition, nil); err != nil {
		return err
	}
	handles, err := client.WaitForResources(ctx, "websites.example.com", "deployments.apps", "configmaps", "leases.coordination.k8s.io")
	if err != nil {
		return err
	}
	recorder, err := events.NewRecorder(ctx, client, "example.com/websites", nil)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = recorder.Close(closing) // the recorder logs dropped Events
	}()
	websites := cache.New(handles[0].AllNamespaces(), nil)
	deployments := cache.New(handles[1].AllNamespaces(), nil)
	r := &reconciler{websites: websites, handle: websites.TrackWrites(handles[0]), deployments: handles[1], hosts: handles[2], recorder: recorder}
	opts := &controller.Options{Triggers: []controller.Trigger{controller.Owns(deployments, handles[0])}}
	m := manager.New(&manager.Options{Leases: handles[3], LeaseName: "website-operator"})
	mux := http.NewServeMux()
	mux.Handle("/", m.Probes())
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	m.AddServer("metrics and probes", manager.HTTPServer(&http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: time.Minute}, nil))
	m.AddCache("websites", websites)
	m.AddCache("deployments", deployments)
	m.AddController("leader metric", recorded.Leader("website-operator"))
	m.AddController("websites", func(ctx context.Context) error {
		return controller.Run(ctx, websites, r.reconcile, recorded.Controller("", opts))
	})
	return m.Run(ctx)
}

// reconciler gives each Website a Deployment that it owns, and an entry in the ConfigMap hosts of its namespace.
type reconciler struct {
	websites                   *cache.Cache[unstructured.Object]
	handle, deployments, hosts *dynamic.Resource
	recorder                   *events.Recorder
}

func (r *reconciler) reconcile(ctx context.Context, key types.NamespacedName) (after time.Duration, err error) {
	website, found := r.websites.Get(key.Namespace, key.Name)
	if !found {
		return 0, nil // the finalizer has removed its host, and the garbage collector its Deployment
	}
	website, deleted, err := controller.Finalize(ctx, r.handle, website, "example.com/host", func(ctx context.Context, website *unstructured.Object) error {
		return r.setHost(ctx, website, nil)
	})
	if err != nil || deleted {
		return 0, err
	}
	spec, _ := website.Object["spec"].(map[string]any) // the server has validated it
	if err := r.setHost(ctx, website, map[string]any{key.Name: spec["host"]}); err != nil {
		return 0, err
	}
	desired := &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": key.Name, "namespace": key.Namespace},
		"spec": map[string]any{"replicas": spec["replicas"], "selector": map[string]any{"matchLabels": map[string]any{"website": key.Name}}, "template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"website": key.Name}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": spec["image"]}}},
		}},
	}}
	if err := controller.SetControllerReference(website, desired); err != nil {
		return 0, err
	}
	deployment, err := r.deployments.Apply(ctx, desired, &metav1.ApplyOptions{FieldManager: "website-operator", Force: true})
	if err != nil {
		r.recorder.Record(website, events.Event{Type: "Warning", Reason: "DeployFailed", Note: err.Error()})
		return 0, err
	}
	result := r.deployments.Readiness(deployment)
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: string(result.Status), Message: result.Message}
	if result.Status == readiness.Current {
		ready.Status = metav1.ConditionTrue
		r.recorder.Record(website, events.Event{Reason: "Deployed", Note: "the Deployment is ready"})
	}
	_, err = controller.SetStatus(ctx, r.handle, website, map[string]any{"conditions": controller.MergeConditions(website, ready)})
	return 0, err
}

// setHost applies the entry of a Website as a field manager of its own. Without data it removes the entry.
func (r *reconciler) setHost(ctx context.Context, website *unstructured.Object, data map[string]any) error {
	hosts := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "hosts"}, "data": data}}
	_, err := r.hosts.Namespace(website.GetNamespace()).Apply(ctx, hosts, &metav1.ApplyOptions{FieldManager: "website-" + website.GetName()})
	return err
}
