package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// ExampleConn_Do makes a raw request, the building block of everything else.
func ExampleConn_Do() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"no such path","code":404}`, http.StatusNotFound)
			return
		}
		fmt.Fprint(w, "ok")
	}))
	defer server.Close()

	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	response, err := conn.Do(context.Background(), &transport.Request{Path: "/healthz"})
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	fmt.Println(string(body), err)

	_, err = conn.Do(context.Background(), &transport.Request{Path: "/nothing"})
	fmt.Println(apierrors.IsNotFound(err), err)
	// Output:
	// ok <nil>
	// true no such path
}

// ExampleConfig shows that a configuration may be printed: its secrets are not.
func ExampleConfig() {
	fmt.Println(transport.Config{Server: "https://10.0.0.1:6443", Token: kubeconfig.NewSecret("secret")})
	// Output: [server=https://10.0.0.1:6443 namespace= credential=token]
}

// A kubeconfig from a Secret, a flag or a test is given as a parsed one.
func ExampleLoad() {
	file, err := kubeconfig.Parse([]byte(`
current-context: staging
clusters:
- {name: staging, cluster: {server: "https://staging:6443"}}
- {name: production, cluster: {server: "https://production:6443"}}
users: [{name: ann, user: {token: secret}}]
contexts:
- {name: staging, context: {cluster: staging, user: ann}}
- {name: production, context: {cluster: production, user: ann, namespace: shop}}`), "")
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"", "production"} {
		cfg, err := transport.Load(context.Background(), &transport.LoadOptions{Kubeconfig: file, Context: name})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(cfg)
	}
	// Output:
	// [server=https://staging:6443 namespace=default credential=token]
	// [server=https://production:6443 namespace=shop credential=token]
}

// A program that usually runs in a pod looks there first, and for a kubeconfig on a developer's machine.
func ExampleLoad_inClusterFirst() {
	cfg, err := transport.Load(context.Background(), &transport.LoadOptions{InClusterFirst: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cfg.Server)
}

func ExampleConn_WithOnWarning() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 - "v1 ComponentStatus is deprecated"`)
	}))
	defer server.Close()
	conn, err := transport.New(server.URL, server.Client(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	logged := conn.WithOnWarning(func(_ context.Context, text string) { fmt.Println("warning:", text) })
	response, err := logged.Do(context.Background(), &transport.Request{Method: http.MethodGet, Path: "/api/v1/componentstatuses"})
	if err != nil {
		log.Fatal(err)
	}
	_ = response.Body.Close()
	// Output: warning: v1 ComponentStatus is deprecated
}

// A program for several clusters reads the kubeconfig once and loads each of its contexts.
func ExampleLoadKubeconfig() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "config") // "" finds the user's own
	if err := os.WriteFile(path, []byte(`
clusters: [{name: one, cluster: {server: "https://one"}}, {name: two, cluster: {server: "https://two"}}]
contexts: [{name: one, context: {cluster: one}}, {name: two, context: {cluster: two}}]`), 0o600); err != nil {
		log.Fatal(err)
	}

	file, err := transport.LoadKubeconfig(path)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(file.Contexts)) {
		cfg, err := transport.Load(context.Background(), &transport.LoadOptions{Kubeconfig: file, Context: name})
		fmt.Println(name, cfg.Server, err)
	}
	// Output:
	// one https://one <nil>
	// two https://two <nil>
}

func ExampleCollectWarnings() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 - "unknown field \"spec.colour\""`)
	}))
	defer server.Close()
	conn, err := transport.New(server.URL, server.Client(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	ctx, warnings := transport.CollectWarnings(context.Background())
	response, err := conn.Do(ctx, &transport.Request{Path: "/api/v1/configmaps"})
	if err != nil {
		log.Fatal(err)
	}
	_ = response.Body.Close()
	fmt.Println(warnings.All())
	// Output: [unknown field "spec.colour"]
}

// A program that reaches its cluster only by the user's kubectl.
func ExampleOpenKubectl() {
	conn, err := transport.OpenKubectl(context.Background(), &transport.KubectlOptions{
		Command: "no-such-kubectl", // "" is kubectl in PATH
		Args:    []string{"--context=staging"},
	})
	if err != nil {
		fmt.Println("kubectl is missing:", errors.Is(err, exec.ErrNotFound))
		return
	}
	defer conn.Close() // ends the process
	// Output: kubectl is missing: true
}
