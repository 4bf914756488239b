package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/fleet"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// kubeconfigOf returns a kubeconfig with a context of a server.
func kubeconfigOf(server, user string) string {
	return fmt.Sprintf(`{clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: %s}],
		contexts: [{name: east, context: {cluster: c, user: u}}], current-context: east}`, server, user)
}

// writeKubeconfig writes a kubeconfig to a temporary folder.
func writeKubeconfig(name, server string) (folder string, remove func()) {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), []byte(kubeconfigOf(server, "{token: one}")), 0o600); err != nil {
		log.Fatal(err)
	}
	return folder, func() { _ = os.RemoveAll(folder) }
}

// printPods prints the clusters of a source and their pods.
func printPods(source fleet.Source) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	clusters := fleet.New(&fleet.Options{Sources: []fleet.Source{source}})
	go func() { _ = clusters.Run(ctx) }()
	pods := fleet.NewCache[unstructured.Object](clusters, "pods", nil)
	go func() { _ = pods.Run(ctx) }()
	var failing *cache.RejectedError
	if err := pods.WaitForSync(ctx); err != nil && !errors.As(err, &failing) {
		log.Fatal(err)
	}
	for _, status := range pods.Clusters() {
		fmt.Println(status.Cluster, status.State, status.Err)
	}
	for cluster, pod := range pods.List("", nil) {
		fmt.Println("pod", pod.GetName(), "of", cluster)
	}
}

func ExampleContexts() {
	east := httptest.NewServer(newPodCluster("east", "web"))
	defer east.Close()
	folder, remove := writeKubeconfig("config", east.URL)
	defer remove()

	printPods(fleet.Contexts(filepath.Join(folder, "config"))) // "" is the kubeconfig of kubectl
	// Output:
	// east synced <nil>
	// pod web of east
}

func ExampleFolder() {
	east := httptest.NewServer(newPodCluster("east", "web"))
	defer east.Close()
	folder, remove := writeKubeconfig("tenant-1.yaml", east.URL)
	defer remove()

	printPods(fleet.Folder(folder)) // read every five seconds
	// Output:
	// tenant-1 synced <nil>
	// pod web of tenant-1
}

// managementCluster is a server with Secrets, and returns a handle on them.
func managementCluster(secrets ...string) (handle *dynamic.Resource, closeAll func()) {
	api := scripted.New("/v1 secrets secret Secret")
	var events []string
	for _, secret := range secrets {
		events = append(events, scripted.Event("ADDED", secret))
	}
	api.Handle("WATCH /api/v1/secrets", scripted.Watch(append(events, scripted.InitialEventsEnd("v1", "Secret", "100"))...))
	server := httptest.NewServer(api)
	client, err := dynamic.Connect(context.Background(), &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	handle, err = client.Resource(context.Background(), "secrets")
	if err != nil {
		log.Fatal(err)
	}
	return handle.AllNamespaces(), func() { client.Close(); server.Close() }
}

func ExampleClusterAPI() {
	east := httptest.NewServer(newPodCluster("east", "web"))
	defer east.Close()
	secrets, closeAll := managementCluster(
		secretJSON("east-kubeconfig", "east", kubeconfigOf(east.URL, "{token: one}"), 1),
		secretJSON("east-ca", "east", "a certificate", 2)) // not a kubeconfig
	defer closeAll()

	printPods(fleet.ClusterAPI(secrets))
	// Output:
	// fleet/east synced <nil>
	// pod web of fleet/east
}

// Whoever writes the Secrets gains no rights on this machine: a kubeconfig must not name a program.
func ExampleSecrets() {
	east := httptest.NewServer(newPodCluster("east", "web"))
	defer east.Close()
	secrets, closeAll := managementCluster(
		secretJSON("east", "", kubeconfigOf(east.URL, "{token: one}"), 1),
		secretJSON("west", "", kubeconfigOf("https://west", "{exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never}}"), 2))
	defer closeAll()

	printPods(fleet.Secrets(secrets, "fleet=blue", "value"))
	// Output:
	// fleet/east synced <nil>
	// fleet/west failing connect to cluster "fleet/west": kubeconfig of Secret fleet/west: user "u" names a program: credential plugins of Secrets are not run
	// pod web of fleet/east
}

// A replica takes over the clusters of a second one.
func ExampleFleet_SetSelect() {
	source, closeAll := exampleClusters()
	defer closeAll()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	clusters := fleet.New(&fleet.Options{
		Sources: []fleet.Source{source},
		Select:  func(cluster string) bool { return cluster == "east" },
	})
	go func() { _ = clusters.Run(ctx) }()
	pods := fleet.NewCache[unstructured.Object](clusters, "pods", nil)
	go func() { _ = pods.Run(ctx) }()
	for change := range pods.Changes(ctx) {
		if change.Type != dynamic.Synced {
			fmt.Println(change.Type, change.Object.GetName(), "of", change.Cluster)
			continue
		}
		fmt.Println("synced", change.Cluster)
		if change.Cluster == "west" {
			break
		}
		clusters.SetSelect(func(string) bool { return true })
	}
	// Output:
	// ADDED web of east
	// synced east
	// ADDED db of west
	// synced west
}

// A change of a pod reconciles the key of its label app in the same cluster.
func ExampleWatches() {
	source, closeAll := exampleClusters()
	defer closeAll()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	clusters := fleet.New(&fleet.Options{Sources: []fleet.Source{source}, Select: func(cluster string) bool { return cluster == "east" }})
	go func() { _ = clusters.Run(ctx) }()
	pods := fleet.NewCache[unstructured.Object](clusters, "pods", nil)
	go func() { _ = pods.Run(ctx) }()
	apps := fleet.NewCache(clusters, "pods", &fleet.CacheOptions[unstructured.Object]{
		Options: cache.Options[unstructured.Object]{Namespaces: []string{}}, // empty here; a program has a cache of its own kind
	})
	go func() { _ = apps.Run(ctx) }()
	appOf := func(cluster string, pod *unstructured.Object) []fleet.Key {
		key := fleet.Key{Cluster: cluster}
		key.Namespace = pod.GetNamespace()
		key.Name = pod.GetLabels()["app"]
		return []fleet.Key{key}
	}
	err := fleet.Run(ctx, apps, func(_ context.Context, key fleet.Key) (time.Duration, error) {
		fmt.Println("reconcile", key)
		cancel()
		return 0, nil
	}, &fleet.RunOptions{Triggers: []fleet.Trigger{fleet.Watches(pods, appOf)}})
	fmt.Println(err)
	// Output:
	// reconcile east/shop/web
	// context canceled
}
